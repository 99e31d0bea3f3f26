"""Tables C and D: peerings, gateways, virtual hubs, firewalls; IPv6."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import LOCATION, MICROSOFT, NETWORK
from testbed.azure.baseline.network import SPACE, peering
from testbed.azure.estate import Estate
from testbed.azure.plants.declared_firewall import allow_in_declared_firewall
from testbed.azure.plants.pieces import (
    PIPS,
    apply_in_graph,
    connection,
    gateway,
    network,
    public_address,
    set_route,
    subnet,
)
from testbed.azure.plants.plant import FILTERED, SEALED, Named, plant

ANALYTICS = "0b7d3a61-52c4-4e98-8f1d-c6a9e2740d35"  # a subscription whose network may be a peer, and is not foreign
# what a gateway in the network brings with it
GATEWAY = (
    "vnet-gateway",
    "gateway-connections",
    "route-bgp-propagation",
    "effective-routes",
    "nexthop-spotcheck",
    PIPS,
)


@plant("peering-any", "high", also=("effective-routes",))
def peering_that_no_policy_allows(estate: Estate) -> Named:
    """The network is connected to one of another subscription that is on no list."""
    remote = f"/subscriptions/{ANALYTICS}/resourceGroups/rg-analytics/{NETWORK}/virtualNetworks/vnet-analytics"
    space = "10.77.0.0/16"
    properties = {"addressSpace": {"addressPrefixes": [space]}, "subnets": [], "virtualNetworkPeerings": []}
    estate.add(remote, properties, location=LOCATION)
    estate.add(f"{remote}/virtualNetworkPeerings/to-inference", peering(estate.site.vnet, SPACE))
    return estate.add(f"{estate.site.vnet}/virtualNetworkPeerings/to-analytics", peering(remote, space))


@plant("peering-remote-gateway", "high", also=("route-bgp-propagation", "effective-routes"), needs=("peering",))
def peering_that_uses_the_hubs_gateway(estate: Estate) -> Named:
    """The network uses the gateway of the hub, and learns what it announces."""
    estate.properties(estate.site.peering)["useRemoteGateways"] = True
    return estate.site.peering


@plant("peering-forwarded", "medium", needs=("peering",), spot="forwarded")
def peering_that_takes_forwarded_traffic(estate: Estate) -> Named:
    """Our side of the peering lets traffic in that the hub only forwards."""
    estate.properties(estate.site.peering)["allowForwardedTraffic"] = True
    return estate.site.peering


@plant("peering-forwarded", "medium", needs=("peering",), spot="forwarded")
def hub_that_takes_forwarded_traffic(estate: Estate) -> Named:
    """The hub's side of the peering lets our traffic transit."""
    remote = f"{estate.site.hub}/virtualNetworkPeerings/to-inference"
    estate.properties(remote)["allowForwardedTraffic"] = True
    return remote, estate.site.peering


@plant("peering-gateway-transit", "medium", needs=("peering",))
def peering_that_lends_our_gateway(estate: Estate) -> Named:
    """The peering lets the hub use a gateway of ours."""
    estate.properties(estate.site.peering)["allowGatewayTransit"] = True
    return estate.site.peering


@plant("avnm-connectivity", "high")
def mesh_pushed_by_a_network_manager(estate: Estate) -> Named:
    """Network Manager connects the network to others; there is no peering to see."""
    identifier = network(estate, "networkManagers", "avnm/connectivityConfigurations/mesh")
    configuration = {
        "id": identifier,
        "properties": {"connectivityTopology": "Mesh", "isGlobal": "True", "appliesToGroups": []},
    }
    estate.answer(estate.site.vnet, "listNetworkManagerEffectiveConnectivityConfigurations", {"value": [configuration]})
    apply_in_graph(estate, "effectiveConnectivityConfigurations", identifier)
    return estate.site.vnet, identifier


@plant("avnm-admin-rules", "high", also=("nsg-effective",))
def admin_rule_that_outranks_security_groups(estate: Estate) -> Named:
    """A security admin rule always allows the internet, whatever the groups deny."""
    base = f"{network(estate, 'networkManagers', 'avnm')}/securityAdminConfigurations/base"
    identifier = f"{base}/ruleCollections/c/rules/out"
    rule: dict[str, Any] = {
        "id": identifier,
        "kind": "Custom",
        "properties": {
            "access": "AlwaysAllow",
            "direction": "Outbound",
            "priority": 10,
            "protocol": "Any",
            "sources": [{"addressPrefixType": "IPPrefix", "addressPrefix": "*"}],
            "destinations": [{"addressPrefixType": "ServiceTag", "addressPrefix": "Internet"}],
        },
    }
    estate.answer(estate.site.vnet, "listNetworkManagerEffectiveSecurityAdminRules", {"value": [rule]})
    estate.add(base)
    estate.add(f"{base}/ruleCollections/c", {"appliesToGroups": []})
    estate.add(identifier, dict(rule["properties"]), kind="Custom")
    apply_in_graph(estate, "effectiveSecurityAdminConfigurations", base)
    return estate.site.vnet, identifier


@plant("vnet-gateway", "medium", also=GATEWAY, spot="gateway", depends=True)
def gateway_in_the_network(estate: Estate) -> Named:
    """A VPN gateway is in the network, without a connection."""
    return gateway(estate)


@plant("vnet-gateway", "high", also=GATEWAY, spot="gateway")
def gateway_with_a_connection(estate: Estate) -> Named:
    """A VPN gateway is in the network, and a site is connected."""
    identifier = gateway(estate)
    connection(estate, identifier)
    return identifier


@plant("gateway-connections", "high", also=GATEWAY, spot="gateway")
def connection_of_unknown_status(estate: Estate) -> Named:
    """A site-to-site connection is up."""
    identifier = gateway(estate)
    return connection(estate, identifier), identifier


@plant("gateway-forced-tunnel", "high", also=GATEWAY, spot="gateway")
def gateway_with_a_default_site(estate: Estate) -> Named:
    """The gateway sends what it does not know to one site."""
    site = network(estate, "localNetworkGateways", "site")
    return gateway(estate, gatewayDefaultSite={"id": site})


@plant("gateway-forced-tunnel", "high", also=GATEWAY, spot="gateway")
def gateway_that_learned_a_default_route(estate: Estate) -> Named:
    """A site announces the default route to the gateway."""
    identifier = gateway(estate)
    estate.answer(identifier, "getLearnedRoutes", {"value": [{"network": "0.0.0.0/0", "origin": "EBgp"}]})
    return identifier


@plant("gateway-p2s", "medium", also=GATEWAY, spot="gateway")
def gateway_for_laptops(estate: Estate) -> Named:
    """Clients dial in; one of them with internet is a relay."""
    pool = {"vpnClientAddressPool": {"addressPrefixes": ["172.30.0.0/24"]}, "vpnClientProtocols": ["OpenVPN"]}
    return gateway(estate, vpnClientConfiguration=pool)


@plant("vwan-connection", "high", also=("effective-routes", "nexthop-spotcheck", "route-bgp-propagation"))
def connection_to_a_virtual_hub(estate: Estate) -> Named:
    """A secured virtual hub connects the network and pushes its default route."""
    hub = network(estate, "virtualHubs", "hub-inference")
    firewall = network(estate, "azureFirewalls", "afw-in-hub")
    estate.add(hub, {"addressPrefix": "10.88.0.0/24", "azureFirewall": {"id": firewall}}, location=LOCATION)
    properties = {"remoteVirtualNetwork": {"id": estate.site.vnet}, "enableInternetSecurity": True}
    return estate.add(f"{hub}/hubVirtualNetworkConnections/inference", properties)


@plant("vwan-connection", "high", also=("peering-any", "effective-routes"), depends=True, hides=True)
def virtual_hub_of_another_subscription(estate: Estate) -> Named:
    """A hub in a subscription that is not readable: all that shows is the peering that Azure puts into the network.

    Remote network `HV_...` in a subscription of Microsoft's, the form that `az network vnet peering list` shows.
    """
    remote = f"/subscriptions/{MICROSOFT}/resourceGroups/RG_hub-a1b2/{NETWORK}/virtualNetworks/HV_hub-central_7c1e"
    name = "RemoteVnetToHubPeering_2b6f4c1e-93d0-4d5e-8f3b-1a7d2c9e0b44"
    return estate.add(f"{estate.site.vnet}/virtualNetworkPeerings/{name}", peering(remote, "10.88.0.0/24"))


@plant("firewall-in-path", "high", also=(PIPS, "appgw-bastion-other-pip"), profiles=(SEALED,))
def firewall_that_a_route_leads_to(estate: Estate) -> Named:
    """A firewall is in the network, and a route leads to it."""
    home = subnet(estate, "AzureFirewallSubnet", "10.40.15.128/26")
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-afw"))
    held = {"subnet": {"id": home}, "privateIPAddress": "10.40.15.132", "publicIPAddress": {"id": address}}
    set_route(estate, "partners", "10.99.0.0/16", "VirtualAppliance", "10.40.15.132")
    properties = {"sku": {"name": "AZFW_VNet"}, "ipConfigurations": [{"name": "ipconfig", "properties": held}]}
    return estate.add(network(estate, "azureFirewalls", "afw-inference"), properties, location=LOCATION)


@plant("firewall-in-path", "critical", profiles=(FILTERED,), spot="firewall-rules")
def declared_firewall_that_allows_everything(estate: Estate) -> Named:
    """The declared firewall has a network rule to anywhere."""
    rule = {
        "ruleType": "NetworkRule",
        "name": "any",
        "sourceAddresses": ["10.40.0.0/16"],
        "destinationAddresses": ["*"],
        "destinationPorts": ["443"],
        "ipProtocols": ["TCP"],
    }
    return allow_in_declared_firewall(estate, rule)


@plant("firewall-in-path", "critical", profiles=(FILTERED,), spot="firewall-rules")
def declared_firewall_that_allows_every_host(estate: Estate) -> Named:
    """The declared firewall has an application rule for every name."""
    rule = {"ruleType": "ApplicationRule", "name": "any", "sourceAddresses": ["*"], "targetFqdns": ["*"]}
    return allow_in_declared_firewall(estate, rule)


@plant("subnet-sharing", "medium")
def subnet_shared_with_other_subscriptions(estate: Estate) -> Named:
    """Other subscriptions may put machines into the GPU subnet."""
    estate.properties(estate.site.gpu_subnet)["sharingScope"] = "Tenant"
    return estate.site.gpu_subnet


def _has_flow_logs(estate: Estate) -> bool:
    return bool(estate.of_type("Microsoft.Network/networkWatchers/flowLogs"))


@plant("nsg-flowlogs", "low", fits=_has_flow_logs, spot="flow-log")
def network_without_flow_logs(estate: Estate) -> Named:
    """Nothing records the network's flows."""
    estate.properties(estate.site.vnet)["flowLogs"] = []
    estate.remove(f"{estate.site.watcher}/flowLogs/flow-inference")
    return estate.site.vnet


@plant("cluster-dual-stack", "high", also=("nsg-v6",), spot="cluster:networkProfile")
def cluster_with_two_families(estate: Estate) -> Named:
    """The cluster is dual stack: IPv6 has routes, translation and balancers of its own."""
    estate.properties(estate.cluster)["networkProfile"]["ipFamilies"] = ["IPv4", "IPv6"]
    return estate.cluster


@plant("subnet-ipv6-prefix", "high", also=("effective-routes", "nexthop-spotcheck", "nsg-internet-deny", "nsg-v6"))
def subnet_with_an_ipv6_prefix(estate: Estate) -> Named:
    """The GPU subnet has an IPv6 prefix beside its IPv4 one."""
    properties = estate.properties(estate.site.gpu_subnet)
    properties["addressPrefixes"] = [properties.pop("addressPrefix"), "fd00:db8:40::/64"]
    estate.properties(estate.site.vnet)["addressSpace"]["addressPrefixes"].append("fd00:db8:40::/56")
    return estate.site.gpu_subnet


@plant("nsg-v6", "high", also=("cluster-dual-stack",), spot="cluster:networkProfile")
def policy_engine_blind_to_ipv6(estate: Estate) -> Named:
    """The policy engine is Azure's, which knows no IPv6, on a dual-stack cluster."""
    profile = estate.properties(estate.cluster)["networkProfile"]
    profile |= {"ipFamilies": ["IPv4", "IPv6"], "networkPolicy": "azure", "networkDataplane": "azure"}
    return estate.cluster
