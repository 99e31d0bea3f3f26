"""The cluster's network: private subnets, a route table to nowhere, security groups that deny, flow logs."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import COMPUTE, HUB_GROUP, LOCATION, NETWORK, Layout
from testbed.azure.effective_rules import default_rules
from testbed.azure.estate import Estate

Body = dict[str, Any]

SPACE = "10.40.0.0/16"
HUB_SPACE = "10.10.0.0/22"
RESOLVER = "10.40.10.4"
FIREWALL_ADDRESS = "10.10.0.4"
AKS_DELEGATION = "Microsoft.ContainerService/managedClusters"
ANY = {"protocol": "*", "sourcePortRange": "*", "destinationPortRange": "*", "sourceAddressPrefix": "*"}


def add_network(estate: Estate, layout: Layout) -> None:
    _add_route_table(estate, layout)
    for name in ("nsg-nodes", "nsg-apiserver", "nsg-endpoints"):
        add_rules(estate, f"{layout.network_group}/{NETWORK}/networkSecurityGroups/{name}", _outbound(layout))
    estate.add(
        layout.vnet,
        {
            "addressSpace": {"addressPrefixes": [SPACE]},
            "dhcpOptions": {"dnsServers": [RESOLVER] if layout.own_dns else []},
            "subnets": [],
            "virtualNetworkPeerings": [],
            "enableDdosProtection": False,
            "privateEndpointVNetPolicies": "Disabled",
            "flowLogs": [{"id": f"{estate.site.watcher}/flowLogs/flow-inference"}],
        },
        location=LOCATION,
    )
    _add_subnets(estate, layout)
    _add_watcher(estate)
    if layout.sentinel:
        _add_sentinel(estate, layout)


def add_rules(estate: Estate, group: str, rules: list[Body]) -> str:
    """A security group with these rules of its own, and Azure's."""
    properties = {"securityRules": rules, "defaultSecurityRules": default_rules(group), "flushConnection": False}
    return estate.add(group, properties, location=LOCATION)


def rule(name: str, priority: int, access: str, destination: str, **rest: Any) -> Body:
    """An outbound rule for any protocol and port; `rest` overrides its fields."""
    properties = {
        **ANY,
        "destinationAddressPrefix": destination,
        "access": access,
        "priority": priority,
        "direction": "Outbound",
        "provisioningState": "Succeeded",
        **rest,
    }
    return {"name": name, "properties": properties}


def add_subnet(estate: Estate, identifier: str, prefix: str, group: str, **rest: Any) -> str:
    """A private subnet behind the sealed route table."""
    properties = {
        "addressPrefix": prefix,
        "defaultOutboundAccess": False,
        "networkSecurityGroup": {"id": group},
        "routeTable": {"id": estate.site.route_table},
        "serviceEndpoints": [],
        "delegations": [],
        "privateEndpointNetworkPolicies": "Disabled",
        "privateLinkServiceNetworkPolicies": "Enabled",
        **rest,
    }
    return estate.add(identifier, properties)


def _outbound(layout: Layout) -> list[Body]:
    """Our own space, nothing else; behind a firewall that filters, the web as well."""
    rules = [rule("AllowOwnNetwork", 100, "Allow", SPACE)]
    if layout.has_hub:
        rules.append(rule("AllowHub", 110, "Allow", HUB_SPACE))
    if layout.firewall:
        rules.append(
            rule("AllowWebThroughFirewall", 200, "Allow", "Internet", protocol="Tcp", destinationPortRange="443")
        )
    if layout.own_dns:
        rules.append(rule("DenyPlatformDns", 3900, "Deny", "AzurePlatformDNS"))
    return [*rules, rule("DenyInternet", 4000, "Deny", "Internet")]


def _add_route_table(estate: Estate, layout: Layout) -> None:
    v4: Body = {"addressPrefix": "0.0.0.0/0", "nextHopType": "None"}
    if layout.firewall:
        v4 |= {"nextHopType": "VirtualAppliance", "nextHopIpAddress": FIREWALL_ADDRESS}
    routes = [
        {"name": "default-v4", "properties": v4},
        {"name": "default-v6", "properties": {"addressPrefix": "::/0", "nextHopType": "None"}},
    ]
    properties = {"disableBgpRoutePropagation": True, "routes": routes}
    estate.add(estate.site.route_table, properties, location=LOCATION)


def _add_subnets(estate: Estate, layout: Layout) -> None:
    site = estate.site
    groups = f"{layout.network_group}/{NETWORK}/networkSecurityGroups"
    delegated = {"delegations": [{"name": "aks", "properties": {"serviceName": AKS_DELEGATION}}]}
    add_subnet(estate, site.system_subnet, "10.40.0.0/23" if layout.one_subnet else "10.40.0.0/24", site.node_rules)
    for number, subnet in enumerate(() if layout.one_subnet else layout.gpu_subnets):
        add_subnet(estate, subnet, f"10.40.{1 + number}.0/24", site.node_rules)
    if site.pod_subnet:
        add_subnet(estate, site.pod_subnet, "10.40.16.0/20", site.node_rules, **delegated)
    if site.api_subnet:
        add_subnet(estate, site.api_subnet, "10.40.11.0/28", f"{groups}/nsg-apiserver", **delegated)
    add_subnet(estate, layout.subnet("snet-services"), "10.40.12.0/24", site.node_rules)
    endpoints = {"privateEndpointNetworkPolicies": "Enabled"}
    add_subnet(estate, site.endpoint_subnet, "10.40.8.0/26", f"{groups}/nsg-endpoints", **endpoints)
    if layout.own_dns:
        add_subnet(estate, layout.subnet("snet-dns"), "10.40.10.0/28", f"{groups}/nsg-endpoints")


def _add_watcher(estate: Estate) -> None:
    site = estate.site
    estate.add(site.watcher, {}, location=LOCATION)
    properties = {
        "targetResourceId": site.vnet,
        "storageId": site.storage,
        "enabled": True,
        "retentionPolicy": {"days": 90, "enabled": True},
        "format": {"type": "JSON", "version": 2},
    }
    estate.add(f"{site.watcher}/flowLogs/flow-inference", properties, location=LOCATION)


def _add_sentinel(estate: Estate, layout: Layout) -> None:
    add_machine(estate, "vm-sentinel", estate.site.sentinel, estate.site.gpu_subnet, "10.40.1.200")
    if layout.own_dns:
        nic = f"{layout.network_group}/{NETWORK}/networkInterfaces/nic-resolver"
        add_machine(estate, "vm-resolver", nic, layout.subnet("snet-dns"), RESOLVER)


def add_machine(estate: Estate, name: str, nic: str, subnet: str, address: str) -> str:
    """A running virtual machine with one interface; returns the machine's id."""
    group = nic.partition("/providers/")[0]
    machine = f"{group}/{COMPUTE}/virtualMachines/{name}"
    configuration = {
        "primary": True,
        "privateIPAddress": address,
        "privateIPAllocationMethod": "Static",
        "privateIPAddressVersion": "IPv4",
        "subnet": {"id": subnet},
    }
    estate.add(
        nic,
        {
            "primary": True,
            "enableIPForwarding": False,
            "enableAcceleratedNetworking": False,
            "defaultOutboundConnectivityEnabled": False,
            "dnsSettings": {"dnsServers": [], "appliedDnsServers": []},
            "virtualMachine": {"id": machine.replace("/Microsoft.Compute/", "/microsoft.Compute/")},
            "ipConfigurations": [
                {"id": f"{nic}/ipConfigurations/ipconfig1", "name": "ipconfig1", "properties": configuration}
            ],
        },
        location=LOCATION,
    )
    properties = {
        "hardwareProfile": {"vmSize": "Standard_B2s_v2"},
        "networkProfile": {"networkInterfaces": [{"id": nic, "properties": {"primary": True}}]},
        "timeCreated": "2026-08-15T09:00:00.7654321+00:00",
    }
    return estate.add(machine, properties, location=LOCATION)


def add_hub(estate: Estate) -> None:
    """A hub in the connectivity subscription, peered both ways and allow-listed."""
    site = estate.site
    estate.add(
        site.hub,
        {
            "addressSpace": {"addressPrefixes": [HUB_SPACE]},
            "dhcpOptions": {"dnsServers": []},
            "subnets": [],
            "virtualNetworkPeerings": [],
        },
        location=LOCATION,
    )
    estate.add(site.peering, peering(site.hub, HUB_SPACE))
    estate.add(f"{site.hub}/virtualNetworkPeerings/to-inference", peering(site.vnet, SPACE))
    endpoint_rules = add_rules(estate, f"{HUB_GROUP}/{NETWORK}/networkSecurityGroups/nsg-hub", [])
    sealed = {"defaultOutboundAccess": False, "networkSecurityGroup": {"id": endpoint_rules}}
    estate.add(f"{site.hub}/subnets/snet-shared", {"addressPrefix": "10.10.1.0/26", **sealed})
    estate.policy["allowedPeerings"] = [site.hub]


def peering(remote: str, prefix: str) -> Body:
    """What one side of a connected peering says; it lets nothing through that it need not."""
    return {
        "peeringState": "Connected",
        "peeringSyncLevel": "FullyInSync",
        "remoteVirtualNetwork": {"id": remote},
        "remoteAddressSpace": {"addressPrefixes": [prefix]},
        "remoteVirtualNetworkAddressSpace": {"addressPrefixes": [prefix]},
        "allowVirtualNetworkAccess": True,
        "allowForwardedTraffic": False,
        "allowGatewayTransit": False,
        "useRemoteGateways": False,
        "peerCompleteVnets": True,
    }
