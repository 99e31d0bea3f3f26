"""The ARM side of textbook estates: documented set-ups, piece by piece, over the pieces of the sealed layouts.

What is common to all of them, as AKS's documents have it:
- the control plane's identity is Contributor on the node resource group (managed-identity-overview);
- the kubelet's identity is attached to every scale set and may pull (use-managed-identity);
- the node resource group is locked (node-resource-group-lockdown), where an estate does not say otherwise;
- nothing shows whether an interface of a scale set has default outbound access.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from testbed.azure.baseline import built
from testbed.azure.baseline.cluster import (
    CREATED,
    IDENTITIES,
    NODE_RULES,
    add_cluster,
    extensions_of_aks,
    instance_view,
)
from testbed.azure.baseline.firewall import POLICY as FIREWALL_POLICY
from testbed.azure.baseline.layout import (
    CONTROL_PLANE,
    DATA_GROUP,
    HUB_GROUP,
    KUBELET,
    LOCATION,
    NETWORK,
    NETWORK_GROUP,
    NODE_GROUP,
    Layout,
    site_of,
)
from testbed.azure.baseline.network import AKS_DELEGATION, add_machine
from testbed.azure.baseline.services import (
    add_api_server_endpoint,
    add_endpoint,
    add_identities,
    add_names,
    add_registry,
    add_stores,
    assign,
)
from testbed.azure.estate import Estate
from testbed.azure.ids import name_of
from testbed.azure.references import refer_back

Body = dict[str, Any]

CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
ASSOCIATIONS = "Microsoft.Insights/dataCollectionRuleAssociations"
NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"
MANAGED_SPACE = "10.224.0.0/12"  # what AKS gives its own network (learn.microsoft.com/azure/aks/concepts-network)
MANAGED_REGISTRY = f"{NODE_GROUP}/providers/Microsoft.ContainerRegistry/registries/akscacr31862004"
ON_PREMISES = "10.200.0.0/16"


@dataclass(frozen=True)
class ManagedNetwork(Layout):
    """AKS's own network: one subnet for nodes and endpoints, and one that it delegates to the API server."""

    def subnet(self, name: str) -> str:
        """`aks-subnet`, whatever it is asked for."""
        own = "aks-apiserver-subnet" if name == "snet-apiserver" else "aks-subnet"
        return f"{self.vnet}/subnets/{own}"


def in_own_network(**how: Any) -> Estate:
    """learn.microsoft.com/azure/aks/network-isolated, "bring your own ACR", steps 1 to 7, in a network that is sealed:
    private subnets, a route to nowhere, a security group that denies (concepts-network-isolated recommends the last).
    All pools share the one subnet that the document makes for AKS.
    """
    estate = built(Layout("textbook", one_subnet=True, **how))
    if estate.site.api_subnet:
        _api_subnet_as_documented(estate)
    if estate.profile == "filtered":
        _hosts_as_documented(estate)
    return settled(estate)


def _hosts_as_documented(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/outbound-rules-control-egress: images, packages and updates of the nodes."""
    rules = estate.properties(f"{FIREWALL_POLICY}/ruleCollectionGroups/inference")["ruleCollections"][0]["rules"]
    rules[0]["targetFqdns"] = [
        "mcr.microsoft.com",
        "*.data.mcr.microsoft.com",
        "packages.microsoft.com",
        "packages.aks.azure.com",
        "security.ubuntu.com",
        "us.download.nvidia.com",
    ]


def in_managed_network(outbound: str, *, api_in_network: bool, locked: bool = True) -> Estate:
    """The same document, "AKS-managed ACR": `az aks create --outbound-type none|block` without a subnet.

    The network has no route table, and its security group is at the nodes' interfaces only. Registry and storage of
    the team have their private endpoints in the one subnet; they were made before the group was locked.
    """
    layout = ManagedNetwork(
        "textbook",
        managed=True,
        outbound=outbound,
        pod_subnet=False,
        sentinel=False,
        private_link_api=not api_in_network,
    )
    names = f"{NETWORK_GROUP}/{NETWORK}"
    site = replace(
        site_of(layout),
        system_subnet=layout.subnet(""),
        gpu_subnet=layout.subnet(""),
        endpoint_subnet=layout.subnet(""),
        route_table="",
        node_rules=NODE_RULES,
        dns_policy=f"{names}/dnsResolverPolicies/dnspolicy-inference",
    )
    estate = Estate(site)
    _add_managed_network(estate)
    add_identities(estate)
    _add_managed_services(estate)
    add_cluster(estate, layout)
    for pool in estate.properties(estate.cluster)["agentPoolProfiles"]:
        del pool["vnetSubnetID"]  # not set for a network that AKS made
    estate.properties(estate.cluster)["apiServerAccessProfile"].pop("subnetId", None)
    _move_frontends(estate)
    managed_registry(estate)
    return settled(estate, locked=locked)


def settled(estate: Estate, *, locked: bool = True) -> Estate:
    """What every cluster has, and the worst that documents allow of what Azure shows."""
    assign(estate, NODE_GROUP, CONTROL_PLANE, CONTRIBUTOR, "0e7d3c52-61f4-4b0a-9d28-5a1c7f93be64")
    kubelet = {f"{IDENTITIES}/id-kubelet": {"principalId": KUBELET, "clientId": KUBELET[::-1]}}
    for scale_set in estate.of_type("Microsoft.Compute/virtualMachineScaleSets"):
        scale_set["identity"] = {"type": "UserAssigned", "userAssignedIdentities": kubelet}
    if locked:
        estate.lock(estate.site.node_group)
    else:
        cluster(estate)["nodeResourceGroupProfile"] = {"restrictionLevel": "Unrestricted"}
    return refer_back(estate)


def managed_registry(estate: Estate) -> None:
    """AKS makes it with its private endpoint, zone and link in the node resource group, and reconciles all of them."""
    add_registry(estate, MANAGED_REGISTRY)
    # not documented for this registry: Azure's default
    estate.properties(MANAGED_REGISTRY)["networkRuleBypassOptions"] = "AzureServices"
    home = estate.site.endpoint_subnet
    address = "10.224.255.4" if home.endswith("/aks-subnet") else "10.40.8.40"
    add_endpoint(
        estate, f"{NODE_GROUP}/{NETWORK}/privateEndpoints/akscacr-pe", MANAGED_REGISTRY, "registry", address, home
    )
    zone = f"{NODE_GROUP}/{NETWORK}/privateDnsZones/privatelink.azurecr.io"
    estate.add(zone, {"numberOfVirtualNetworkLinks": 1}, location="global")
    linked = {"virtualNetwork": {"id": estate.site.vnet}, "registrationEnabled": False}
    estate.add(f"{zone}/virtualNetworkLinks/akscacr", linked, location="global")
    estate.properties(estate.cluster)["bootstrapProfile"]["containerRegistryId"] = MANAGED_REGISTRY


def _api_subnet_as_documented(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/api-server-vnet-integration makes it with a delegation and nothing else."""
    subnet = estate.properties(estate.site.api_subnet)
    for field in ("networkSecurityGroup", "routeTable"):
        del subnet[field]
    scope = estate.site.api_subnet
    assign(estate, scope, CONTROL_PLANE, NETWORK_CONTRIBUTOR, "8c41f2a6-93d7-4e5b-b016-27ea9d50c3f8")


def _add_managed_network(estate: Estate) -> None:
    site = estate.site
    private = {"defaultOutboundAccess": False, "serviceEndpoints": [], "delegations": []}
    estate.add(
        site.vnet,
        {
            "addressSpace": {"addressPrefixes": [MANAGED_SPACE]},
            "dhcpOptions": {"dnsServers": []},
            "subnets": [],
            "virtualNetworkPeerings": [],
        },
        location=LOCATION,
    )
    estate.add(site.gpu_subnet, {"addressPrefix": "10.224.0.0/16", **private})
    if site.api_subnet:
        delegation = {"name": "aks", "properties": {"serviceName": AKS_DELEGATION}}
        estate.add(site.api_subnet, {"addressPrefix": "10.226.0.0/28", **private, "delegations": [delegation]})
    estate.add(site.watcher, {}, location=LOCATION)


def _add_managed_services(estate: Estate) -> None:
    site = estate.site
    add_stores(estate)
    endpoints = f"{DATA_GROUP}/{NETWORK}/privateEndpoints"
    for number, (name, target, part) in enumerate(
        (
            ("pe-registry", site.registry, "registry"),
            ("pe-storage", site.storage, "file"),
            ("pe-share", site.share, "FileShare"),
        )
    ):
        add_endpoint(estate, f"{endpoints}/{name}", target, part, f"10.224.255.{20 + number}")
    if not site.api_subnet:
        add_api_server_endpoint(estate)
    add_names(estate, NETWORK_GROUP)


def _move_frontends(estate: Estate) -> None:
    """Into the address space of AKS's own network."""
    for balancer in estate.of_type("Microsoft.Network/loadBalancers"):
        for number, frontend in enumerate(balancer["properties"]["frontendIPConfigurations"]):
            in_api = frontend["properties"]["subnet"]["id"].endswith("/aks-apiserver-subnet")
            frontend["properties"]["privateIPAddress"] = "10.226.0.4" if in_api else f"10.224.255.{60 + number}"


# ------------------------------------------------------------------ what clusters differ in


def cluster(estate: Estate) -> Body:
    """The cluster's properties."""
    return estate.properties(estate.cluster)


def with_npm(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/configure-azure-cni-dynamic-ip-allocation and use-network-policies: Azure NPM."""
    cluster(estate)["networkProfile"] |= {"networkPolicy": "azure", "networkDataplane": "azure"}


def with_kubenet(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/configure-kubenet, "Bring your own subnet and route table": AKS adds one route for
    each node's pods to the team's own table, and the nodes' interfaces forward.
    """
    profile = cluster(estate)["networkProfile"]
    profile.pop("networkPluginMode", None)
    profile |= {"networkPlugin": "kubenet", "networkPolicy": "calico", "podCidr": "10.244.0.0/16"}
    profile.pop("networkDataplane")
    kind = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"
    routes = estate.properties(estate.site.route_table)["routes"]
    for number, nic in enumerate(estate.of_type(kind)):
        nic["properties"]["enableIPForwarding"] = True
        address = nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"]
        name = f"{name_of(nic['id'])}{number:06d}____10244{number}024"
        hop = {"nextHopType": "VirtualAppliance", "nextHopIpAddress": address}
        routes.append({"name": name, "properties": {"addressPrefix": f"10.244.{number}.0/24", **hop}})


def with_monitoring(estate: Estate) -> None:
    """learn.microsoft.com/azure/azure-monitor/containers/kubernetes-monitoring-private-link: a private link scope."""
    scope = f"{DATA_GROUP}/providers/Microsoft.Insights/privateLinkScopes/ampls-inference"
    estate.add(
        scope,
        {
            "accessModeSettings": {
                "ingestionAccessMode": "PrivateOnly",
                "queryAccessMode": "PrivateOnly",
                "exclusions": [],
            }
        },
        location="global",
    )
    endpoint = f"{estate.site.vnet.partition('/providers/')[0]}/{NETWORK}/privateEndpoints/pe-monitor"
    add_endpoint(estate, endpoint, scope, "azuremonitor", "10.40.8.9")
    properties = cluster(estate)
    properties["azureMonitorProfile"] = {"metrics": {"enabled": True, "kubeStateMetrics": {}}}
    properties["addonProfiles"]["omsagent"] = {
        "enabled": True,
        "config": {"useAADAuth": "true", "logAnalyticsWorkspaceResourceID": workspace(estate)},
    }
    account = f"{DATA_GROUP}/providers/Microsoft.Monitor/accounts/amw-inference"
    logs = {"logAnalytics": [{"workspaceResourceId": workspace(estate), "name": "ciworkspace"}]}
    metrics = {"monitoringAccounts": [{"accountResourceId": account, "name": "MonitoringAccount1"}]}
    _collect(estate, "ContainerInsightsExtension", "MSCI-westeurope-aks-inference", logs)
    _collect(estate, "ContainerInsightsMetricsExtension", "MSProm-westeurope-aks-inference", metrics)
    collector = f"{DATA_GROUP}/providers/Microsoft.Insights/dataCollectionEndpoints/dce-inference"
    held = {"dataCollectionEndpointId": collector}
    estate.add(f"{estate.cluster}/providers/{ASSOCIATIONS}/configurationAccessEndpoint", held)
    for member in (workspace(estate), collector):
        estate.add(f"{scope}/scopedResources/{name_of(member)}", {"linkedResourceId": member})


def _collect(estate: Estate, association: str, rule: str, destinations: dict[str, Any]) -> None:
    """A data collection rule of the agents, associated with the cluster."""
    identifier = f"{DATA_GROUP}/providers/Microsoft.Insights/dataCollectionRules/{rule}"
    estate.add(identifier, {"destinations": destinations, "dataSources": {}, "dataFlows": []}, location=LOCATION)
    estate.add(f"{estate.cluster}/providers/{ASSOCIATIONS}/{association}", {"dataCollectionRuleId": identifier})


def workspace(estate: Estate) -> str:
    """The Log Analytics workspace behind the scope."""
    identifier = f"{DATA_GROUP}/providers/Microsoft.OperationalInsights/workspaces/log-inference"
    if identifier not in estate:
        closed = {"publicNetworkAccessForIngestion": "Disabled", "publicNetworkAccessForQuery": "Disabled"}
        estate.add(identifier, closed, location=LOCATION)
    return identifier


def with_defender(estate: Estate) -> None:
    """learn.microsoft.com/azure/defender-for-cloud/defender-for-containers-enable: the sensor."""
    profile = {"logAnalyticsWorkspaceResourceId": workspace(estate), "securityMonitoring": {"enabled": True}}
    cluster(estate)["securityProfile"]["defender"] = profile
    link = estate.add(f"{DATA_GROUP}/providers/Microsoft.Security/privateLinks/defender", {}, location=LOCATION)
    endpoint = f"{estate.site.vnet.partition('/providers/')[0]}/{NETWORK}/privateEndpoints/pe-defender"
    add_endpoint(estate, endpoint, link, "containers", "10.40.8.10")


def with_image_cleaner(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/image-cleaner."""
    cluster(estate)["securityProfile"]["imageCleaner"] = {"enabled": True, "intervalHours": 168}


def with_service_mesh(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/istio-deploy-addon and istio-cni: no gateway of the add-on is enabled."""
    mesh = {"revisions": ["asm-1-27"], "components": {"proxyRedirectionMechanism": "CNIChaining"}}
    cluster(estate)["serviceMeshProfile"] = {"mode": "Istio", "istio": mesh}


def with_azure_policy(estate: Estate) -> None:
    """learn.microsoft.com/azure/governance/policy/concepts/policy-for-kubernetes."""
    cluster(estate)["addonProfiles"]["azurepolicy"] = {"enabled": True, "config": None}


def with_local_dns(estate: Estate, version: str = "1.36.1") -> None:
    """learn.microsoft.com/azure/aks/localdns-custom; on by default from Kubernetes 1.36 (AKS release notes)."""
    properties = cluster(estate)
    properties |= {"kubernetesVersion": version, "currentKubernetesVersion": version}
    for pool in properties["agentPoolProfiles"]:
        pool |= {"orchestratorVersion": version, "currentOrchestratorVersion": version}
        pool["localDNSProfile"] = {"mode": "Required", "state": "Enabled"}


def with_own_drivers(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/nvidia-gpu-operator: pools of the GPU Operator, `--gpu-driver none`."""
    for pool in cluster(estate)["agentPoolProfiles"]:
        if "gpuProfile" in pool:
            pool["gpuProfile"] = {"driver": "None"}


def automatic(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/intro-aks-automatic: what the SKU presets, in a network of one's own.

    From Kubernetes 1.36 on application routing comes with the Gateway API in place of an NGINX controller (AKS release
    notes, May 2026). It publishes nothing before a Gateway is made.
    """
    estate[estate.cluster]["sku"] = {"name": "Automatic", "tier": "Standard"}
    properties = cluster(estate)
    properties["nodeProvisioningProfile"] = {"mode": "Auto", "defaultNodePools": "Auto"}
    properties["autoUpgradeProfile"] = {"upgradeChannel": "stable", "nodeOSUpgradeChannel": "NodeImage"}
    properties["oidcIssuerProfile"] = {"enabled": True, "issuerURL": f"https://{LOCATION}.oic.prod-aks.azure.com/t/i/"}
    properties["securityProfile"]["workloadIdentity"] = {"enabled": True}
    properties["workloadAutoScalerProfile"] = {"keda": {"enabled": True}, "verticalPodAutoscaler": {"enabled": True}}
    properties["ingressProfile"] = {
        "gatewayAPI": {"installation": "Standard"},
        "webAppRouting": {
            "enabled": True,
            "nginx": {"defaultIngressControllerType": "None"},
            "gatewayAPIImplementations": {"appRoutingIstio": {"mode": "Enabled"}},
        },
    }
    properties["addonProfiles"]["azureKeyvaultSecretsProvider"] = {"enabled": False, "config": None}
    with_azure_policy(estate)
    with_image_cleaner(estate)
    with_local_dns(estate)
    for number in range(2):
        _provisioned(estate, number)


def with_machines_of_their_own(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/virtual-machines-node-pools: nodes of a pool of type VirtualMachines, in AKS's
    own network.
    """
    for number in range(2):
        _provisioned(estate, number, "10.224.0")


def _provisioned(estate: Estate, number: int, network: str = "10.40.1") -> None:
    """learn.microsoft.com/azure/aks/node-auto-provisioning: a node that is a machine, in the node resource group."""
    name = f"aks-default-{number}k7x2"
    nic = f"{NODE_GROUP}/{NETWORK}/networkInterfaces/{name}"
    machine = add_machine(estate, name, nic, estate.site.gpu_subnet, f"{network}.{220 + number}")
    estate.properties(nic)["networkSecurityGroup"] = {"id": NODE_RULES}
    estate.properties(machine).update(timeCreated=CREATED, instanceView=instance_view(extensions_of_aks(name)))


def with_routed_api_subnet(estate: Estate) -> None:
    """learn.microsoft.com/azure/aks/egress-udr: every subnet has the table that learns nothing."""
    estate.properties(estate.site.api_subnet)["routeTable"] = {"id": estate.site.route_table}


def with_on_premises(estate: Estate) -> None:
    """learn.microsoft.com/azure/architecture/networking/architecture/hub-spoke: a VPN gateway in the hub that leads to
    the company's network, used by the spoke through the peering; the spoke's table takes over nothing that it learns.
    """
    site = estate.site
    home = f"{site.hub}/subnets/GatewaySubnet"
    estate.add(home, {"addressPrefix": "10.10.2.0/27", "defaultOutboundAccess": False})
    gateway, local = (
        f"{HUB_GROUP}/{NETWORK}/virtualNetworkGateways/vgw-hub",
        f"{HUB_GROUP}/{NETWORK}/localNetworkGateways/site",
    )
    address = f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-vgw-hub"
    estate.add(address, {"ipAddress": "20.91.128.40"}, location=LOCATION, sku={"name": "Standard"})
    configuration = {"subnet": {"id": home}, "publicIPAddress": {"id": address}}
    properties = {"gatewayType": "Vpn", "vpnType": "RouteBased", "enableBgp": True}
    estate.add(
        gateway,
        {**properties, "ipConfigurations": [{"name": "default", "properties": configuration}]},
        location=LOCATION,
    )
    estate.add(local, {"localNetworkAddressSpace": {"addressPrefixes": [ON_PREMISES]}}, location=LOCATION)
    ends = {"virtualNetworkGateway1": {"id": gateway}, "localNetworkGateway2": {"id": local}}
    connected = {"connectionType": "IPsec", "connectionStatus": "Connected", **ends}
    estate.add(f"{HUB_GROUP}/{NETWORK}/connections/to-site", connected, location=LOCATION)
    estate.properties(site.peering)["useRemoteGateways"] = True
    estate.properties(f"{site.hub}/virtualNetworkPeerings/to-inference")["allowGatewayTransit"] = True
    learned = [{"network": ON_PREMISES, "origin": "EBgp", "nextHop": "10.10.2.30", "asPath": "65010"}]
    estate.answer(gateway, "getLearnedRoutes", {"value": learned})
