"""Virtual WAN: a hub connected to the cluster's network can propagate a default route to it at any time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.cluster.resource_lookup import values_of
from hermetic.audit.cluster.virtual_hubs import (
    HUB_NETWORK,
    Joined,
    hub_connections,
    hub_of,
    is_hub_or_connection,
    is_named_as_of_a_hub,
    joins,
    peer_ids_of,
    remote_name_of,
)
from hermetic.audit.estate.arm_ids import name_of, same_id
from hermetic.audit.estate.azure.managed_services import AzureFirewall
from hermetic.audit.estate.azure.routing import HubRoutes
from hermetic.audit.estate.azure.vnet import Peering, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.evaluation.each_resource import each_network, each_or_none
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import Space, is_default, is_public, space, union, without
from hermetic.audit.model.address_ranges import network as prefix_of
from hermetic.audit.model.address_ranges import prefixes as address_prefixes
from hermetic.audit.model.hops import INTERNET, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall_sources import space_of
from hermetic.audit.rules.routes import next_hop

SPOKE, FIREWALL = "virtual network connection", "azure firewall"
"""Types of next hop in a hub's effective routes, in lower case."""

GATEWAYS = ("vpn_s2s_gateway", "vpn_p2s_gateway", "expressroutegateway")
"""The same, of gateways, and of appliances in the hub, which show as VPN_S2S_Gateway.

learn.microsoft.com/azure/virtual-wan/effective-routes-virtual-hub lists Virtual Network Connection, VPN_S2S_Gateway,
ExpressRouteGateway, Remote Hub and Azure Firewall; .../virtual-wan/routing-deep-dive says what appliances show as. Any
other type is Unknown, and a Fail with a default route.
"""


@dataclass(frozen=True, slots=True)
class HubExits:
    """Where the routes of a hub lead, beside the networks that it connects.

    `default` is the type of the default route's next hop; "" without one. `forbidden` and `unread` are messages: about
    routes that lead out, and about routes that are not followed.
    """

    default: str
    forbidden: tuple[str, ...]
    unread: tuple[str, ...]


@check_each("vwan-connection", each_network)
def vwan_connection(estate: Estate, policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """A hub connection to one of the cluster's networks."""
    ours = hub_connections(estate, policy).where(lambda joined: joins(joined, network.target))
    peerings = estate.every(Peering, network.target)
    for peering in peerings:
        if hub_of(estate, policy, peering) is None:
            yield from whatever_is_damaged(peering.id, _by_peering(estate, policy, network, peering))
    none = "no virtual hub is connected"
    yield from each_or_none(
        network.target, ours, lambda joined: _evaluate(estate, policy, network, joined), none, network, peerings
    )


def _by_peering(
    estate: Estate, policy: Policy, network: Lookup[VirtualNetwork], peering: Peering
) -> Iterator[CheckResult]:
    """The peering with a hub's own network (Microsoft's), which Azure creates in a connected network.

    It exists whether or not the hub's subscription can be read.
    """
    if not is_named_as_of_a_hub(peering):
        return
    remote_name = remote_name_of(peering)
    hub = remote_name[len(HUB_NETWORK) :] if remote_name.lower().startswith(HUB_NETWORK) else peering.name
    message = (
        f"peering {peering.name} is that of a virtual hub ({hub}); no connection of a hub that was read explains it"
    )
    connections = hub_connections(estate, policy)
    if any(map(is_hub_or_connection, policy.allowed_peerings)):
        yield unknown(peering.id, "HubNotSeen", message, connections, peering)
        return
    path = path_of(hops.vnet(name_of(network.target)), hops.peer(f"virtual hub {hub}"))
    yield fails(peering.id, "HubPeering", message, peering, paths=(path,))


def _evaluate(estate: Estate, policy: Policy, network: Lookup[VirtualNetwork], joined: Joined) -> Iterator[CheckResult]:
    connection = joined.connection
    routes = _routes_of(estate, joined)
    exits = _exits(estate, policy, joined, routes)
    message = f"connected to virtual hub {joined.hub.name}"
    if connection.enable_internet_security:
        message += ", which may hand its default route down (enableInternetSecurity)"
    if exits.default:
        message += f"; its default route leads to {exits.default}"
    path = path_of(hops.vnet(name_of(network.target)), hops.peer(f"virtual hub {joined.hub.name}"))
    path += (next_hop(exits.default, exits.default.lower()), INTERNET) if exits.default else ()
    if not policy.allows_peering(joined.hub.id, connection.id):
        yield fails(connection.id, "HubConnected", message, connection, paths=(path,))
    elif exits.forbidden:
        explanation = f"{message}; the policy allows the hub, and its routes lead out: {'; '.join(exits.forbidden)}"
        yield fails(connection.id, "HubLeadsOut", explanation, connection, routes, paths=(path,), remedy=ALLOWED_REMEDY)
    elif exits.unread:
        explanation = f"{message}; {'; '.join(exits.unread)}"
        yield unknown(connection.id, "RouteNotFollowed", explanation, connection, routes, remedy=ALLOWED_REMEDY)
    else:
        explanation = f"the policy allows the hub {joined.hub.name}, and its routes lead to networks in reach alone"
        yield passes(connection.id, "HubAllowed", explanation, connection, routes)


ALLOWED_REMEDY = """\
The policy allows this hub. The operator of the hub removes the route that the message names from the route table that
the connection uses, or connects the network by a route table without it.
"""


def _routes_of(estate: Estate, joined: Joined) -> Lookup[HubRoutes]:
    """The effective routes of the hub's route table that the connection uses."""
    routing = joined.connection.routing_configuration
    table = routing.associated_route_table if routing is not None else None
    table_id = table.id if table is not None else f"{joined.hub.id}/hubRouteTables/defaultRouteTable"
    return estate.asked(HubRoutes, joined.hub.id, {"resourceId": table_id, "virtualWanResourceType": "RouteTable"})


def _exits(estate: Estate, policy: Policy, joined: Joined, routes: Lookup[HubRoutes]) -> HubExits:
    listed = routes.value.value if routes.value is not None else None
    default, forbidden, unread = "", list[str](), list[str]()
    if listed is None:
        unread.append("the effective routes of the hub have no list")
    in_reach = _space_in_reach(estate, policy)
    is_declared = _has_the_declared_firewall(estate, policy, joined)
    for route in listed or ():
        hop = route.next_hop_type or "a hop without a name"
        prefixes = [prefix_of(text) for text in route.address_prefixes or ()]
        if any(prefix is not None and is_default(prefix) for prefix in prefixes):
            default = hop
        if hop.lower() == FIREWALL and is_declared:
            continue
        message = f"{', '.join(route.address_prefixes or ()) or 'a route without a prefix'} by {hop}"
        beyond = without(space(prefix for prefix in prefixes if prefix is not None), in_reach)
        leads_out = hop.lower() in (*GATEWAYS, FIREWALL) or any(
            prefix is None or is_default(prefix) for prefix in prefixes
        )
        if leads_out or any(is_public(prefix) for prefix in address_prefixes(beyond)):
            forbidden.append(message)
        elif hop.lower() != SPOKE or beyond:
            unread.append(f"the audit does not read what is behind {message}")
    return HubExits(default, tuple(forbidden), tuple(unread))


def _space_in_reach(estate: Estate, policy: Policy) -> Space:
    """Addresses of the cluster's networks and of those that the hub connects, as far as they were read.

    A route of a hub may lead to an appliance in one of these networks, with a prefix that is in none of them.
    """
    networks = (
        estate.one(VirtualNetwork, network_id) for network_id in (*network_ids_of(estate), *peer_ids_of(estate, policy))
    )
    return union(span for network in values_of(networks) for span in space_of(network))


def _has_the_declared_firewall(estate: Estate, policy: Policy, joined: Joined) -> bool:
    """Whether the one firewall that the profile `filtered` allows is the secured hub's own."""
    if policy.profile != "filtered":
        return False
    firewall = estate.one(AzureFirewall, policy.firewall).value
    hub = firewall.virtual_hub if firewall is not None else None
    return hub is not None and same_id(hub.id, joined.hub.id)
