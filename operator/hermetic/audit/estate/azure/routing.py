"""Route tables, and what routes lead through: appliances, gateways of virtual networks, virtual hubs."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.azure.vnet import AddressSpace
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


@arm("Microsoft.Network/virtualNetworks/subnets", NETWORK)
class GatewaySubnet(Resource):
    """A subnet, read for the resources in it. Gateways are allowed only in the one named GatewaySubnet."""

    ip_configurations: list[Reference] | None = None


class GatewayIpConfiguration(Part):
    subnet: Reference | None = None
    public_ip_address: Reference | None = None


class VpnClients(Part):
    """Point-to-site: the address range of VPN clients."""

    vpn_client_address_pool: AddressSpace | None = None


@arm("Microsoft.Network/virtualNetworkGateways", NETWORK)
class VirtualNetworkGateway(Resource):
    """Azure lists them by resource group only."""

    gateway_type: str | None = None
    ip_configurations: list[GatewayIpConfiguration] | None = None
    gateway_default_site: Reference | None = None
    vpn_client_configuration: VpnClients | None = None

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """The gateway subnets that it has an address in."""
        return tuple(
            configuration.subnet.id
            for configuration in self.ip_configurations or ()
            if configuration.subnet is not None
        )


@arm("Microsoft.Network/connections", NETWORK)
class VirtualNetworkGatewayConnection(Resource):
    """Site to site, ExpressRoute, network to network. Lists omit the status."""

    connection_status: str | None = None
    """Unknown, Connecting, Connected or NotConnected; open."""
    virtual_network_gateway1: Reference | None = None
    virtual_network_gateway2: Reference | None = None

    @property
    def gateway_ids(self) -> tuple[str, ...]:
        """The gateways at its ends, in lower case."""
        ends = (self.virtual_network_gateway1, self.virtual_network_gateway2)
        return tuple(gateway.id.lower() for gateway in ends if gateway is not None)


@arm("Microsoft.Network/virtualNetworkGateways/connections", NETWORK)
class GatewayConnection(Resource):
    """The connections of one gateway, in every resource group."""


class LearnedRoute(Part):
    """One route learned by a gateway; `origin` is Network for the network's own prefixes."""

    network: str | None = None
    next_hop: str | None = None
    origin: str | None = None


@arm("Microsoft.Network/virtualNetworkGateways", NETWORK, "getLearnedRoutes")
class LearnedRoutes(Resource):
    """The routes that a gateway has learned by BGP."""

    value: list[LearnedRoute] | None = None


@arm("Microsoft.Network/virtualHubs", NETWORK)
class VirtualHub(Resource):
    """A hub of Virtual WAN; its connections and routes are resources and answers of their own."""

    address_prefix: str | None = None


class RoutingConfiguration(Part):
    """The route table of the hub that a connection uses."""

    associated_route_table: Reference | None = None


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
