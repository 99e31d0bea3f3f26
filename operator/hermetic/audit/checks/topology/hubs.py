"""Virtual WAN: a hub connected to the cluster's network can propagate a default route to it at any time."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.egress.address_ranges import is_default
from hermetic.audit.egress.address_ranges import network as prefix_of
from hermetic.audit.egress.routes import next_hop
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.routing import HubRoutes
from hermetic.audit.estate.azure.vnet import Peering, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Seen
from hermetic.audit.evaluation import CheckResult, fails, whatever_is_damaged
from hermetic.audit.gateway_finding import Joined, hub_connections, joins
from hermetic.audit.hops import INTERNET, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_network, each_or_none

HUB_NETWORK, HUB_PEERING = "hv_", "remotevnettohubpeering"
"""Prefixes, in lower case, of the names that Azure gives to a hub's own network and to the peering with it."""


@check_each("vwan-connection", each_network)
def vwan_connection(estate: Estate, policy: Policy, network: Seen[VirtualNetwork]) -> Iterator[CheckResult]:
    """A hub connection to one of the cluster's networks."""
    ours = hub_connections(estate, policy).where(lambda one: joins(one, network.target))
    peerings = estate.every(Peering, network.target)
    if not ours.items:
        for peering in peerings:
            yield from whatever_is_damaged(peering.id, _by_peering(network, peering))
    none = "no virtual hub is connected"
    yield from each_or_none(network.target, ours, lambda one: _evaluate(estate, network, one), none, network, peerings)


def _by_peering(network: Seen[VirtualNetwork], peering: Peering) -> Iterator[CheckResult]:
    """The peering with a hub's own network (Microsoft's), which Azure creates in a connected network.

    It exists whether or not the hub's subscription can be read.
    """
    remote = peering.remote_virtual_network
    remote_name = name_of(remote.id) if remote is not None else ""
    if not (remote_name.lower().startswith(HUB_NETWORK) or peering.name.lower().startswith(HUB_PEERING)):
        return
    hub = remote_name[len(HUB_NETWORK) :] if remote_name.lower().startswith(HUB_NETWORK) else peering.name
    words = (
        f"peering {peering.name} is that of a virtual hub ({hub}); the hub itself is in no subscription that was read"
    )
    path = path_of(hops.vnet(name_of(network.target)), hops.peer(f"virtual hub {hub}"))
    yield fails(peering.id, "HubPeering", words, peering, paths=(path,))


def _evaluate(estate: Estate, network: Seen[VirtualNetwork], joined: Joined) -> Iterator[CheckResult]:
    connection = joined.connection
    hop = _default_hop(estate, joined)
    words = f"connected to virtual hub {joined.hub.name}"
    if connection.enable_internet_security:
        words += ", which may hand its default route down (enableInternetSecurity)"
    if hop:
        words += f"; its default route leads to {hop}"
    path = path_of(hops.vnet(name_of(network.target)), hops.peer(f"virtual hub {joined.hub.name}"))
    path += (next_hop(hop, hop.lower()), INTERNET) if hop else ()
    yield fails(connection.id, "HubConnected", words, connection, paths=(path,))


def _default_hop(estate: Estate, joined: Joined) -> str:
    """The next hop type of the hub's default route; "" when there is none or it was not read."""
    routing = joined.connection.routing_configuration
    table = routing.associated_route_table if routing is not None else None
    table_id = table.id if table is not None else f"{joined.hub.id}/hubRouteTables/defaultRouteTable"
    body = {"resourceId": table_id, "virtualWanResourceType": "RouteTable"}
    seen = estate.asked(HubRoutes, joined.hub.id, body)
    for route in (seen.value.value or ()) if seen.value is not None else ():
        prefixes = [prefix_of(one) for one in route.address_prefixes or ()]
        if any(one is not None and is_default(one) for one in prefixes):
            return route.next_hop_type or "a hop without a name"
    return ""
