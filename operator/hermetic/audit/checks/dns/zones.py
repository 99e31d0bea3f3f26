"""Private zones: a link may resolve names that the zone does not contain by public DNS."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.azure.dns import PrivateZone, ZoneLink
from hermetic.audit.estate.azure.vnet import VirtualNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Lookup, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.evaluation.each_resource import each_network, each_or_none
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.reachable_networks import throughout


@check_each("privdns-fallthrough", each_network)
def privdns_fallthrough(estate: Estate, policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """Every link of a private zone to one of the cluster's networks."""
    ours = links_of(estate, policy).where(
        lambda link: link.virtual_network is None or same_id(link.virtual_network.id, network.target)
    )
    yield from each_or_none(network.target, ours, _link, "no private zone is linked", network)


@derived
def links_of(estate: Estate, policy: Policy) -> Listing[ZoneLink]:
    """Every link of every private zone in the audited subscriptions."""
    zones = throughout(estate, policy, PrivateZone)
    linked = [zone for zone in zones if zone.number_of_virtual_network_links != 0]
    links = merged(estate.cluster, *(_of_zone(estate, zone) for zone in linked))
    return Listing(estate.cluster, links.items, (*zones.evidence, *links.evidence), zones.problem or links.problem)


def _of_zone(estate: Estate, zone: PrivateZone) -> Listing[ZoneLink]:
    """The links of one zone; incomplete where the zone counts more of them than the list contains."""
    links = estate.every(ZoneLink, zone.id)
    counted = zone.number_of_virtual_network_links or 0
    if links.problem is not None or len(links) >= counted:
        return links
    problem = Problem(UnreadReason.UNREADABLE, f"{zone.id}: counts {counted} links, and the list has {len(links)}")
    return Listing(links.target, links.items, links.evidence, problem)


def _link(link: ZoneLink) -> Iterator[CheckResult]:
    """One link. Zones without the option leave it out, and resolve nothing outside."""
    if link.virtual_network is None:
        yield unknown(link.id, "NetworkNotNamed", "the link does not name its network", link)
        return
    resolution_policy = (link.resolution_policy or "Default").lower()
    if resolution_policy == "default":
        yield passes(link.id, "StaysPrivate", "a name that the zone does not hold is not found", link)
    elif resolution_policy == "nxdomainredirect":
        message = "a name that the zone does not hold is asked of public DNS"
        yield fails(
            link.id,
            "FallsThrough",
            message,
            link,
            paths=(path_of(POD, hops.dns("private dns zone"), hops.dns("public dns"), INTERNET),),
        )
    else:
        yield unknown(link.id, "PolicyUnknown", f"resolutionPolicy {link.resolution_policy!r} is not known", link)
