"""Routes that are not configured by us: learned from gateways, or Azure's own where a table is missing."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.checks.routes.tables import ServedTable, each_table
from hermetic.audit.cluster.gateways import gateways_in
from hermetic.audit.cluster.members import ScopedSubnet
from hermetic.audit.cluster.virtual_hubs import hub_connections, hub_of, joins
from hermetic.audit.estate.arm_ids import name_of, parent_of
from hermetic.audit.estate.azure.vnet import Peering, Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.evaluation.each_resource import each_subnet
from hermetic.audit.evaluation.results import CheckResult, fails, passes
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import declared_addresses, leads_to_the_firewall
from hermetic.audit.rules.routes import NextHopKind
from hermetic.audit.rules.subnet_context import SubnetContext

ROUTE_SERVER_SUBNET = "routeserversubnet"


ADD_ROUTES = """\
Try it on a test cluster first.
Warning: packets that leave by a default route today are dropped at once.
az network route-table route create --subscription SUBSCRIPTION_ID --resource-group RESOURCE_GROUP \\
--route-table-name ROUTE_TABLE_NAME --name NEW_NAME --address-prefix DESTINATION --next-hop-type None"""


@check("route-bgp-propagation")
def route_bgp_propagation(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Routes that a gateway learns apply to every subnet whose table does not disable propagation."""

    def without_table(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
        if subnet.route_table is None:
            yield from _in_reach(estate, policy, scoped.id, (scoped.id,), scoped.observation)

    def evaluate(served: ServedTable) -> Iterator[CheckResult]:
        subnets = tuple(context.id for context in served.subnets)
        if served.table.disable_bgp_route_propagation is True:
            yield passes(served.table.id, "PropagationOff", "disableBgpRoutePropagation is true", served.observation)
        else:
            yield from _in_reach(estate, policy, served.table.id, subnets, served.observation)

    yield from each_subnet(estate, policy, without_table)
    yield from (result for result in each_table(estate, policy, evaluate) if result.reason != "NoRouteTable")


def _in_reach(
    estate: Estate, policy: Policy, resource: str, subnets: tuple[str, ...], observation: Observation
) -> Iterator[CheckResult]:
    """Fail where a gateway, a route server or a virtual hub can propagate routes to one of these subnets."""
    gateways: list[Hop] = []
    observations: list[Observation] = [observation]
    for network_id in sorted({parent_of(subnet_id).lower(): parent_of(subnet_id) for subnet_id in subnets}.values()):
        network_gateways, rests_on = _gateways(estate, policy, network_id)
        gateways += network_gateways
        observations += rests_on
    if gateways:
        names = ", ".join(gateway.label for gateway in gateways)
        yield fails(
            resource,
            "LearnsRoutes",
            f"disableBgpRoutePropagation is not true, and routes may be learned from {names}",
            observation,
            paths=(
                path_of(hops.subnet(name_of(subnet_id)), gateway, "learned default route")
                for subnet_id in subnets
                for gateway in gateways
            ),
        )
    else:
        yield passes(
            resource, "NothingToLearnFrom", "no gateway, route server or virtual hub is in reach", *observations
        )


def _gateways(estate: Estate, policy: Policy, network_id: str) -> tuple[list[Hop], tuple[Observation, ...]]:
    network = estate.one(VirtualNetwork, network_id)
    own = gateways_in(estate, network)
    peerings, hubs = estate.every(Peering, network_id), hub_connections(estate, policy)
    using = [peering for peering in peerings if peering.connects and peering.use_remote_gateways is True]
    remote = [peering.name for peering in using if hub_of(estate, policy, peering) is None]
    gateways = [hops.gateway(f"gateway {gateway.name}") for gateway in own]
    gateways += [Hop(PlaceKind.OTHER, f"the route server of {network_id}") for _ in _route_servers(network)]
    gateways += [hops.gateway(f"the gateway behind peering {name}") for name in remote]
    gateways += [hops.peer(f"virtual hub {joined.hub.name}") for joined in hubs if joins(joined, network_id)]
    return gateways, (network, own, peerings, hubs)


def _route_servers(network: Lookup[VirtualNetwork]) -> list[str]:
    """Subnets with a route server: only this one can hold it. Routes that appliances announce to it are propagated."""
    subnets = network.value.subnets if network.value is not None else []
    return [subnet.id for subnet in subnets if name_of(subnet.id).lower() == ROUTE_SERVER_SUBNET]


@check("route-table-missing")
def route_table_missing(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """An explicit route to `None` holds even if every other setting is lost."""

    def without_table(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
        if subnet.route_table is None:
            message = "no route table: only Azure's own default route, which leads to the internet"
            path = path_of(hops.subnet(subnet.name), "system route 0.0.0.0/0", INTERNET)
            yield fails(scoped.id, "NoRouteTable", message, scoped.observation, paths=(path,))

    def evaluate(served: ServedTable) -> Iterator[CheckResult]:
        addresses, observations = declared_addresses(estate, policy)
        missing = sorted({prefix for context in served.subnets for prefix in _unrouted(context, addresses)})
        if missing:
            message = f"no route of ours for {', '.join(missing)} leads to nowhere"
            fill = {
                "DESTINATION": missing,
                "NEW_NAME": [f"to-nowhere-{6 if ':' in prefix else 4}" for prefix in missing],
            }
            yield fails(
                served.table.id,
                "NoRouteToNowhere",
                message,
                served.observation,
                *observations,
                remedy=ADD_ROUTES,
                fill=fill,
            )
        else:
            yield passes(
                served.table.id, "RoutedToNowhere", "the default routes are our own", served.observation, *observations
            )

    yield from each_subnet(estate, policy, without_table)
    yield from (result for result in each_table(estate, policy, evaluate) if result.reason != "NoRouteTable")


def _unrouted(around: SubnetContext, firewall: tuple[str, ...]) -> Iterator[str]:
    """Default prefixes of the IP versions in use with no route, or one to neither `None` nor the declared firewall."""
    for version, prefix in ((4, "0.0.0.0/0"), (6, "::/0")):
        default_routes = [
            route
            for route in around.outbound_routes
            if route.is_default and route.prefix and route.prefix.version == version
        ]
        is_used = version == 4 or around.rule_context.has_v6
        if is_used and not (
            default_routes
            and all(
                route.hop is NextHopKind.DROPPED or leads_to_the_firewall(route, firewall) for route in default_routes
            )
        ):
            yield prefix
