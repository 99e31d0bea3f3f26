"""Cases of the egress decision: estates that a network engineer would name, with the decision of Azure's documents.

Sources are titles of Azure's documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.azure.baseline.cluster import NODE_RULES, add_balancer
from testbed.azure.baseline.layout import (
    DATA_GROUP,
    HUB_GROUP,
    LOCATION,
    MICROSOFT,
    NETWORK,
    NODE_GROUP,
)
from testbed.azure.baseline.network import add_machine, peering, rule
from testbed.azure.baseline.services import add_endpoint
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import (
    STANDARD,
    balancing_rule,
    change_rules,
    connection,
    delegated,
    first_configuration,
    gateway,
    instance_nics,
    network,
    public_address,
    public_balancer,
    service_link,
    subnet,
)
from testbed.azure.plants.private_link import connect
from testbed.azure.plants.services import gateway as application_gateway

Change = Callable[[Estate], object]

IN_MICROSOFT = f"/subscriptions/{MICROSOFT}/resourceGroups/rg-of-a-service/providers"
SERVICE, SERVICE_PREFIX = "snet-service", "10.40.46.0/24"
HUB_MACHINE = "10.10.1.10"


@dataclass(frozen=True)
class Case:
    """One estate. `check`: what decides; "" where nothing does. `layout`: of the sealed estate that it changes."""

    name: str
    decision: str
    check: str
    change: Change
    source: str
    layout: str = "sealed"


def endpoint(kind: str, group: str) -> Change:
    """A private endpoint in the network, to a resource of ours of this type."""

    def change(estate: Estate) -> None:
        target = f"{DATA_GROUP}/providers/{kind}/of-ours"
        add_endpoint(estate, network(estate, "privateEndpoints", "pe-of-ours"), target, group, "10.40.8.30")

    return change


def perimeter(part: str) -> Change:
    def change(estate: Estate) -> None:
        estate.properties(getattr(estate.site, part))["publicNetworkAccess"] = "SecuredByPerimeter"

    return change


def public_api_server_in_a_perimeter(estate: Estate) -> None:
    perimeter("cluster")(estate)
    estate.properties(estate.cluster)["apiServerAccessProfile"]["enablePrivateCluster"] = False


def link_of_a_service(status: str = "Approved") -> Change:
    """A managed private endpoint of a service, in a subscription of Microsoft's, to our storage account."""

    def change(estate: Estate) -> None:
        consumer = f"{IN_MICROSOFT}/Microsoft.Network/privateEndpoints/managed"
        connect(estate, estate.site.storage, status, consumer)

    return change


def offered_to_front_door(estate: Estate) -> None:
    service = f"{NODE_GROUP}/{NETWORK}/privateLinkServices/pls-serving"
    consumer = {"privateEndpoint": {"id": f"{IN_MICROSOFT}/Microsoft.Network/privateEndpoints/eafd"}}
    approved = {"name": "eafd", "properties": {**consumer, "privateLinkServiceConnectionState": {"status": "Approved"}}}
    service_fields = {
        "visibility": {"subscriptions": []},
        "autoApproval": {"subscriptions": []},
        "ipConfigurations": [],
    }
    estate.add(service, {**service_fields, "privateEndpointConnections": [approved]}, location=LOCATION)


def service(kind: str, *, in_use: bool = True) -> Change:
    """A subnet that is delegated to a service."""
    return lambda estate: delegated(estate, kind, name=SERVICE, prefix=SERVICE_PREFIX, in_use=in_use)


def linked(kind: str) -> Change:
    """A subnet without delegation that a service is in."""

    def change(estate: Estate) -> None:
        home = subnet(estate, SERVICE, SERVICE_PREFIX)
        estate.properties(home)["resourceNavigationLinks"] = [service_link(kind)]

    return change


def inhabited(resource: str, key: str = "ipConfigurations") -> Change:
    """A subnet with an address of a resource in a subscription of Microsoft's, which no list of ours shows."""

    def change(estate: Estate) -> None:
        home = subnet(estate, SERVICE, SERVICE_PREFIX)
        ip_configuration = {"name": "ip", "properties": {"privateIPAddress": "10.40.46.4", "subnet": {"id": home}}}
        estate.add(f"{IN_MICROSOFT}/{resource}", {key: [ip_configuration]}, location=LOCATION)

    return change


def node_subnet_delegated_to_containers(estate: Estate) -> None:
    properties = estate.properties(estate.site.gpu_subnet)
    properties["delegations"] = [
        {"name": "d", "properties": {"serviceName": "Microsoft.ContainerInstance/containerGroups"}}
    ]


def api_server_of_another_cluster(estate: Estate) -> None:
    """In the subnet of the cluster's own API server."""
    group = f"{NODE_GROUP.rpartition('/')[0]}/MC_rg-training_aks-training_{LOCATION}"
    balancer = f"{group}/{NETWORK}/loadBalancers/kube-apiserver"
    add_balancer(estate, balancer, estate.site.api_subnet, "10.40.11.5", holds_nodes=False)


def virtual_nodes(estate: Estate) -> None:
    estate.properties(estate.cluster)["addonProfiles"] = {"aciConnectorLinux": {"enabled": True}}


def containers_that_nodes_may_not_reach(estate: Estate) -> None:
    service("Microsoft.ContainerInstance/containerGroups")(estate)
    change_rules(estate, estate.site.node_rules, plus=rule("DenyContainers", 90, "Deny", SERVICE_PREFIX))


def containers_that_an_admin_rule_opens(estate: Estate) -> None:
    containers_that_nodes_may_not_reach(estate)
    admin_rule("AlwaysAllow", "10.40.0.0/16")(estate)


def backends(*properties: dict[str, str]) -> Change:
    return lambda estate: application_gateway(estate, *properties)


def without_group(estate: Estate) -> None:
    estate.properties(estate.site.gpu_subnet)["networkSecurityGroup"] = None


def group_on_interfaces_alone(estate: Estate) -> None:
    for home in (estate.site.gpu_subnet, estate.site.system_subnet):
        estate.properties(home)["networkSecurityGroup"] = None
    denials = [rule("DenyInternet", 4000, "Deny", "Internet"), rule("AllowOwn", 100, "Allow", "10.40.0.0/16")]
    estate.properties(NODE_RULES)["securityRules"] = denials


def group_on_all_interfaces_but_one(estate: Estate) -> None:
    group_on_interfaces_alone(estate)
    estate.properties(instance_nics(estate)[0])["networkSecurityGroup"] = None


def global_balancer(estate: Estate, frontend: str) -> None:
    """A cross-region balancer before a frontend of a regional one."""
    identifier = network(estate, "loadBalancers", "global")
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-global"), "20.91.201.99")
    public = f"{identifier}/frontendIPConfigurations/public"
    member = {"name": "region", "properties": {"loadBalancerFrontendIPConfiguration": {"id": frontend}}}
    properties = {
        "frontendIPConfigurations": [
            {"id": public, "name": "public", "properties": {"publicIPAddress": {"id": address}}}
        ],
        "backendAddressPools": [{"name": "regions", "properties": {"loadBalancerBackendAddresses": [member]}}],
        "loadBalancingRules": [],
        "outboundRules": [],
    }
    estate.add(identifier, properties, location=LOCATION, sku={"name": "Standard", "tier": "Global"})


def global_balancer_before_a_public_one(estate: Estate) -> None:
    regional = network(estate, "loadBalancers", "regional")
    public_balancer(estate, regional, rules=[balancing_rule(regional, disableOutboundSnat=True)], outbound=[])
    global_balancer(estate, f"{regional}/frontendIPConfigurations/public")


def global_balancer_before_the_internal_one(estate: Estate) -> None:
    global_balancer(estate, f"{estate.site.balancer}/frontendIPConfigurations/internal")


def inbound_translation_alone(estate: Estate) -> None:
    """A public balancer without a pool: an interface of a node names an inbound NAT rule of it."""
    identifier = network(estate, "loadBalancers", "nat-in")
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-nat-in"), "20.91.201.98")
    public = {"name": "public", "properties": {"publicIPAddress": {"id": address}}}
    properties = {"frontendIPConfigurations": [public], "backendAddressPools": [], "outboundRules": []}
    estate.add(identifier, properties, location=LOCATION, sku=STANDARD)
    configuration = first_configuration(estate, instance_nics(estate)[0])
    configuration["loadBalancerInboundNatRules"] = [{"id": f"{identifier}/inboundNatRules/ssh"}]


def balancer_before(member: dict[str, Any]) -> Change:
    """An internal load balancer beside the nodes, with one backend; `pool`: the network that its pool names."""

    def change(estate: Estate) -> None:
        home = subnet(estate, "snet-relay", "10.40.47.0/24")
        identifier = network(estate, "loadBalancers", "lb-relay")
        add_balancer(estate, identifier, home, "10.40.47.4", holds_nodes=False)
        backend = {
            "name": "backend",
            "properties": {key: field_value for key, field_value in member.items() if key != "pool"},
        }
        pool = {"backendIPConfigurations": [], "loadBalancerBackendAddresses": [backend]}
        if "pool" in member:
            pool["virtualNetwork"] = {"id": member["pool"]}
        estate.properties(identifier)["backendAddressPools"] = [{"name": "beyond", "properties": pool}]

    return change


def balancer_before_an_interface_elsewhere(estate: Estate) -> None:
    """In a network of ours that is not peered."""
    other = network(estate, "virtualNetworks", "vnet-apart")
    estate.add(other, {"addressSpace": {"addressPrefixes": ["10.77.0.0/16"]}, "subnets": []}, location=LOCATION)
    home = estate.add(f"{other}/subnets/snet", {"addressPrefix": "10.77.0.0/24"})
    nic = network(estate, "networkInterfaces", "nic-apart")
    add_machine(estate, "vm-apart", nic, home, "10.77.0.4")
    balancer_before({"networkInterfaceIPConfiguration": {"id": f"{nic}/ipConfigurations/ipconfig1"}})(estate)


def hub_connection(*, internet: bool, home: str = "vnet") -> Change:
    """A virtual hub that is connected; with routing intent it announces a default route."""

    def change(estate: Estate) -> None:
        peered_with_a_hub(estate, home)
        hub = network(estate, "virtualHubs", "hub-of-wan")
        estate.add(hub, {"addressPrefix": "10.88.0.0/24"}, location=LOCATION)
        hub_connection = {
            "remoteVirtualNetwork": {"id": getattr(estate.site, home)},
            "enableInternetSecurity": internet,
        }
        estate.add(f"{hub}/hubVirtualNetworkConnections/inference", hub_connection)

    return change


def hub_that_is_not_readable(estate: Estate) -> None:
    peered_with_a_hub(estate, "vnet")


def peered_with_a_hub(estate: Estate, home: str) -> None:
    """What a connected network shows of a hub: a peering with a network in a subscription of Microsoft's."""
    remote = f"{IN_MICROSOFT}/Microsoft.Network/virtualNetworks/HV_hub_7c1e"
    properties = {**peering(remote, "10.88.0.0/24"), "useRemoteGateways": True}
    estate.add(f"{getattr(estate.site, home)}/virtualNetworkPeerings/RemoteVnetToHubPeering_1", properties)


def tunnel(*learned: str, propagates: bool = False, connected: bool = True, **fields: Any) -> Change:
    """A gateway in the network that has learned these prefixes by BGP."""

    def change(estate: Estate) -> None:
        identifier = gateway(estate, **fields)
        if connected:
            connection(estate, identifier)
        routes = [{"network": prefix, "origin": "EBgp"} for prefix in learned]
        estate.answer(identifier, "getLearnedRoutes", {"value": routes})
        estate.properties(estate.site.route_table)["disableBgpRoutePropagation"] = not propagates

    return change


def gateway_of_the_hub(*, used: bool) -> Change:
    def change(estate: Estate) -> None:
        home = estate.add(f"{estate.site.hub}/subnets/GatewaySubnet", {"addressPrefix": "10.10.2.0/27"})
        identifier = f"{HUB_GROUP}/{NETWORK}/virtualNetworkGateways/vgw-hub"
        gateway_fields = {"ipConfigurations": [{"name": "default", "properties": {"subnet": {"id": home}}}]}
        estate.add(identifier, {"gatewayType": "Vpn", **gateway_fields}, location=LOCATION)
        estate.answer(identifier, "getLearnedRoutes", {"value": [{"network": "0.0.0.0/0", "origin": "EBgp"}]})
        estate.properties(estate.site.peering)["useRemoteGateways"] = used

    return change


def route_server(*, propagates: bool) -> Change:
    """A route server, which an appliance tells a default route; it is a virtual hub with an address in the network."""

    def change(estate: Estate) -> None:
        home = subnet(estate, "RouteServerSubnet", "10.40.48.0/26")
        server = network(estate, "virtualHubs", "route-server")
        estate.add(server, {"virtualRouterIps": ["10.40.48.4", "10.40.48.5"]}, location=LOCATION)
        estate.add(f"{server}/ipConfigurations/default", {"subnet": {"id": home}})
        estate.add(f"{server}/bgpConnections/appliance", {"peerIp": "10.40.49.4", "peerAsn": 65010})
        estate.properties(estate.site.route_table)["disableBgpRoutePropagation"] = not propagates

    return change


def connected_group(estate: Estate) -> None:
    mesh = {"id": network(estate, "networkManagers", "avnm/connectivityConfigurations/mesh")}
    action = "listNetworkManagerEffectiveConnectivityConfigurations"
    estate.answer(estate.site.vnet, action, {"value": [{**mesh, "properties": {"connectivityTopology": "Mesh"}}]})


def admin_rule(
    access: str, prefix: str, kind: str = "IPPrefix", *, direction: str = "Outbound", home: str = "vnet"
) -> Change:
    """A security admin rule of Network Manager that is applied to a network."""

    def change(estate: Estate) -> None:
        base = network(estate, "networkManagers", "avnm/securityAdminConfigurations/base")
        properties = {
            "access": access,
            "direction": direction,
            "priority": 10,
            "protocol": "Any",
            "sources": [{"addressPrefixType": "IPPrefix", "addressPrefix": "*"}],
            "destinations": [{"addressPrefixType": kind, "addressPrefix": prefix}],
        }
        collection_rule = {"id": f"{base}/ruleCollections/c/rules/r", "kind": "Custom", "properties": properties}
        action = "listNetworkManagerEffectiveSecurityAdminRules"
        estate.answer(getattr(estate.site, home), action, {"value": [collection_rule]})

    return change


def machine_in_the_hub(estate: Estate, *, deny: str) -> None:
    """A machine with a public address in the hub; a group denies the way to it, of the nodes or of the hub."""
    nic = f"{HUB_GROUP}/{NETWORK}/networkInterfaces/nic-jump"
    add_machine(estate, "vm-jump", nic, f"{estate.site.hub}/subnets/snet-shared", HUB_MACHINE)
    address = public_address(estate, f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-jump")
    first_configuration(estate, nic)["publicIPAddress"] = {"id": address}
    if deny == "Outbound":
        change_rules(estate, estate.site.node_rules, plus=rule("DenyJump", 90, "Deny", HUB_MACHINE))
    else:
        group = f"{HUB_GROUP}/{NETWORK}/networkSecurityGroups/nsg-hub"
        change_rules(estate, group, plus=rule("DenyIn", 90, "Deny", "*", direction="Inbound"))


def hub_machine(deny: str, opened: Change | None = None) -> Change:
    def change(estate: Estate) -> None:
        machine_in_the_hub(estate, deny=deny)
        if opened is not None:
            opened(estate)

    return change
