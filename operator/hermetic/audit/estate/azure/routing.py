"""Route tables, and appliances that forward inside Azure's own network."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class Route(Part):
    """One user-defined route. `next_hop_type` is open: Internet, None, VirtualAppliance, VirtualNetworkGateway, ..."""

    name: str = ""
    address_prefix: str | None = None
    next_hop_type: str | None = None
    next_hop_ip_address: str | None = None


@arm("Microsoft.Network/routeTables", NETWORK)
class RouteTable(Resource):
    routes: list[Route] | None = None
    disable_bgp_route_propagation: bool | None = None
    """None means false: routes learned by gateways are propagated."""


@arm("Microsoft.Network/virtualNetworkAppliances", NETWORK)
class VirtualNetworkAppliance(Resource):
    """A managed router with an address in a subnet."""

    subnet: Reference | None = None
