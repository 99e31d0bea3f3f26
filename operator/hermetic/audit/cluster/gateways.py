"""Finds gateways and their connections: Azure lists both by resource group only."""

from __future__ import annotations

from hermetic.audit.cluster.members import groups_of, subnets_of
from hermetic.audit.cluster.virtual_hubs import hub_of_each_peering
from hermetic.audit.estate.arm_ids import group_of, is_below, name_of
from hermetic.audit.estate.azure.routing import (
    GatewayConnection,
    GatewaySubnet,
    VirtualNetworkGateway,
    VirtualNetworkGatewayConnection,
)
from hermetic.audit.estate.azure.vnet import Peering, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Lookup, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.policy.declarations import Policy

GATEWAY_SUBNET = "gatewaysubnet"


def gateways_in(estate: Estate, network: Lookup[VirtualNetwork]) -> Listing[VirtualNetworkGateway]:
    """The gateways of one network. A gateway is always in the subnet GatewaySubnet; without it there is none."""
    if network.value is None:
        return Listing(network.target, (), network.evidence, network.problem)
    ids = [subnet.id for subnet in network.value.subnets]
    home = next((subnet_id for subnet_id in ids if name_of(subnet_id).lower() == GATEWAY_SUBNET), None)
    if home is None:
        return Listing(network.target, (), network.evidence, _cut(estate, network.target, ids))
    subnet = estate.one(GatewaySubnet, home)
    inside = (
        [configuration.id for configuration in (subnet.value.ip_configurations or ())]
        if subnet.value is not None
        else []
    )
    groups = {group.lower(): group for group in (group_of(network.target), *map(group_of, inside)) if group}
    listed = merged(home, *(estate.every(VirtualNetworkGateway, group) for _, group in sorted(groups.items())))
    gateways = listed.where(lambda gateway: home.lower() in {subnet_id.lower() for subnet_id in gateway.subnet_ids})
    problem = subnet.problem or gateways.problem
    if problem is None and inside and not gateways.items:
        problem = Problem(UnreadReason.UNREADABLE, f"{home}: the subnet is not empty, and no gateway was listed")
    return Listing(network.target, gateways.items, (*subnet.evidence, *gateways.evidence), problem)


def _cut(estate: Estate, network: str, subnet_ids: list[str]) -> Problem | None:
    """A problem where a network of the cluster does not list one of the cluster's own subnets; else None."""
    listed = {subnet_id.lower() for subnet_id in subnet_ids}
    ours = [scoped.id for scoped in subnets_of(estate)[0] if is_below(scoped.id, network)]
    absent = next((subnet_id for subnet_id in ours if subnet_id.lower() not in listed), None)
    if absent is None:
        return None
    return Problem(UnreadReason.UNREADABLE, f"{network}: the answer leaves out its subnet {name_of(absent)}")


def connections_of(estate: Estate, gateway: VirtualNetworkGateway) -> Listing[Lookup[VirtualNetworkGatewayConnection]]:
    """Its connections, each read by id (lists omit the status), found by the gateway's list and by resource group."""
    own = estate.every(GatewayConnection, gateway.id)
    groups = {group_id.lower(): group_id for group_id in (*groups_of(estate), group_of(gateway.id))}
    listed = merged(
        gateway.id, *(estate.every(VirtualNetworkGatewayConnection, group) for _, group in sorted(groups.items()))
    )
    ours = listed.where(lambda connection: gateway.id.lower() in connection.gateway_ids)
    ids = {connection.id.lower(): connection.id for connection in (*own, *ours) if connection.id}
    connections = tuple(
        estate.one(VirtualNetworkGatewayConnection, connection_id) for _, connection_id in sorted(ids.items())
    )
    return Listing(gateway.id, connections, (*own.evidence, *listed.evidence), own.problem or listed.problem)


def distant_networks(estate: Estate, policy: Policy, network: str) -> list[Lookup[VirtualNetwork]]:
    """Networks whose gateway this network uses through a peering; a hub's own is left out: its routes are the hub's."""
    hubs = hub_of_each_peering(estate, policy)
    return [
        estate.one(VirtualNetwork, peering.remote_virtual_network.id)
        for peering in estate.every(Peering, network)
        if peering.connects and peering.use_remote_gateways and peering.remote_virtual_network is not None
        if peering.id.lower() not in hubs
    ]
