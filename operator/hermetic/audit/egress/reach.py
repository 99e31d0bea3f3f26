"""Whether packets of the nodes reach other places in the network, past the security groups of both ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from hermetic.audit.cluster.members import peerings_of, subnets_of
from hermetic.audit.cluster.resource_lookup import readable, security_group
from hermetic.audit.estate.arm_ids import parent_of, same_id
from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.azure.vnet import Peering, Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, missing
from hermetic.audit.model.address_ranges import networks
from hermetic.audit.rules.network_manager import overrides_groups
from hermetic.audit.rules.nsg_reachability import Traffic, stops_all
from hermetic.audit.rules.nsg_rules import Direction


class Reach(Enum):
    """Whether packets reach a place."""

    OPEN = "open"
    SHUT = "shut"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where packets go: a machine's interface, or a service in a subnet.

    `addresses` are empty where they may be any of the subnets'. `group_id` is the security group of an interface.
    `obeys_its_subnet`: whether the security group of its subnet is known to apply to it.
    """

    subnet_ids: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    group_id: str = ""
    obeys_its_subnet: bool = True


@dataclass(frozen=True, slots=True)
class _Layer:
    """A security group on the way, and the network whose admin rules are evaluated before it."""

    direction: Direction
    group: Lookup[SecurityGroup]
    network: str


@dataclass(frozen=True, slots=True)
class Senders:
    """Subnets that packets come from. `by_their_rules`: whether the security groups there are known to see `to`."""

    subnets: tuple[tuple[str, Lookup[Subnet]], ...]
    by_their_rules: bool = True


def nodes_as_senders(estate: Estate) -> Senders:
    """The subnets of the cluster."""
    return Senders(
        tuple(
            (scoped.id, scoped.observation) for scoped in subnets_of(estate)[0] if not scoped.is_for_the_api_server_only
        )
    )


def reach_of(
    estate: Estate, destinations: Iterable[Destination], senders: Senders | None = None
) -> tuple[Reach, tuple[Observation, ...]]:
    """The most open reach to any of these: a relay may receive on one and send on another.

    From any of the senders; without them, from any subnet of the cluster.
    """
    source = nodes_as_senders(estate) if senders is None else senders
    reaches = [_reach(estate, destination, source) for destination in destinations]
    return most_open(reach for reach, _ in reaches), tuple(
        observation for _, observations in reaches for observation in observations
    )


def _reach(estate: Estate, to: Destination, senders: Senders) -> tuple[Reach, tuple[Observation, ...]]:
    homes = [estate.one(Subnet, subnet_id) for subnet_id in to.subnet_ids]
    theirs = _layers_of(estate, to, homes)
    observations: list[Observation] = [*(layer.group for layer in theirs), *homes, peerings_of(estate)]
    reaches: set[Reach] = set()
    for subnet_id, subnet in senders.subnets:
        own = _own_layers(estate, subnet_id, subnet) if senders.by_their_rules else []
        observations += [subnet, *(layer.group for layer in own)]
        traffic, ends = _traffic(subnet, to, homes), (parent_of(subnet_id), _network_of(to))
        reaches.add(_between(estate, traffic, ends, (*own, *theirs), observations, unseen=subnet.value is None))
    return most_open(reaches), tuple(observations)


def _layers_of(estate: Estate, to: Destination, homes: list[Lookup[Subnet]]) -> list[_Layer]:
    # With several subnets, one that lets packets in suffices, so no single subnet's group is certain to apply.
    of_subnets = [_group_of(home) for home in homes if len(homes) == 1 and to.obeys_its_subnet]
    network = _network_of(to)
    groups = [group_id for group_id in (to.group_id, *of_subnets) if group_id and network]
    return [_Layer("inbound", security_group(estate, group_id), network) for group_id in groups]


def _own_layers(estate: Estate, subnet_id: str, subnet: Lookup[Subnet]) -> list[_Layer]:
    group = _group_of(subnet)
    return [_Layer("outbound", security_group(estate, group), parent_of(subnet_id))] if group else []


def weakest(*links: Reach) -> Reach:
    """The reach of a way that has all these links."""
    return next((reach for reach in (Reach.SHUT, Reach.UNSEEN) if reach in links), Reach.OPEN)


def most_open(reaches: Iterable[Reach]) -> Reach:
    """The most open of these; UNSEEN without any."""
    every = set(reaches)
    return next(
        (reach for reach in (Reach.OPEN, Reach.UNSEEN) if reach in every), Reach.SHUT if every else Reach.UNSEEN
    )


def _between(
    estate: Estate,
    traffic: Traffic,
    ends: tuple[str, str],
    layers: Iterable[_Layer],
    observations: list[Observation],
    *,
    unseen: bool,
) -> Reach:
    """`ends` are the networks of source and destination."""
    for layer in layers:
        group = layer.group.value
        far = ends[1] if layer.direction == "outbound" else ends[0]
        joined, peerings = _is_in_the_tag(estate, layer.network, far)
        strictly = replace(traffic, tag_covers_far_end=joined is True)
        if group is None:
            unseen = True
        elif stops_all(group.rules, layer.direction, strictly):
            is_overridden, rests_on = overrides_groups(estate, layer.network, layer.direction, traffic)
            if not is_overridden:
                # where the tag is unknown, the rules stop every packet without it
                observations += (*rests_on, *(peerings if joined is not None else ()))
                return Reach.SHUT
        elif joined is None and stops_all(group.rules, layer.direction, replace(traffic, tag_covers_far_end=True)):
            observations += peerings
            unseen = True
    return Reach.UNSEEN if unseen else Reach.OPEN


def _is_in_the_tag(estate: Estate, network: str, other: str) -> tuple[bool | None, tuple[Observation, ...]]:
    """Whether the tag VirtualNetwork of one network contains another; None where no peering was seen that says so.

    A peering without allowVirtualNetworkAccess leaves the tag as it is, and rules that name addresses still let packets
    through it (learn.microsoft.com/azure/virtual-network/virtual-network-manage-peering).
    """
    if same_id(network, other):
        return True, ()
    return estate.once(("tag", network.lower(), other.lower()), lambda: _is_joined(estate, network, other))


def _is_joined(estate: Estate, network: str, other: str) -> tuple[bool | None, tuple[Observation, ...]]:
    listed = estate.every(Peering, network)
    damaged: list[Observation] = []
    ours = readable(listed, lambda peering: _is_to(peering, other), damaged)
    access_values = {
        open_ for _, open_ in readable((peering for peering, is_ours in ours if is_ours), _gives_access, damaged)
    }
    if False in access_values:
        return False, (listed,)
    if access_values == {True}:
        return True, (listed,)
    return None, (listed, *damaged, missing(f"{network}: no peering shows whether {other} is accessible"))


def _is_to(peering: Peering, network: str) -> bool:
    remote = peering.remote_virtual_network
    return peering.connects and remote is not None and same_id(remote.id, network)


def _gives_access(peering: Peering) -> bool | None:
    """Whether the other network is accessible; None where it is not reported, or where single subnets are peered."""
    access = peering.allow_virtual_network_access
    return None if access is True and peering.peer_complete_vnets is False else access


def _network_of(to: Destination) -> str:
    return parent_of(to.subnet_ids[0]) if to.subnet_ids else ""


def _traffic(subnet: Lookup[Subnet], to: Destination, homes: list[Lookup[Subnet]]) -> Traffic:
    home = [prefix for home_subnet in homes if home_subnet.value is not None for prefix in home_subnet.value.prefixes]
    sources = networks(subnet.value.prefixes) if subnet.value is not None else ()
    return Traffic(sources, networks(to.addresses or home), tag_covers_far_end=False)


def _group_of(subnet: Lookup[Subnet]) -> str:
    group = subnet.value.network_security_group if subnet.value is not None else None
    return group.id if group is not None else ""
