"""Egress paths of a machine beside the nodes that its network gives it: learned routes, service endpoints, storage.

Storage of the same region can be reached from a private subnet without any outbound method (Azure: Default outbound
access, limitations of private subnets), so a machine there relays to any account unless a rule or a route stops it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.audit.cluster.gateways import distant_networks, gateways_in
from hermetic.audit.cluster.resource_lookup import security_group
from hermetic.audit.cluster.virtual_hubs import hub_connections, joins
from hermetic.audit.egress.service_endpoints import is_storage, storage_reach
from hermetic.audit.estate.arm_ids import name_of, parent_of
from hermetic.audit.estate.azure.routing import LearnedRoute, LearnedRoutes, RouteTable, VirtualNetworkGateway
from hermetic.audit.estate.azure.vnet import Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Missing, Observation, missing
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import Space, is_public, networks, space, union, without
from hermetic.audit.model.address_ranges import network as prefix_of
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import SERVICE_ENDPOINT, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.network_manager import rules_past_groups
from hermetic.audit.rules.nsg_rules import RuleContext, denies_tag, holes, reachable_through
from hermetic.audit.rules.prefix_sets import prefix_sets
from hermetic.audit.rules.routes import NextHopKind, public_routes
from hermetic.audit.rules.subnet_context import network_space, widens_the_network_tag

ROUTE_SERVER_SUBNET = "routeserversubnet"


def learned_egress_paths(
    estate: Estate, policy: Policy, subnet: Subnet, network: Lookup[VirtualNetwork], observations: list[Observation]
) -> Iterator[Path]:
    """Default and public routes that gateways and virtual hubs propagate to the subnet, unless its table refuses."""
    table = _table(estate, subnet)
    if table is not None and table.value is not None and table.value.disable_bgp_route_propagation is True:
        return
    near = [network, *distant_networks(estate, policy, network.target)]
    for home in near:
        gateways = gateways_in(estate, home)
        observations += (home, gateways)
        for gateway in gateways:
            own = union((*network_space(estate, network.target), *network_space(estate, home.target)))
            yield from _of_gateway(estate, gateway, own, observations)
        observations += _route_servers_in(home)
    joined = hub_connections(estate, policy)
    observations.append(joined)
    for hub_connection in joined:
        if joins(hub_connection, network.target) and hub_connection.connection.enable_internet_security is not False:
            yield path_of(hops.peer(f"virtual hub {hub_connection.hub.name}"), "its default route")


def _route_servers_in(home: Lookup[VirtualNetwork]) -> Iterator[Observation]:
    """What is missing where a network has a route server: peers that use its gateways learn from it as well.

    learn.microsoft.com/azure/virtual-network/virtual-network-manage-peering: a peering that uses remote gateways uses
    the gateway or the route server of the remote network.
    """
    subnets = home.value.subnets if home.value is not None else []
    if any(name_of(subnet.id).lower() == ROUTE_SERVER_SUBNET for subnet in subnets):
        yield missing(f"{home.target}: the audit does not read what its route server has learned")


def _of_gateway(
    estate: Estate, gateway: VirtualNetworkGateway, own: Space, observations: list[Observation]
) -> Iterator[Path]:
    learned = estate.asked(LearnedRoutes, gateway.id)
    observations.append(learned)
    if (gap := without_a_list(learned)) is not None:
        observations.append(gap)
    here = hops.gateway(f"gateway {gateway.name}")
    if gateway.gateway_default_site is not None:
        yield path_of(here, f"default site {name_of(gateway.gateway_default_site.id)}")
    yield from (path_of(here, f"learned route {prefix}") for prefix in public_prefixes(learned, own))


def endpoint_egress_paths(
    estate: Estate, policy: Policy, subnet: Subnet, observations: list[Observation]
) -> Iterator[Path]:
    """Service endpoints of the subnet: instances of any tenant, but for storage behind a policy of named accounts."""
    services = [endpoint.service or "" for endpoint in subnet.service_endpoints if not is_storage(endpoint.service)]
    yield from (path_of(SERVICE_ENDPOINT, service or "a service without a name") for service in services)
    reach = storage_reach(estate, policy, subnet)
    if reach is not None and reach.severity is None:
        observations += reach.observations
    elif reach is not None and reach.severity is not Severity.MEDIUM:
        yield path_of(SERVICE_ENDPOINT, hops.storage(f"storage ({reach.message})"))


@dataclass(frozen=True, slots=True, order=True)
class RulesOf:
    """The security group of an interface, "" without one, and the application security groups that it is in."""

    group_id: str
    application_groups: tuple[str, ...]


def storage_egress_paths(
    estate: Estate, subnet: Subnet, interface: RulesOf, observations: list[Observation]
) -> Iterator[Path]:
    """Same-region storage of any account, where neither a security group nor a default route to nowhere stops it.

    What a group stops, an admin rule of Network Manager that is evaluated before it may let through; no rule changes
    what a route drops.
    """
    table = _table(estate, subnet)
    prefixes = networks(subnet.prefixes)
    local = union((*space(prefixes), *network_space(estate, parent_of(subnet.id))))
    if table is not None and _drops_all(table, local):
        observations.append(table)
        return
    own = (subnet.network_security_group.id,) if subnet.network_security_group is not None else ()
    groups = [security_group(estate, group_id) for group_id in dict.fromkeys((*own, interface.group_id)) if group_id]
    observations += groups
    has_v6 = any(prefix.version == 6 for prefix in prefixes)
    leads_out = widens_the_network_tag(table, local, has_v6=has_v6)
    read = [group.value.rules for group in groups if group.value is not None]
    sets, of_sets = prefix_sets(estate, (group.value for group in groups if group.value is not None))
    observations += of_sets
    rule_context = RuleContext(space(prefixes), local, has_v6, leads_out, frozenset(interface.application_groups), sets)
    here = hops.storage("same-region storage of any account")
    is_denied = any(denies_tag(rules, "Storage", rule_context) for rules in read)
    if is_denied or not reachable_through([holes(rules, rule_context) for rules in read], rule_context):
        rules, rests_on = rules_past_groups(estate, parent_of(subnet.id), network_tag_leads_out=leads_out)
        observations += rests_on
        yield from (path_of(f"admin rule {name_of(rule.id or 'not named')}", here) for rule in rules)
    elif len(read) == len(groups):
        yield path_of(here)


def _table(estate: Estate, subnet: Subnet) -> Lookup[RouteTable] | None:
    return estate.one(RouteTable, subnet.route_table.id) if subnet.route_table is not None else None


def _drops_all(table: Lookup[RouteTable], local: Space) -> bool:
    """Whether the IPv4 default route leads to nowhere, and no public prefix or service tag has another route."""
    routes = public_routes(table.value.routes if table.value is not None else None, local)
    drops = [route.hop is NextHopKind.DROPPED for route in routes]
    return any(route.is_default and route.prefix is not None and route.prefix.version == 4 for route in routes) and all(
        drops
    )


def learned_routes(learned: Lookup[LearnedRoutes]) -> list[LearnedRoute]:
    """The routes that were answered; none where nothing was."""
    return (learned.value.value or []) if learned.value is not None else []


def without_a_list(learned: Lookup[LearnedRoutes]) -> Missing | None:
    """What is missing where the action was answered without its list."""
    if learned.value is None or learned.value.value is not None:
        return None
    return missing(f"{learned.target}: the answer of {LearnedRoutes.ACTION} has no list")


def public_prefixes(learned: Lookup[LearnedRoutes], own: Space) -> list[str]:
    """Public prefixes that were learned, but for the networks' `own` space; text that is no prefix counts as public.

    Networks may use public prefixes, and a gateway lists those of its own with the origin Network. It lists static
    routes so too (Azure PowerShell, Get-AzVirtualNetworkGatewayLearnedRoute), so the origin alone excuses none.
    """
    return [route.network or "?" for route in learned_routes(learned) if not _is_private(route, own)]


def _is_private(route: LearnedRoute, own: Space) -> bool:
    prefix = prefix_of(route.network or "?")
    if prefix is None:
        return False
    is_own = (route.origin or "").lower() == "network" and not without(space((prefix,)), own)
    return is_own or not is_public(prefix)
