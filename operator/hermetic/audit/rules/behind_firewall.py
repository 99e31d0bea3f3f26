"""What lies behind the declared firewall: networks that its rules let packets of the nodes into.

The firewall forwards into every network that is peered with its own. A peering that lets no forwarded traffic pass is
no obstacle: connections of application rules, and translated ones, come from the firewall's own address
(learn.microsoft.com/azure/firewall/snat-private-range). What comes from such a network may match more
rules, so the search ends only where another round finds no further network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.ip_ranges import PRIVATE_IPV4, PRIVATE_IPV6
from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.cluster.resource_lookup import values_of
from hermetic.audit.cluster.virtual_hubs import peer_ids_of
from hermetic.audit.estate.arm_ids import parent_of
from hermetic.audit.estate.azure.managed_services import AzureFirewall
from hermetic.audit.estate.azure.vnet import Peering, Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.model.address_ranges import Space, networks, overlap, space, union, without
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall_rules import Rules, rules_of
from hermetic.audit.rules.firewall_sources import near_addresses, space_of
from hermetic.errors import FactDamaged


@dataclass(frozen=True, slots=True)
class BehindFirewall:
    """The rules that packets of the nodes may match, and what they lead to.

    `network_ids` are networks that were read, as written, beside those of the cluster and their peers. `beyond` are
    private destinations of no network that was read and that the policy file does not accept, `public` are public ones.
    """

    rules: Rules
    network_ids: tuple[str, ...]
    beyond: Space
    public: Space
    observations: tuple[Observation, ...]


@derived
def behind_firewall(estate: Estate, policy: Policy) -> BehindFirewall | None:
    """What lies behind the declared firewall; None in the profile `sealed`, and where the firewall was not read.

    Raises FactDamaged for an address or a rule that cannot be read.
    """
    firewall = estate.one(AzureFirewall, policy.firewall).value if policy.profile == "filtered" else None
    if firewall is None:
        return None
    near = [
        estate.one(VirtualNetwork, network_id) for network_id in (*network_ids_of(estate), *peer_ids_of(estate, policy))
    ]
    candidates, observations = _around(estate, firewall, {network.target.lower() for network in near})
    behind: dict[str, Space] = {}
    in_reach = near_addresses(estate, policy)
    while True:
        rules = rules_of(estate, policy, firewall, in_reach)
        reached = {
            network_id: addresses
            for network_id, addresses in candidates.items()
            if not addresses or overlap(addresses, rules.destinations)
        }
        if reached.keys() <= behind.keys():
            break
        behind |= reached
        if in_reach is not None:
            in_reach = union((*in_reach, *(span for addresses in reached.values() for span in addresses)))
    near_space = union(span for network in values_of(near) for span in space_of(network))
    networks_behind = [estate.one(VirtualNetwork, network_id) for network_id in sorted(behind)]
    read = union((*near_space, *(span for network in values_of(networks_behind) for span in space_of(network))))
    beyond = without(overlap(rules.destinations, _private(policy)), union((*read, *accepted_space(policy))))
    ids = tuple(network.target for network in networks_behind if network.value is not None)
    accepted = space(networks(entry.prefix for entry in policy.allowed_public_destinations))
    public = without(rules.public, union((*read, *accepted)))
    return BehindFirewall(rules, ids, beyond, public, tuple(observations))


def _around(estate: Estate, firewall: AzureFirewall, near: set[str]) -> tuple[dict[str, Space], list[Observation]]:
    """The firewall's own networks and their peers that are not near, with their address space as far as it is known."""
    spaces: dict[str, Space] = {}
    observations: list[Observation] = []
    for home in sorted({parent_of(subnet_id) for subnet_id in firewall.subnet_ids}):
        peerings = estate.every(Peering, home)
        observations.append(peerings)
        if home.lower() not in near:
            network = estate.one(VirtualNetwork, home)
            observations.append(network)
            spaces[home] = space_of(network.value) if network.value is not None else ()
        for peering in peerings:
            remote = peering.remote_virtual_network
            if peering.connects and remote is not None and remote.id.lower() not in near:
                address_space = peering.remote_address_space
                spaces[remote.id] = space(networks(address_space.address_prefixes)) if address_space is not None else ()
    return spaces, observations


def _private(policy: Policy) -> Space:
    return space(networks((*PRIVATE_IPV4, PRIVATE_IPV6, *policy.additional_private_ranges)))


def accepted_space(policy: Policy) -> Space:
    """The private destinations that the policy file accepts."""
    return space(networks(entry.prefix for entry in policy.allowed_private_destinations))


def unused_entries(estate: Estate, policy: Policy) -> Iterator[str]:
    """A sentence for each accepted host and prefix that no rule of the declared firewall names; none where unread."""
    try:
        behind = behind_firewall(estate, policy)
    except FactDamaged:
        return
    if behind is None or any(observation.problem is not None for observation in behind.rules.observations):
        return
    for host in policy.allowed_hosts:
        if host.host not in behind.rules.hosts:
            yield f"`allowedHosts` names {host.host}, and no rule of the declared firewall does: it decides nothing"
    for public in policy.allowed_public_destinations:
        if not overlap(space(networks((public.prefix,))), behind.rules.public):
            explanation = "and no rule of the declared firewall leads there: it decides nothing"
            yield f"`allowedPublicDestinations` names {public.prefix}, {explanation}"
    for entry in policy.allowed_private_destinations:
        if not overlap(space(networks((entry.prefix,))), behind.rules.destinations):
            explanation = "and no rule of the declared firewall leads there: it decides nothing"
            yield f"`allowedPrivateDestinations` names {entry.prefix}, {explanation}"


def ids_behind(estate: Estate, policy: Policy) -> tuple[str, ...]:
    """Ids, as written, of the networks that the declared firewall lets packets of the nodes into."""
    try:
        behind = behind_firewall(estate, policy)
    except FactDamaged:  # `firewall-in-path` is Unknown then, and the other checks do not need the firewall
        return ()
    return behind.network_ids if behind is not None else ()


def own_resources_named(estate: Estate, policy: Policy) -> Listing[str]:
    """Ids of the resources of ours that rules of the declared firewall name by their hosts, and where data ends.

    Rules that cannot be read are a problem of `firewall-in-path`, not of this list.
    """
    try:
        behind = behind_firewall(estate, policy)
    except FactDamaged:
        behind = None
    if behind is None:
        return Listing(estate.cluster)
    evidence = tuple(part for observation in behind.rules.observations for part in observation.evidence)
    return Listing(estate.cluster, behind.rules.own_resources, evidence)


def is_let_in(estate: Estate, policy: Policy, subnet_id: str) -> bool:
    """Whether rules of the declared firewall name an address of this subnet; True where that is not known."""
    behind, subnet = behind_firewall(estate, policy), estate.one(Subnet, subnet_id).value
    if behind is None or subnet is None or not subnet.prefixes:
        return True
    return bool(overlap(space(networks(subnet.prefixes)), behind.rules.destinations))
