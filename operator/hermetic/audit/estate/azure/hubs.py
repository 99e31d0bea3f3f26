"""Virtual WAN: hubs, the networks connected to them, and the routes of a hub."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


@arm("Microsoft.Network/virtualHubs", NETWORK)
class VirtualHub(Resource):
    azure_firewall: Reference | None = None


class StaticRoute(Part):
    """A route of a hub connection towards an address in the network."""

    address_prefixes: list[str] | None = None


class NetworkRoutes(Part):
    static_routes: list[StaticRoute] | None = None


class RoutingConfiguration(Part):
    """The route table of the hub that a connection uses."""

    associated_route_table: Reference | None = None
    vnet_routes: NetworkRoutes | None = None


@arm("Microsoft.Network/virtualHubs/hubVirtualNetworkConnections", NETWORK)
class HubConnection(Resource):
    remote_virtual_network: Reference | None = None
    enable_internet_security: bool | None = None
    """True: the hub may propagate its default route to the network."""
    routing_configuration: RoutingConfiguration | None = None


class HubRoute(Part):
    """One route of a hub; `next_hop_type` is open: Azure Firewall, VPN_S2S_Gateway, ..."""

    address_prefixes: list[str] | None = None
    next_hop_type: str | None = None


@arm("Microsoft.Network/virtualHubs", NETWORK, "effectiveRoutes")
class HubRoutes(Resource):
    """The effective routes of a hub: the answer of effectiveRoutes."""

    value: list[HubRoute] | None = None
