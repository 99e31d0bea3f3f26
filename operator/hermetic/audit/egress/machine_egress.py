"""Ways out of a machine beside the nodes: by its interfaces, load balancers, subnets and networks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from hermetic.audit.cluster_scope import is_of_the_cluster, missing, subnets_of
from hermetic.audit.egress.firewall import declared_addresses, leads_to_the_firewall
from hermetic.audit.egress.machines import RelayMachine
from hermetic.audit.egress.methods import (
    by_balancer,
    by_nat_gateway,
    by_network,
    by_service_gateway,
    by_subnet,
)
from hermetic.audit.egress.resource_lookup import each_of, readable, values_of
from hermetic.audit.egress.routes import NextHopKind, OutboundRoute, public_ways
from hermetic.audit.egress.subnet_context import local_space
from hermetic.audit.estate.arm_ids import parent_of
from hermetic.audit.estate.azure.balancing import LoadBalancer, NatGateway, ServiceGateway
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.azure.vnet import Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.hops import DEFAULT_OUTBOUND, Path, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import throughout

T = TypeVar("T")
V = TypeVar("V")


def ways_out(estate: Estate, policy: Policy, machine: RelayMachine) -> tuple[tuple[Path, ...], tuple[Observation, ...]]:
    """Every way out, and the observations it rests on; where one has a problem, there may be more ways.

    Subnets of the cluster and their route tables are skipped: other checks judge them.
    """
    looks: list[Observation] = [*machine.doubts, *(look for one in machine.interfaces for look in one.doubts)]
    ways = [*machine.own_ways, *(way for one in machine.interfaces for way in one.own_ways)]
    ways += _of_balancers(estate, (pool for one in machine.interfaces for pool in one.pool_ids), looks)
    for subnet_id in machine.subnet_ids:
        if not is_of_the_cluster(estate, subnet_id):
            ways += _of_place(estate, policy, subnet_id, looks)
    return tuple(dict.fromkeys(ways)), tuple(looks)


def _of_balancers(estate: Estate, pool_ids: Iterable[str], looks: list[Observation]) -> Iterator[Path]:
    pools = frozenset(one.lower() for one in pool_ids)
    for balancer_id in sorted({parent_of(one) for one in pools}):
        seen = estate.one(LoadBalancer, balancer_id)
        looks.append(seen)
        yield from (
            (method.hop,) for _, method in each_of(values_of((seen,)), lambda one: by_balancer(one, pools), looks)
        )


def _of_place(estate: Estate, policy: Policy, subnet_id: str, looks: list[Observation]) -> Iterator[Path]:
    """The ways that a subnet or its network gives to all its machines."""
    subnet, network = estate.one(Subnet, subnet_id), estate.one(VirtualNetwork, parent_of(subnet_id))
    nat, service = throughout(estate, policy, NatGateway), throughout(estate, policy, ServiceGateway)
    looks += (subnet, network, nat, service)
    places = {subnet_id.lower(), parent_of(subnet_id).lower()}
    for place, method in (
        *each_of(values_of((subnet,)), by_subnet, looks),
        *each_of(values_of((network,)), by_network, looks),
        *each_of(nat, by_nat_gateway, looks),
        *each_of(service, by_service_gateway, looks),
    ):
        if place.lower() in places:
            yield (method.hop,)
    yield from each_of(values_of((subnet,)), _by_default, looks)
    yield from each_of(values_of((subnet,)), lambda one: _routed(estate, policy, subnet_id, one, looks), looks)


def _by_default(subnet: Subnet) -> Iterator[Path]:
    if subnet.default_outbound_access is not False:
        yield (DEFAULT_OUTBOUND,)


def _routed(estate: Estate, policy: Policy, subnet_id: str, subnet: Subnet, looks: list[Observation]) -> Iterator[Path]:
    if subnet.route_table is None or subnet.route_table.id.lower() in _tables_of_the_cluster(estate):
        return
    seen = estate.one(RouteTable, subnet.route_table.id)
    addresses, firewall = declared_addresses(estate, policy)
    looks += (seen, *firewall)
    routes = seen.value.routes if seen.value is not None else None
    if routes is None:
        looks.append(missing(f"{seen.target}: the answer has no list of routes"))
    # Where the declared firewall was not seen, a default route to an appliance is taken for one that leads to it.
    unseen = any(look.problem is not None for look in firewall)
    for way in public_ways(routes, local_space(estate, subnet_id)):
        if way.leads_on and not (_may_lead_to_it(way) if unseen else leads_to_the_firewall(way, addresses)):
            yield path_of(f"route {way.route.address_prefix}", way.next_hop)


def _tables_of_the_cluster(estate: Estate) -> frozenset[str]:
    """Ids, in lower case, of the route tables of the cluster's subnets."""
    seen = [one.seen.value for one in subnets_of(estate)[0] if one.seen.value is not None]
    unread: list[Observation] = []  # a reference that cannot be read excludes no table
    tables = readable(seen, lambda one: one.route_table, unread)
    return frozenset(table.id.lower() for _, table in tables if table is not None)


def _may_lead_to_it(way: OutboundRoute) -> bool:
    return way.is_default and way.hop is NextHopKind.FORWARDED
