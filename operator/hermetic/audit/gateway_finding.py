"""Finds gateways and their connections: Azure lists both by resource group only."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.audit.cluster_scope import groups_of, subnets_of
from hermetic.audit.estate.arm_ids import group_of, is_below, name_of, same_id
from hermetic.audit.estate.azure.routing import (
    GatewayConnection,
    GatewaySubnet,
    HubConnection,
    VirtualHub,
    VirtualNetworkGateway,
    VirtualNetworkGatewayConnection,
)
from hermetic.audit.estate.azure.vnet import Peering, VirtualNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Seen, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import throughout

GATEWAY_SUBNET = "gatewaysubnet"


def gateways_in(estate: Estate, network: Seen[VirtualNetwork]) -> Listing[VirtualNetworkGateway]:
    """The gateways of one network. A gateway is always in the subnet GatewaySubnet; without it there is none."""
    if network.value is None:
        return Listing(network.target, (), network.evidence, network.problem)
    ids = [one.id for one in network.value.subnets]
    home = next((one for one in ids if name_of(one).lower() == GATEWAY_SUBNET), None)
    if home is None:
        return Listing(network.target, (), network.evidence, _cut(estate, network.target, ids))
    subnet = estate.one(GatewaySubnet, home)
    inside = [one.id for one in (subnet.value.ip_configurations or ())] if subnet.value is not None else []
    groups = {group.lower(): group for group in (group_of(network.target), *map(group_of, inside)) if group}
    listed = merged(home, *(estate.every(VirtualNetworkGateway, group) for _, group in sorted(groups.items())))
    found = listed.where(lambda one: home.lower() in {subnet_id.lower() for subnet_id in one.subnet_ids})
    problem = subnet.problem or found.problem
    if problem is None and inside and not found.items:
        problem = Problem(UnreadReason.UNREADABLE, f"{home}: the subnet is not empty, and no gateway was listed")
    return Listing(network.target, found.items, (*subnet.evidence, *found.evidence), problem)


def _cut(estate: Estate, network: str, subnet_ids: list[str]) -> Problem | None:
    """A problem where a network of the cluster does not list one of the cluster's own subnets; else None."""
    listed = {one.lower() for one in subnet_ids}
    ours = [one.id for one in subnets_of(estate)[0] if is_below(one.id, network)]
    absent = next((one for one in ours if one.lower() not in listed), None)
    if absent is None:
        return None
    return Problem(UnreadReason.UNREADABLE, f"{network}: the answer leaves out its subnet {name_of(absent)}")


def connections_of(estate: Estate, gateway: VirtualNetworkGateway) -> Listing[Seen[VirtualNetworkGatewayConnection]]:
    """Its connections, each read by id (lists omit the status), found by the gateway's list and by resource group."""
    own = estate.every(GatewayConnection, gateway.id)
    groups = {one.lower(): one for one in (*groups_of(estate), group_of(gateway.id))}
    listed = merged(
        gateway.id, *(estate.every(VirtualNetworkGatewayConnection, group) for _, group in sorted(groups.items()))
    )
    ours = listed.where(lambda one: gateway.id.lower() in one.gateway_ids)
    ids = {one.id.lower(): one.id for one in (*own, *ours) if one.id}
    found = tuple(estate.one(VirtualNetworkGatewayConnection, one) for _, one in sorted(ids.items()))
    return Listing(gateway.id, found, (*own.evidence, *listed.evidence), own.problem or listed.problem)


def distant_networks(estate: Estate, network: str) -> list[Seen[VirtualNetwork]]:
    """Networks whose gateway this network uses through a peering."""
    return [
        estate.one(VirtualNetwork, peering.remote_virtual_network.id)
        for peering in estate.every(Peering, network)
        if peering.connects and peering.use_remote_gateways and peering.remote_virtual_network is not None
    ]


@dataclass(frozen=True, slots=True)
class Joined:
    """A hub and one of its connections to a network."""

    hub: VirtualHub
    connection: HubConnection

    @property
    def id(self) -> str:
        return self.connection.id


@derived
def hub_connections(estate: Estate, policy: Policy) -> Listing[Joined]:
    """Every connection of every hub in the subscriptions that are searched."""
    hubs = throughout(estate, policy, VirtualHub)
    lists = [(hub, estate.every(HubConnection, hub.id)) for hub in hubs]
    joined = tuple(Joined(hub, connection) for hub, connections in lists for connection in connections)
    evidence = (*hubs.evidence, *(one for _, connections in lists for one in connections.evidence))
    problem = hubs.problem or next((one.problem for _, one in lists if one.problem is not None), None)
    nameless = next((one.connection.id for one in joined if one.connection.remote_virtual_network is None), "")
    if nameless and problem is None:
        problem = Problem(UnreadReason.UNREADABLE, f"{nameless}: names no network")
    return Listing(estate.cluster, joined, evidence, problem)


def joins(joined: Joined, network: str) -> bool:
    """Whether the connection is to this network."""
    remote = joined.connection.remote_virtual_network
    return remote is not None and same_id(remote.id, network)
