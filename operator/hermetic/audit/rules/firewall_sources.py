"""Whether packets that nodes can cause match the sources of a rule of the declared firewall.

A rule is left out only where all of its sources are prefixes and none holds an address of the networks in reach. Pods
with an overlay or kubenet leave with the address of their node (learn.microsoft.com/azure/aks/concepts-network-cni-
overview); their own prefixes count all the same. An appliance on the way may replace the source by its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Network, ip_address, summarize_address_range

from hermetic.api.ip_ranges import Network
from hermetic.audit.cluster.members import cluster_of, network_ids_of, subnets_of
from hermetic.audit.cluster.resource_lookup import readable, values_of
from hermetic.audit.cluster.virtual_hubs import peer_ids_of
from hermetic.audit.estate.azure.managed_services import FirewallRule, IpGroup
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.azure.vnet import Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation
from hermetic.audit.model.address_ranges import Space, networks, overlap, space, union
from hermetic.audit.model.address_ranges import network as prefix_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import declared_addresses
from hermetic.audit.rules.routes import NextHopKind, hop_of, leads_to_appliance

NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: its last 32 bits are an IPv4 address."""


def prefixes_in(word: str) -> list[Network]:
    """The prefixes of a prefix or of a range a-b; none for a service tag."""
    prefix = prefix_of(word)
    if prefix is not None:
        return [prefix]
    first, dash, last = word.partition("-")
    if not dash:
        return []
    try:
        return list(summarize_address_range(ip_address(first.strip()), ip_address(last.strip())))
    except (TypeError, ValueError):
        return []


@dataclass(frozen=True, slots=True)
class RuleSources:
    """The sources of a rule. `ours` and `others`: its prefixes that hold an address in reach, and the remaining ones.

    `matches`: whether packets that nodes can cause may match the rule. `in_groups`: whether IP groups name a source.
    """

    matches: bool
    ours: tuple[str, ...] = ()
    other_sources: tuple[str, ...] = ()
    in_groups: bool = False


def sources_of(
    estate: Estate, rule: FirewallRule, in_reach: Space | None, observations: list[Observation]
) -> RuleSources:
    """Compare the sources of a rule with the addresses that nodes can send from; None for any address."""
    groups = [estate.one(IpGroup, group_id) for group_id in rule.source_ip_groups or ()]
    observations += groups
    direct = tuple(rule.source_addresses or ())
    by_group = [entries for _, entries in readable(values_of(groups), lambda group: group.ip_addresses, observations)]
    in_groups = tuple(word for entries in by_group for word in entries or ())
    are_read = len(by_group) == len(groups) and all(by_group)
    sources = (*direct, *in_groups)
    if in_reach is None or not sources or not are_read:
        return RuleSources(matches=True)
    ours = tuple(word for word in sources if _may_hold(word, in_reach))
    other_sources = tuple(word for word in sources if word not in ours)
    return RuleSources(bool(ours), ours, other_sources, bool(groups))


def _may_hold(word: str, in_reach: Space) -> bool:
    """Whether a source may hold one of these addresses; what is no prefix, and NAT64, may."""
    prefixes = prefixes_in(word)
    return not prefixes or bool(overlap(space(prefixes), (*in_reach, *space((NAT64,)))))


@derived
def near_addresses(estate: Estate, policy: Policy) -> Space | None:
    """Addresses in the cluster's networks, their peers and its pods; None where they may be of any network."""
    subnets, observations = subnets_of(estate)
    near_networks = [
        estate.one(VirtualNetwork, network_id) for network_id in (*network_ids_of(estate), *peer_ids_of(estate, policy))
    ]
    cluster = cluster_of(estate).value
    if cluster is None or any(observation.problem is not None for observation in (*observations, *near_networks)):
        return None
    if not near_networks or _may_be_replaced(estate, policy, [subnet.observation.value for subnet in subnets]):
        return None
    profile = cluster.network_profile
    pods = (profile.pod_cidr or "", *(profile.pod_cidrs or ())) if profile is not None else ()
    spaces = [space_of(network) for network in values_of(near_networks)]
    if not all(spaces):
        return None
    return union(
        (*(span for addresses in spaces for span in addresses), *space(networks(cidr for cidr in pods if cidr)))
    )


def space_of(network: VirtualNetwork) -> Space:
    """The address space of a network; empty where the answer does not contain it."""
    address_space = network.address_space
    return space(networks(address_space.address_prefixes or ())) if address_space is not None else ()


def _may_be_replaced(estate: Estate, policy: Policy, subnets: Iterable[Subnet | None]) -> bool:
    """Whether a route leads through an appliance or gateway that is not the declared firewall, or was not read."""
    addresses, _ = declared_addresses(estate, policy)
    for subnet in subnets:
        if subnet is None:
            return True
        if subnet.route_table is None:
            continue
        table = estate.one(RouteTable, subnet.route_table.id).value
        if table is None or table.routes is None:
            return True
        for route in table.routes:
            is_passed_on = hop_of(route.next_hop_type) in {NextHopKind.FORWARDED, NextHopKind.UNKNOWN}
            if is_passed_on and not leads_to_appliance(route, addresses):
                return True
    return False
