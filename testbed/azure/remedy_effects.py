"""What az commands change in the documents of an estate, command by command, as Azure documents it.

Each command group has the ARM type that it is about and the options that name the resource. Each option of an update
has the ARM property that it writes. The page of a command is learn.microsoft.com/cli/azure/ with the group's name; the
properties are those of learn.microsoft.com/azure/templates, with the type's name. Rows that need more have a source of
their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NETWORK, REGISTRY = "Microsoft.Network", "Microsoft.ContainerRegistry/registries"
CLUSTER, ACCOUNT = "Microsoft.ContainerService/managedClusters", "Microsoft.Storage/storageAccounts"
FLAGS: dict[str, Any] = {"true": True, "false": False}
SWITCHES = {"true": "Enabled", "false": "Disabled"}
STATUSES = {"true": "enabled", "false": "disabled"}
BY_NAME = ("--name",)
OF_A_REGISTRY = ("--registry", "--name")


@dataclass(frozen=True)
class Group:
    """A command group: the ARM type of its resources, and the options whose values are their names, parent first."""

    kind: str
    names: tuple[str, ...] = BY_NAME


@dataclass(frozen=True)
class Written:
    """The property that an option writes. values: ARM's value by the word typed. flag: the value of a bare option."""

    path: str
    values: dict[str, Any] = field(default_factory=dict)
    flag: Any = None


GROUPS = {
    "acr": Group(REGISTRY),
    "acr cache": Group(f"{REGISTRY}/cacheRules", OF_A_REGISTRY),
    "acr config authentication-as-arm": Group(REGISTRY, ("--registry",)),
    "acr connected-registry": Group(f"{REGISTRY}/connectedRegistries", OF_A_REGISTRY),
    "acr replication": Group(f"{REGISTRY}/replications", OF_A_REGISTRY),
    "acr token": Group(f"{REGISTRY}/tokens", OF_A_REGISTRY),
    "acr webhook": Group(f"{REGISTRY}/webhooks", OF_A_REGISTRY),
    "aks": Group(CLUSTER),
    "aks approuting": Group(CLUSTER),
    "aks nodepool": Group(f"{CLUSTER}/agentPools", ("--cluster-name", "--name")),
    "aks trustedaccess rolebinding": Group(f"{CLUSTER}/trustedAccessRoleBindings", ("--cluster-name", "--name")),
    "connectedk8s": Group("Microsoft.Kubernetes/connectedClusters"),
    "disk": Group("Microsoft.Compute/disks"),
    "monitor private-link-scope": Group("Microsoft.Insights/privateLinkScopes"),
    "network lb frontend-ip": Group(f"{NETWORK}/loadBalancers/frontendIPConfigurations", ("--lb-name", "--name")),
    "network lb outbound-rule": Group(f"{NETWORK}/loadBalancers/outboundRules", ("--lb-name", "--name")),
    "network nat gateway": Group(f"{NETWORK}/natGateways"),
    "network nic": Group(f"{NETWORK}/networkInterfaces"),
    "network nic ip-config": Group(f"{NETWORK}/networkInterfaces/ipConfigurations", ("--nic-name", "--name")),
    "network nsg rule": Group(f"{NETWORK}/networkSecurityGroups/securityRules", ("--nsg-name", "--name")),
    "network private-dns link vnet": Group(f"{NETWORK}/privateDnsZones/virtualNetworkLinks", ("--zone-name", "--name")),
    "network private-endpoint": Group(f"{NETWORK}/privateEndpoints"),
    "network private-link-service": Group(f"{NETWORK}/privateLinkServices"),
    "network public-ip": Group(f"{NETWORK}/publicIPAddresses"),
    "network route-table": Group(f"{NETWORK}/routeTables"),
    "network route-table route": Group(f"{NETWORK}/routeTables/routes", ("--route-table-name", "--name")),
    "network vnet": Group(f"{NETWORK}/virtualNetworks"),
    "network vnet peering": Group(f"{NETWORK}/virtualNetworks/virtualNetworkPeerings", ("--vnet-name", "--name")),
    "network vnet subnet": Group(f"{NETWORK}/virtualNetworks/subnets", ("--vnet-name", "--name")),
    "network vnet-gateway": Group(f"{NETWORK}/virtualNetworkGateways"),
    "network vpn-connection": Group(f"{NETWORK}/connections"),
    "resource": Group(""),
    "role assignment": Group("Microsoft.Authorization/roleAssignments"),
    "snapshot": Group("Microsoft.Compute/snapshots"),
    "storage account": Group(ACCOUNT),
    "storage account blob-service-properties": Group(f"{ACCOUNT}/blobServices", ("--account-name",)),
    "storage account local-user": Group(f"{ACCOUNT}/localUsers", ("--account-name", "--name")),
    "storage account or-policy": Group(f"{ACCOUNT}/objectReplicationPolicies", ("--account-name", "--policy-id")),
}
"""By the words after `az` and before the verb."""

READS = ("show", "list")
"""Verbs that begin so change nothing."""

# What each option of `update` writes, below `properties`.
UPDATES: dict[str, dict[str, Written]] = {
    "acr": {
        "--admin-enabled": Written("adminUserEnabled", FLAGS),
        "--allow-exports": Written("policies.exportPolicy.status", STATUSES),
        "--allow-trusted-services": Written("networkRuleBypassOptions", {"true": "AzureServices", "false": "None"}),
        "--anonymous-pull-enabled": Written("anonymousPullEnabled", FLAGS),
        "--default-action": Written("networkRuleSet.defaultAction"),
        "--endpoint-protocol": Written("endpointProtocol"),
        "--public-network-enabled": Written("publicNetworkAccess", SWITCHES),
        "--regional-endpoints": Written("regionalEndpoints"),
        "--writable-cache-repos": Written("writableCacheRepos"),
    },
    "acr config authentication-as-arm": {
        "--status": Written("policies.azureADAuthenticationAsArmPolicy.status"),
    },
    "acr token": {"--status": Written("status")},
    "aks": {
        "--apiserver-subnet-id": Written("apiServerAccessProfile.subnetId"),
        "--bootstrap-artifact-source": Written("bootstrapProfile.artifactSource"),
        "--bootstrap-container-registry-resource-id": Written("bootstrapProfile.containerRegistryId"),
        "--disable-ai-toolchain-operator": Written("aiToolchainOperatorProfile.enabled", flag=False),
        "--disable-azure-monitor-metrics": Written("azureMonitorProfile.metrics.enabled", flag=False),
        "--disable-cost-analysis": Written("metricsProfile.costAnalysis.enabled", flag=False),
        "--disable-defender": Written("securityProfile.defender.securityMonitoring.enabled", flag=False),
        "--disable-http-proxy": Written("httpProxyConfig.enabled", flag=False),
        "--disable-keda": Written("workloadAutoScalerProfile.keda.enabled", flag=False),
        "--disable-public-fqdn": Written("apiServerAccessProfile.enablePrivateClusterPublicFQDN", flag=False),
        "--disable-run-command": Written("apiServerAccessProfile.disableRunCommand", flag=True),
        "--disable-static-egress-gateway": Written("networkProfile.staticEgressGatewayProfile.enabled", flag=False),
        "--enable-apiserver-vnet-integration": Written("apiServerAccessProfile.enableVnetIntegration", flag=True),
        "--enable-private-cluster": Written("apiServerAccessProfile.enablePrivateCluster", flag=True),
        "--load-balancer-backend-pool-type": Written("networkProfile.loadBalancerProfile.backendPoolType"),
        "--network-dataplane": Written("networkProfile.networkDataplane"),
        "--network-plugin-mode": Written("networkProfile.networkPluginMode"),
        "--network-policy": Written("networkProfile.networkPolicy"),
        "--node-os-upgrade-channel": Written("autoUpgradeProfile.nodeOSUpgradeChannel"),
        "--nrg-lockdown-restriction-level": Written("nodeResourceGroupProfile.restrictionLevel"),
        "--outbound-type": Written("networkProfile.outboundType"),
    },
    "aks approuting": {
        "--nginx": Written("ingressProfile.webAppRouting.nginx.defaultIngressControllerType"),
    },
    "disk": {
        "--network-access-policy": Written("networkAccessPolicy"),
        "--public-network-access": Written("publicNetworkAccess"),
    },
    "monitor private-link-scope": {},
    "network lb frontend-ip": {},
    "network nat gateway": {},
    "network nic": {"--ip-forwarding": Written("enableIPForwarding", FLAGS)},
    "network nic ip-config": {},
    "network private-dns link vnet": {"--resolution-policy": Written("resolutionPolicy")},
    "network route-table": {"--disable-bgp-route-propagation": Written("disableBgpRoutePropagation", FLAGS)},
    "network route-table route": {"--next-hop-type": Written("nextHopType")},
    "network vnet": {"--dns-servers": Written("dhcpOptions.dnsServers")},
    "network vnet peering": {},
    "network vnet subnet": {
        "--default-outbound-access": Written("defaultOutboundAccess", FLAGS),
        "--network-security-group": Written("networkSecurityGroup.id"),
        "--private-endpoint-network-policies": Written("privateEndpointNetworkPolicies"),
        "--route-table": Written("routeTable.id"),
    },
    "network vnet-gateway": {},
    "resource": {},
    "snapshot": {
        "--network-access-policy": Written("networkAccessPolicy"),
        "--public-network-access": Written("publicNetworkAccess"),
    },
    "storage account": {
        "--bypass": Written("networkAcls.bypass"),
        "--default-action": Written("networkAcls.defaultAction"),
        "--enable-local-user": Written("isLocalUserEnabled", FLAGS),
        "--enable-sftp": Written("isSftpEnabled", FLAGS),
        "--public-network-access": Written("publicNetworkAccess"),
    },
    "storage account blob-service-properties": {
        "--enable-static-website": Written("staticWebsite.enabled", FLAGS),
    },
}
# The profile of each add-on: learn.microsoft.com/azure/aks/integrations; azure-cli, acs/_consts.py
ADDONS = {"monitoring": "omsagent", "virtual-node": "aciConnectorLinux"}
# What `az network nsg rule create` writes of each option: azure/templates/microsoft.network/networksecuritygroups
RULE = {
    "--access": "access",
    "--destination-address-prefixes": "destinationAddressPrefix",
    "--destination-port-ranges": "destinationPortRange",
    "--direction": "direction",
    "--priority": "priority",
    "--protocol": "protocol",
    "--source-address-prefixes": "sourceAddressPrefix",
    "--source-port-ranges": "sourcePortRange",
}
