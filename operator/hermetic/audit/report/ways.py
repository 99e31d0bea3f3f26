"""The topology of a report that brings none: what its findings' paths say about the network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from hermetic.audit.findings import Finding, Report, Verdict, worst_first
from hermetic.audit.report.resources import short_name
from hermetic.audit.report.telling import hops_of
from hermetic.audit.topology import Link, Place, PlaceKind, Topology

# what a hop begins with, else what it holds, says what it is: "subnet snet-internet" is a subnet. The first word wins:
# "peer" stands before "vnet", and the several gateways before "gateway"
_WORDS = (
    ("node subnet", PlaceKind.SUBNET),
    ("pod subnet", PlaceKind.SUBNET),
    ("internet", PlaceKind.INTERNET),
    ("::/0", PlaceKind.INTERNET),
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
    ("resolver", PlaceKind.DNS),
    ("name server", PlaceKind.DNS),
    ("storage", PlaceKind.STORAGE),
    ("registry", PlaceKind.REGISTRY),
    ("subnet", PlaceKind.SUBNET),
    ("vnet", PlaceKind.VNET),
    ("interface", PlaceKind.NIC),
    ("nic", PlaceKind.NIC),
    ("pool", PlaceKind.POOL),
    ("pod", PlaceKind.POD),
    ("node", PlaceKind.NODE),
    ("service", PlaceKind.SERVICE),
    ("machine", PlaceKind.VM),
)


OPEN, ACCEPTED, UNDECIDED = "open", "accepted", "not decided"
_STATES = (OPEN, ACCEPTED, UNDECIDED)


@dataclass(frozen=True, slots=True)
class Way:
    """One path in words, hop by hop, and whether a packet can take it."""

    hops: tuple[str, ...]
    state: str


def ways_of(report: Report) -> list[Way]:
    """What the drawing shows, in words, the worst first: every path of a finding, or each open link of the topology."""
    if report.topology is not None:
        labels = {place.id: place.label for place in report.topology.nodes}
        ends = [(link.source, link.target) for link in report.topology.edges if link.open]
        return [Way((labels[a], labels[b]), OPEN) for a, b in ends if a in labels and b in labels]
    drawn = [Way(hops_of(path), _state(finding)) for finding in worst_first(report.findings) for path in finding.paths]
    # a warning's open way comes before what a graver finding could not decide
    drawn.sort(key=lambda way: _STATES.index(way.state))
    ways: dict[tuple[str, ...], Way] = {}
    for way in drawn:
        ways.setdefault(way.hops, way)
    return list(ways.values())


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
    for way in ways_of(report):
        hops = [_place(hop) for hop in way.hops]
        label = way.state if way.state == ACCEPTED else ""
        for source, target in pairwise(_from_the_cluster(cluster, hops)):
            # the worst way comes first: what it says of a link stands
            links.setdefault((source.id, target.id), Link(source.id, target.id, way.state != UNDECIDED, label))
            places |= {place.id: places.get(place.id, place) for place in (source, target)}
    if not links and report.verdict is Verdict.PASS:
        # two boxes and nothing between them, which only a Pass may claim
        places["internet"] = Place("internet", PlaceKind.INTERNET, "internet")
    return Topology(tuple(places.values()), tuple(links.values()))


def kind_of(hop: str) -> PlaceKind:
    """What a hop of a path is, by its words."""
    lower = hop.lower()
    begun = next((kind for word, kind in _WORDS if lower.startswith(word)), None)
    return begun or next((kind for word, kind in _WORDS if word in lower), PlaceKind.OTHER)


def _from_the_cluster(cluster: Place, hops: list[Place]) -> list[Place]:
    """A way out begins at the cluster; a way in begins at an internet of its own, apart from where ways out end."""
    if hops and hops[0].kind is PlaceKind.INTERNET:
        return [replace(hops[0], id=f"from {hops[0].id}"), *hops[1:]]
    return [cluster, *hops]


def _place(hop: str) -> Place:
    """ "nat gateway nat-egress" is the NAT gateway nat-egress: what is said above the label is not said in it."""
    kind = kind_of(hop)
    name = hop[len(kind) :] if hop.lower().startswith(f"{kind} ") else hop
    return Place(hop.lower(), kind, name.strip() or hop)


def _state(finding: Finding) -> str:
    if finding.verdict is Verdict.FAIL:
        return OPEN
    accepted = finding.exception is not None and finding.exception.accepted is Verdict.FAIL
    return ACCEPTED if accepted else UNDECIDED
