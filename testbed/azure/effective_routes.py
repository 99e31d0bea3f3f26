"""Which routes a subnet's interfaces have: system, user, gateway, peering, service and private endpoints.

Computed as Azure documents the selection: of routes to one prefix the user's wins over the gateway's, and the gateway's
over Azure's; service endpoint routes are never overridden; among prefixes the longest wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from testbed.azure.addresses import DEFAULTS, RESERVED, covered, holds_address, service_prefixes
from testbed.azure.estate import Estate
from testbed.azure.ids import parent_of

Body = dict[str, Any]
GATEWAY = "VirtualNetworkGateway"
RANK = {"User": 0, GATEWAY: 1, "Default": 2}
UNBEATABLE = {"VirtualNetworkServiceEndpoint", "InterfaceEndpoint"}


@dataclass(frozen=True)
class Route:
    """One line of an effective route table."""

    source: str
    prefix: str
    hop: str
    address: str = ""
    name: str = ""
    state: str = "Active"
    table: str = "System Route"

    def as_body(self, propagation_off: bool) -> Body:
        return {
            "name": self.name or None,
            "source": self.source,
            "state": self.state,
            "addressPrefix": [self.prefix],
            "nextHopType": self.hop,
            "nextHopIpAddress": [self.address] if self.address else [],
            "disableBgpRoutePropagation": propagation_off,
        }


def routes_of(estate: Estate, subnet_id: str) -> list[Route]:
    """Every route of a subnet, the beaten ones as `Invalid`."""
    subnet = estate.properties(subnet_id)
    vnet_id = parent_of(subnet_id)
    table = estate.find((subnet.get("routeTable") or {}).get("id", "")) if subnet.get("routeTable") else None
    routes = [*_system(estate, vnet_id, subnet), *_peered(estate, vnet_id), *_endpoints(estate, vnet_id, subnet)]
    if not propagation_off(table):
        routes += _learned(estate, vnet_id)
    routes += _user(table)
    return [_in_effect(route, routes) for route in routes]


def propagation_off(table: Body | None) -> bool:
    return bool(table and table["properties"].get("disableBgpRoutePropagation"))


def next_hop(estate: Estate, subnet_id: str, destination: str) -> Route:
    """The route that a packet to this address takes."""
    lengths = [
        (holds_address(route.prefix, destination), route)
        for route in routes_of(estate, subnet_id)
        if route.state == "Active"
    ]
    fitting = [(length, -RANK[route.source], route) for length, route in lengths if length is not None]
    best = max(fitting, key=lambda choice: choice[:2], default=None)
    return best[2] if best else Route("Default", destination, "None")


def _in_effect(route: Route, routes: list[Route]) -> Route:
    if route.hop in UNBEATABLE:
        return route
    other_routes = [other for other in routes if other.prefix == route.prefix and other.hop not in UNBEATABLE]
    beaten = any(RANK[other.source] < RANK[route.source] for other in other_routes)
    return replace(route, state="Invalid") if beaten else route


def _system(estate: Estate, vnet_id: str, subnet: Body) -> Iterator[Route]:
    space = _space(estate, vnet_id)
    for prefix in space:
        yield Route("Default", prefix, "VnetLocal")
    has_v6 = any(":" in prefix for prefix in _prefixes(subnet))
    for prefix in DEFAULTS[: 2 if has_v6 else 1]:
        yield Route("Default", prefix, "Internet")
    for prefix in RESERVED:
        if not covered(prefix, space):
            yield Route("Default", prefix, "None")


def _peered(estate: Estate, vnet_id: str) -> Iterator[Route]:
    for peering in estate.properties(vnet_id).get("virtualNetworkPeerings") or ():
        properties = peering["properties"]
        if properties.get("peeringState") != "Connected":
            continue
        for prefix in (properties.get("remoteAddressSpace") or {}).get("addressPrefixes", ()):
            yield Route("Default", prefix, "VNetPeering")


def _endpoints(estate: Estate, vnet_id: str, subnet: Body) -> Iterator[Route]:
    for endpoint in subnet.get("serviceEndpoints") or ():
        for prefix in service_prefixes(endpoint["service"]):
            yield Route("Default", prefix, "VirtualNetworkServiceEndpoint")
    reachable = {vnet_id.lower(), *_peers(estate, vnet_id)}
    for private in estate.of_type("Microsoft.Network/privateEndpoints"):
        home = ((private["properties"].get("subnet")) or {}).get("id", "")
        if parent_of(home).lower() not in reachable:
            continue
        for entry in private["properties"].get("customDnsConfigs") or ():
            for address in entry.get("ipAddresses", ()):
                yield Route("Default", f"{address}/32", "InterfaceEndpoint")


def _learned(estate: Estate, vnet_id: str) -> Iterator[Route]:
    """What gateways in the network, or in a peer whose gateway it uses, have learned, and what virtual hubs push."""
    peerings = estate.properties(vnet_id).get("virtualNetworkPeerings") or ()
    homes = {vnet_id.lower()}
    homes |= {
        str(peering["properties"].get("remoteVirtualNetwork", {}).get("id", "")).lower()
        for peering in peerings
        if peering["properties"].get("useRemoteGateways")
    }
    for gateway in estate.of_type("Microsoft.Network/virtualNetworkGateways"):
        if home_of(gateway) in homes:
            yield from (Route(GATEWAY, prefix, GATEWAY) for prefix in reach(estate, gateway))
    for connection in estate.of_type("Microsoft.Network/virtualHubs/hubVirtualNetworkConnections"):
        properties = connection["properties"]
        is_ours = properties["remoteVirtualNetwork"]["id"].lower() == vnet_id.lower()
        if is_ours and properties.get("enableInternetSecurity"):
            yield Route(GATEWAY, DEFAULTS[0], GATEWAY)


def home_of(gateway: Body) -> str:
    """The folded id of the network that a gateway is in."""
    for configuration in gateway["properties"].get("ipConfigurations") or ():
        return parent_of(configuration["properties"]["subnet"]["id"]).lower()
    return ""


def reach(estate: Estate, gateway: Body) -> list[str]:
    """Prefixes behind a gateway: learned by BGP, and its clients' pool."""
    learned = estate.answers.get((gateway["id"].lower(), "getlearnedroutes"), {"value": []})
    pool = (gateway["properties"].get("vpnClientConfiguration") or {}).get("vpnClientAddressPool") or {}
    return [*(route["network"] for route in learned.get("value", ())), *pool.get("addressPrefixes", ())]


def _user(table: Body | None) -> Iterator[Route]:
    for route in (table or {}).get("properties", {}).get("routes") or ():
        properties = route["properties"]
        yield Route(
            "User",
            properties["addressPrefix"],
            properties["nextHopType"],
            properties.get("nextHopIpAddress") or "",
            route["name"],
            table=table["id"] if table else "",
        )


def _space(estate: Estate, vnet_id: str) -> tuple[str, ...]:
    return tuple((estate.properties(vnet_id).get("addressSpace") or {}).get("addressPrefixes", ()))


def _prefixes(subnet: Body) -> list[str]:
    return subnet.get("addressPrefixes") or [subnet.get("addressPrefix") or ""]


def _peers(estate: Estate, vnet_id: str) -> set[str]:
    peerings = estate.properties(vnet_id).get("virtualNetworkPeerings") or ()
    return {str(peering["properties"].get("remoteVirtualNetwork", {}).get("id", "")).lower() for peering in peerings}
