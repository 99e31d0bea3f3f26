"""Table B: routes, and what the platform says of them."""

from __future__ import annotations

from testbed.azure.baseline.layout import LOCATION
from testbed.azure.effective_routes import routes_of
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import (
    EGRESS_PATH_CHECKS,
    PIPS,
    gateway,
    nat_gateway,
    network,
    public_address,
    set_route,
    subnet,
)
from testbed.azure.plants.plant import Named, plant

SEEN_BY = ("effective-routes", "nexthop-spotcheck", "route-table-missing")
APPLIANCE = "10.40.12.200"
GATEWAYS = ("vnet-gateway", "gateway-forced-tunnel", "route-bgp-propagation")


@plant("route-default-internet", "medium", also=SEEN_BY, spot="v4-route", depends=True)
def default_route_to_the_internet(estate: Estate) -> Named:
    """The default route leads to the internet; the subnet is private and has no method, so it breaks there today."""
    return set_route(estate, "default-v4", "0.0.0.0/0", "Internet")


@plant(
    "route-default-internet",
    "critical",
    also=(*SEEN_BY, *EGRESS_PATH_CHECKS, "subnet-nat-gateway", "natgw-inventory"),
    spot="v4-route",
)
def default_route_to_the_internet_with_a_nat_gateway(estate: Estate) -> Named:
    """The default route leads to the internet, and a NAT gateway carries it."""
    home = estate.site.gpu_subnet
    estate.properties(home)["natGateway"] = {"id": nat_gateway(estate, "nat-routed", subnets=[{"id": home}])}
    return set_route(estate, "default-v4", "0.0.0.0/0", "Internet")


@plant("route-default-appliance", "critical", also=(*SEEN_BY, "firewall-in-path", "aks-outbound-type"), spot="v4-route")
def default_route_to_an_appliance(estate: Estate) -> Named:
    """The default route leads to an appliance that is not declared."""
    return set_route(estate, "default-v4", "0.0.0.0/0", "VirtualAppliance", APPLIANCE)


@plant("route-default-appliance", "critical", also=SEEN_BY, spot="v6-route")
def v6_default_route_to_an_appliance(estate: Estate) -> Named:
    """The IPv6 default route leads to an appliance."""
    return set_route(estate, "default-v6", "::/0", "VirtualAppliance", "fd00:db8::4")


@plant("route-default-appliance", "critical", also=SEEN_BY, spot="v4-route")
def default_route_to_a_gateway(estate: Estate) -> Named:
    """The default route leads to the VPN gateway."""
    return set_route(estate, "default-v4", "0.0.0.0/0", "VirtualNetworkGateway")


@plant("route-split-default", "high", also=SEEN_BY, spot="split-route", depends=True)
def two_halves_of_the_default_route(estate: Estate) -> Named:
    """Two /1 routes are longer than the route to nowhere, and win."""
    set_route(estate, "low-half", "0.0.0.0/1", "VirtualAppliance", APPLIANCE)
    return set_route(estate, "high-half", "128.0.0.0/1", "VirtualAppliance", APPLIANCE)


@plant("route-split-default", "high", also=SEEN_BY, spot="split-route", depends=True)
def route_to_a_service_tag(estate: Estate) -> Named:
    """A route to the service tag of storage bypasses the route to nowhere."""
    return set_route(estate, "storage", "Storage.SwedenCentral", "Internet")


@plant("route-split-default", "high", also=SEEN_BY, spot="split-route", depends=True)
def route_to_a_public_prefix(estate: Estate) -> Named:
    """A route to one public prefix leads to an appliance."""
    return set_route(estate, "partner", "20.60.0.0/16", "VirtualAppliance", APPLIANCE)


@plant(
    "route-bgp-propagation",
    "high",
    also=(*GATEWAYS, "effective-routes", "nexthop-spotcheck"),
    needs=("route_table",),
    spot="gateway",
)
def routes_learned_from_a_gateway(estate: Estate) -> Named:
    """The network has a gateway, and the route table takes over what it learns."""
    gateway(estate)
    estate.properties(estate.site.route_table)["disableBgpRoutePropagation"] = False
    return estate.site.route_table


@plant(
    "route-bgp-propagation",
    "high",
    also=("effective-routes", "nexthop-spotcheck", PIPS),
    needs=("route_table",),
    spot="route-server",
)
def routes_learned_from_a_route_server(estate: Estate) -> Named:
    """A route server is in the network, and the route table accepts the routes that appliances advertise."""
    home = subnet(estate, "RouteServerSubnet", "10.40.13.64/27")
    server = network(estate, "virtualHubs", "ars-inference")
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-ars"))
    estate.add(server, {"sku": "Standard", "allowBranchToBranchTraffic": False}, location=LOCATION)
    configuration = {"subnet": {"id": home}, "publicIPAddress": {"id": address}}
    estate.add(f"{server}/ipConfigurations/ipconfig", configuration)
    estate.properties(estate.site.route_table)["disableBgpRoutePropagation"] = False
    return estate.site.route_table


@plant(
    "route-table-missing", "low", also=("effective-routes", "nexthop-spotcheck", "aks-outbound-type"), spot="v4-route"
)
def subnet_without_a_route_table(estate: Estate) -> Named:
    """No route of our own says that the GPU subnet leads nowhere."""
    estate.properties(estate.site.gpu_subnet)["routeTable"] = None
    return estate.site.gpu_subnet


@plant(
    "effective-routes",
    "high",
    also=(*GATEWAYS, "nexthop-spotcheck", "vm-pivot", "vnet-dns-servers"),
    needs=("sentinel",),
    spot="gateway",
    depends=True,
)
def public_prefix_learned_from_a_gateway(estate: Estate) -> Named:
    """A site announces a public prefix, longer than the route to nowhere; a machine beside the nodes learns it too."""
    identifier = gateway(estate)
    estate.answer(identifier, "getLearnedRoutes", {"value": [{"network": "20.60.0.0/16", "origin": "EBgp"}]})
    estate.properties(estate.site.route_table)["disableBgpRoutePropagation"] = False
    return estate.site.gpu_subnet


@plant(
    "effective-routes",
    "critical",
    also=("nexthop-spotcheck",),
    needs=("sentinel",),
    spot="sentinel-routes",
    depends=True,
)
def effective_default_that_no_table_shows(estate: Estate) -> Named:
    """What the platform does differs from what the tables say: the default route leads to an appliance."""
    shown = [route.as_body(False) for route in routes_of(estate, estate.site.gpu_subnet) if route.prefix != "0.0.0.0/0"]
    leak = {
        "name": None,
        "source": "Unknown",
        "state": "Active",
        "addressPrefix": ["0.0.0.0/0"],
        "nextHopType": "VirtualAppliance",
        "nextHopIpAddress": [APPLIANCE],
        "disableBgpRoutePropagation": False,
    }
    estate.answer(estate.site.sentinel, "effectiveRouteTable", {"value": [*shown, leak]})
    return estate.site.gpu_subnet


@plant("nexthop-spotcheck", "high", also=("effective-routes",), needs=("sentinel",), spot="sentinel-hop")
def next_hop_that_no_table_shows(estate: Estate) -> Named:
    """Network Watcher names an appliance as the next hop to a public address."""
    hop = {"nextHopType": "VirtualAppliance", "nextHopIpAddress": APPLIANCE, "routeTableId": "System Route"}
    estate.answer(estate.site.watcher, "nextHop", hop)
    return estate.site.gpu_subnet


@plant("vnra", "medium")
def routing_appliance_in_the_network(estate: Estate) -> Named:
    """A managed routing appliance forwards in this network; effective routes are no longer complete."""
    properties = {"subnet": {"id": f"{estate.site.vnet}/subnets/VirtualNetworkApplianceSubnet"}, "bandwidthInGbps": 50}
    return estate.add(network(estate, "virtualNetworkAppliances", "vnra-inference"), properties, location=LOCATION)
