"""The cluster and its nodes: a network isolated, private AKS with a system pool and GPU pools."""

from __future__ import annotations

import ipaddress
from typing import Any

from testbed.azure.baseline.layout import (
    CLUSTER_GROUP,
    COMPUTE,
    CONTROL_PLANE,
    KUBELET,
    LOCATION,
    NETWORK,
    NODE_GROUP,
    Layout,
)
from testbed.azure.baseline.network import add_rules, rule
from testbed.azure.estate import Estate
from testbed.azure.ids import name_of

Body = dict[str, Any]

IDENTITIES = f"{CLUSTER_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
ISSUER = f"https://{LOCATION}.oic.prod-aks.azure.com/5b0c9e71-2d4f-4e68-9a13-f07d6c82be45/9d7e31c0-48a6-4f5b-b2e9-160cf4a8d573/"
NODE_RULES = f"{NODE_GROUP}/{NETWORK}/networkSecurityGroups/aks-agentpool-24417093-nsg"
# VirtualMachineScaleSetVM.properties.timeCreated (api-version 2021-11-01 and later), as ARM writes it
CREATED = "2026-09-01T10:20:30.1234567+00:00"
SCALE_SETS = f"{NODE_GROUP}/{COMPUTE}/virtualMachineScaleSets"
INSTANCE_NICS = "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces"


def add_cluster(estate: Estate, layout: Layout) -> None:
    # outboundType block works by rules that AKS keeps in its own group
    denies = _outbound_type(layout) == "block"
    add_rules(estate, NODE_RULES, [rule("DenyInternet", 4000, "Deny", "Internet")] if denies else [])
    pools = _pools(estate, layout)
    estate.add(
        estate.site.cluster,
        _properties(estate, layout, [profile for profile, _ in pools]),
        location=LOCATION,
        sku={"name": "Base", "tier": "Standard"},
        identity={
            "type": "UserAssigned",
            "userAssignedIdentities": {
                f"{IDENTITIES}/id-control-plane": {"principalId": CONTROL_PLANE, "clientId": CONTROL_PLANE[::-1]}
            },
        },
    )
    for profile, scale_set in pools:
        add_scale_set(estate, scale_set, profile["name"], profile["vnetSubnetID"], profile["count"])
    _add_balancers(estate, layout)


def _pools(estate: Estate, layout: Layout) -> list[tuple[Body, str]]:
    """(profile, scale set's name): the first GPU pool's scale set is the site's."""
    pools = [(_pool("system", "Standard_D8s_v6", estate.site.system_subnet, "System", 2), "aks-system-31862004-vmss")]
    for number, subnet in enumerate(layout.gpu_subnets):
        name = f"gpu{number or ''}"
        pool = _pool(name, "Standard_NC40ads_H100_v5", subnet, "User", layout.nodes)
        pool |= {"nodeTaints": ["sku=gpu:NoSchedule"], "gpuProfile": {"driver": "Install"}}
        pools.append((pool | _pods(estate), f"aks-{name}-31862004-vmss"))
    return pools


def _pods(estate: Estate) -> Body:
    return {"podSubnetID": estate.site.pod_subnet} if estate.site.pod_subnet else {}


def _pool(name: str, size: str, subnet: str, mode: str, count: int) -> Body:
    # AKS keeps the letters that the pool was created with, whatever the network's own are
    as_typed = subnet.replace("/resourceGroups/", "/resourcegroups/")
    return {
        "name": name,
        "count": count,
        "vmSize": size,
        "mode": mode,
        "type": "VirtualMachineScaleSets",
        "osType": "Linux",
        "osSKU": "Ubuntu",
        "orchestratorVersion": "1.34.2",
        "currentOrchestratorVersion": "1.34.2",
        "nodeImageVersion": "AKSUbuntu-2204gen2containerd-202607.14.0",
        "vnetSubnetID": as_typed,
        "enableNodePublicIP": False,
        "powerState": {"code": "Running"},
        "provisioningState": "Succeeded",
        "securityProfile": {"sshAccess": "Disabled"},
    }


def _properties(estate: Estate, layout: Layout, pools: list[Body]) -> Body:
    registry = estate.site.registry
    return {
        "powerState": {"code": "Running"},
        "kubernetesVersion": "1.34.2",
        "currentKubernetesVersion": "1.34.2",
        "dnsPrefix": "aks-inference",
        "privateFQDN": f"aks-inference-8f2e1c07.privatelink.{LOCATION}.azmk8s.io",
        "nodeResourceGroup": name_of(NODE_GROUP),
        "nodeResourceGroupProfile": {"restrictionLevel": "ReadOnly"},
        "enableRBAC": True,
        "disableLocalAccounts": True,
        "publicNetworkAccess": "Disabled",
        "agentPoolProfiles": pools,
        "apiServerAccessProfile": _api_server(estate),
        "networkProfile": _network_profile(layout),
        "bootstrapProfile": {"artifactSource": "Cache", "containerRegistryId": registry},
        "autoUpgradeProfile": {"upgradeChannel": "none", "nodeOSUpgradeChannel": "NodeImage"},
        "nodeProvisioningProfile": {"mode": "Manual"},
        "addonProfiles": {},
        "securityProfile": {},
        "oidcIssuerProfile": {"enabled": True, "issuerURL": ISSUER},  # on by default from Kubernetes 1.34
        "storageProfile": {"diskCSIDriver": {"enabled": True}, "fileCSIDriver": {"enabled": True}},
        "identityProfile": {
            "kubeletidentity": {
                "resourceId": f"{IDENTITIES}/id-kubelet",
                "clientId": KUBELET[::-1],
                "objectId": KUBELET,
            }
        },
    }


def _api_server(estate: Estate) -> Body:
    private = {
        "enablePrivateCluster": True,
        "enablePrivateClusterPublicFQDN": False,
        "privateDNSZone": f"{estate.site.vnet.partition('/providers/')[0]}/{NETWORK}/privateDnsZones/"
        f"privatelink.{LOCATION}.azmk8s.io",
        "disableRunCommand": True,
    }
    if not estate.site.api_subnet:
        return private
    return {**private, "enableVnetIntegration": True, "subnetId": estate.site.api_subnet}


def _network_profile(layout: Layout) -> Body:
    return {
        "networkPlugin": "azure",
        **({} if layout.pod_subnet else {"networkPluginMode": "overlay", "podCidr": "10.244.0.0/16"}),
        "networkPolicy": "cilium",
        "networkDataplane": "cilium",
        "outboundType": _outbound_type(layout),
        "ipFamilies": ["IPv4"],
        "serviceCidr": "172.29.0.0/16",
        "dnsServiceIP": "172.29.0.10",
        "loadBalancerSku": "standard",
        "loadBalancerProfile": {"backendPoolType": "nodeIPConfiguration"},
        "staticEgressGatewayProfile": {"enabled": False},
        "advancedNetworking": {"enabled": False},
    }


def _outbound_type(layout: Layout) -> str:
    if layout.outbound:
        return layout.outbound
    if layout.managed:
        return "block"
    return "userDefinedRouting" if layout.firewall else "none"


def add_scale_set(estate: Estate, name: str, pool: str, subnet: str, count: int) -> str:
    """A pool's uniform scale set with its instances and their interfaces."""
    scale_set = f"{SCALE_SETS}/{name}"
    configuration = {"name": "ipconfig1", "properties": {"primary": True, "subnet": {"id": subnet}, **_in_pool(estate)}}
    interface = {
        "primary": True,
        "enableIPForwarding": False,
        "enableAcceleratedNetworking": True,
        "networkSecurityGroup": {"id": NODE_RULES},
        "dnsSettings": {"dnsServers": []},
        "ipConfigurations": [configuration],
    }
    estate.add(
        scale_set,
        {
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": False,
            "virtualMachineProfile": {
                "networkProfile": {"networkInterfaceConfigurations": [{"name": name, "properties": interface}]},
                "extensionProfile": {"extensions": extensions_of_aks(name)},
                "diagnosticsProfile": {"bootDiagnostics": {"enabled": True}},
            },
        },
        location=LOCATION,
        # AKS puts the kubelet's identity on every scale set, and writes its group in small letters
        identity={"type": "UserAssigned", "userAssignedIdentities": attached("id-kubelet", KUBELET)},
        sku={"name": "Standard_NC40ads_H100_v5", "tier": "Standard", "capacity": count},
        tags={"aks-managed-poolName": pool, "aks-managed-orchestrator": "Kubernetes:1.34.2"},
    )
    first, view = _first_free(estate, subnet), instance_view(extensions_of_aks(name))
    for number in range(count):
        _add_instance(estate, scale_set, number, subnet, str(first + number), view)
    return scale_set


def attached(name: str, principal: str) -> Body:
    """A user-assigned identity as a scale set shows it."""
    written = f"{IDENTITIES}/{name}".replace("/resourceGroups/", "/resourcegroups/")
    return {written: {"principalId": principal, "clientId": principal[::-1]}}


def extensions_of_aks(name: str) -> list[Body]:
    """As `az vmss extension list` shows them for a scale set of AKS, in public threads of its issues."""
    of_aks = (
        ("vmssCSE", "Microsoft.Azure.Extensions", "CustomScript"),
        ("AKSLinuxExtension", "Microsoft.AKS", "Compute.AKS.Linux.AKSNode"),
        (f"{name}-AKSLinuxBilling", "Microsoft.AKS", "Compute.AKS.Linux.Billing"),
    )
    return [
        {"name": one, "properties": {"publisher": publisher, "type": kind, "settings": {}}}
        for one, publisher, kind in of_aks
    ]


def instance_view(extensions: list[Body]) -> Body:
    """What the agent of a machine with these extensions reports, as `$expand=instanceView` shows it.

    learn.microsoft.com/rest/api/compute/virtualmachinescalesets/list-all-vm-instance-views-in-a-set
    """
    done = [{"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Ready"}]
    reporting = [
        (extension["name"], "{publisher}.{type}".format(**extension["properties"])) for extension in extensions
    ]
    handlers = [{"type": kind, "typeHandlerVersion": "1.0", "status": done[0]} for _, kind in reporting]
    return {
        "statuses": [{"code": "PowerState/running", "level": "Info", "displayStatus": "VM running"}],
        "vmAgent": {"vmAgentVersion": "2.14.0.1", "statuses": done, "extensionHandlers": handlers},
        "extensions": [{"name": name, "type": kind, "statuses": done} for name, kind in reporting],
    }


def _in_pool(estate: Estate) -> Body:
    return {"loadBalancerBackendAddressPools": [{"id": f"{estate.site.balancer}/backendAddressPools/kubernetes"}]}


def _add_instance(estate: Estate, scale_set: str, number: int, subnet: str, address: str, view: Body) -> None:
    machine = f"{scale_set}/virtualMachines/{number}"
    name = f"{name_of(scale_set)}_{number}"
    nic = f"{machine}/networkInterfaces/{name_of(scale_set)}"
    properties = {
        "instanceId": str(number),
        "osProfile": {"computerName": name},
        "timeCreated": CREATED,
        "instanceView": view,
    }
    estate.add(machine, properties, location=LOCATION)
    configuration = {
        "primary": True,
        "privateIPAddress": address,
        "privateIPAddressVersion": "IPv4",
        "subnet": {"id": subnet},
        **_in_pool(estate),
    }
    estate.add(
        nic,
        {
            "primary": True,
            "enableIPForwarding": False,
            "defaultOutboundConnectivityEnabled": False,
            "networkSecurityGroup": {"id": NODE_RULES},
            "dnsSettings": {"dnsServers": []},
            "virtualMachine": {"id": machine.replace("/Microsoft.Compute/", "/microsoft.Compute/")},
            "ipConfigurations": [{"name": "ipconfig1", "properties": configuration}],
        },
    )


def _first_free(estate: Estate, subnet: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The next free address for nodes: after those that Azure keeps in every subnet, and a few more.

    It goes through the resources as they are: the index would be built anew for each of a hundred scale sets.
    """
    configurations = [
        configuration["properties"]
        for nic in estate.resources.values()
        if nic["type"].lower() == INSTANCE_NICS
        for configuration in nic["properties"]["ipConfigurations"]
    ]
    taken = sum(configuration["subnet"]["id"].lower() == subnet.lower() for configuration in configurations)
    return ipaddress.ip_network(estate.properties(subnet)["addressPrefix"])[10 + taken]


def _add_balancers(estate: Estate, layout: Layout) -> None:
    """Standard and internal: one for Services, and AKS's own before an API server in the network."""
    add_balancer(estate, estate.site.balancer, layout.subnet("snet-services"), "10.40.12.10")
    if estate.site.api_subnet:
        api = f"{NODE_GROUP}/{NETWORK}/loadBalancers/kube-apiserver"
        add_balancer(estate, api, estate.site.api_subnet, "10.40.11.4", holds_nodes=False)


def add_balancer(estate: Estate, balancer: str, subnet: str, address: str, *, holds_nodes: bool = True) -> str:
    members = [
        f"{nic['id']}/ipConfigurations/ipconfig1"
        for nic in estate.of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces")
        if holds_nodes
    ]
    frontend, pool = f"{balancer}/frontendIPConfigurations/internal", f"{balancer}/backendAddressPools/kubernetes"
    private = {"privateIPAddress": address, "privateIPAllocationMethod": "Static", "subnet": {"id": subnet}}
    addresses = [{"name": name_of(m), "properties": {"networkInterfaceIPConfiguration": {"id": m}}} for m in members]
    held = {
        "backendIPConfigurations": [{"id": member} for member in members],
        "loadBalancerBackendAddresses": addresses,
    }
    balancing = {
        "frontendIPConfiguration": {"id": frontend},
        "backendAddressPool": {"id": pool},
        "backendAddressPools": [{"id": pool}],
        "protocol": "Tcp",
        "frontendPort": 443,
        "backendPort": 443,
        "enableFloatingIP": True,
        "disableOutboundSnat": True,
        "idleTimeoutInMinutes": 4,
    }
    properties = {
        "frontendIPConfigurations": [{"id": frontend, "name": "internal", "properties": private}],
        "backendAddressPools": [{"id": pool, "name": "kubernetes", "properties": held}],
        "loadBalancingRules": [{"name": "serving-443", "properties": balancing}],
        "probes": [],
        "inboundNatRules": [],
        "outboundRules": [],
        "inboundNatPools": [],
    }
    return estate.add(balancer, properties, location=LOCATION, sku={"name": "Standard", "tier": "Regional"})
