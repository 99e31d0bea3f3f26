"""The topology of a report that brings none: what its findings' paths say about the network."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hermetic.audit.findings import Finding, Report, Verdict, worst_first
from hermetic.audit.report.resources import short_name
from hermetic.audit.report.telling import hops_of
from hermetic.audit.topology import Link, Place, PlaceKind, Topology

# the first word that a hop holds says what it is; "peer vnet" must be asked before "vnet", "public ip" before "ip"
_WORDS = (
    ("internet", PlaceKind.INTERNET),
    ("default outbound", PlaceKind.DEFAULT_OUTBOUND),
    ("nat gateway", PlaceKind.NAT_GATEWAY),
    ("public ip", PlaceKind.PUBLIC_IP),
    ("load balancer", PlaceKind.LOAD_BALANCER),
    ("firewall", PlaceKind.FIREWALL),
    ("appliance", PlaceKind.FIREWALL),
    ("private endpoint", PlaceKind.PRIVATE_ENDPOINT),
    ("service endpoint", PlaceKind.SERVICE_ENDPOINT),
    ("route table", PlaceKind.ROUTE_TABLE),
    ("peer", PlaceKind.PEER_VNET),
    ("hub", PlaceKind.PEER_VNET),
    ("gateway", PlaceKind.GATEWAY),
    ("on-prem", PlaceKind.ON_PREMISES),
    ("dns", PlaceKind.DNS),
    ("storage", PlaceKind.STORAGE),
    ("registry", PlaceKind.REGISTRY),
    ("subnet", PlaceKind.SUBNET),
    ("interface", PlaceKind.NIC),
    ("nic", PlaceKind.NIC),
    ("pool", PlaceKind.POOL),
    ("pod", PlaceKind.POD),
    ("node", PlaceKind.NODE),
    ("service", PlaceKind.SERVICE),
    ("machine", PlaceKind.VM),
)


def topology_of(report: Report) -> Topology:
    """The report's own topology, or the cluster and every path that a finding draws.

    A path of a Fail is open. One of an accepted Fail is open too, and says that it is accepted: an exception closes
    nothing. Anything else is drawn as not known to be open.
    """
    if report.topology is not None:
        return report.topology
    cluster = Place(report.cluster.lower(), PlaceKind.CLUSTER, short_name(report.cluster))
    places = {cluster.id: cluster}
    links: dict[tuple[str, str], Link] = {}
    for finding in worst_first(report.findings):
        for path in finding.paths:
            hops = [Place(hop.lower(), kind_of(hop), hop) for hop in hops_of(path)]
            for link in _links([cluster, *hops], finding):
                # the worst finding comes first: what it says of a link stands
                links.setdefault((link.source, link.target), link)
            places |= {hop.id: places.get(hop.id, hop) for hop in hops}
    if not links and report.verdict is Verdict.PASS:
        # two boxes and nothing between them, which only a Pass may claim
        places["internet"] = Place("internet", PlaceKind.INTERNET, "internet")
    return Topology(tuple(places.values()), tuple(links.values()))


def kind_of(hop: str) -> PlaceKind:
    """What a hop of a path is, by its words."""
    lower = hop.lower()
    return next((kind for word, kind in _WORDS if word in lower), PlaceKind.OTHER)


def _links(places: list[Place], finding: Finding) -> Iterator[Link]:
    accepted = finding.exception is not None and finding.exception.accepted is Verdict.FAIL
    is_open = finding.verdict is Verdict.FAIL or accepted
    label = "accepted" if accepted else "" if is_open else "not decided"
    for source, target in pairwise(places):
        if source.id != target.id:
            yield Link(source.id, target.id, is_open, label)
