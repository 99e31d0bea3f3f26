"""Route tables, and appliances that forward inside Azure's own network."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Reference, Resource


class Route(Part):
    """One user-defined route. `next_hop_type` is open: Internet, None, VirtualAppliance, VirtualNetworkGateway, ..."""

    name: str = ""
    address_prefix: str | None = None
    next_hop_type: str | None = None
    next_hop_ip_address: str | None = None


class RouteTable(Resource):
    """Microsoft.Network/routeTables."""

    TYPE: ClassVar[str] = "Microsoft.Network/routeTables"
    API_VERSION: ClassVar[str] = NETWORK

    routes: list[Route] | None = None
    disable_bgp_route_propagation: bool | None = None
    """None means false: routes learned by gateways are propagated."""


class VirtualNetworkAppliance(Resource):
    """Microsoft.Network/virtualNetworkAppliances: a managed router with an address in a subnet."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworkAppliances"
    API_VERSION: ClassVar[str] = NETWORK

    subnet: Reference | None = None
