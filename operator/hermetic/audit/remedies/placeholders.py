"""The placeholders (capitals) of a remedy's commands, and where their values come from.

One vocabulary for every check: values that a finding's resource, its cluster or its check gives are filled in; the rest
(`CHOSEN`) is chosen by the user. CONTRIBUTING.md has the same list.
"""

from __future__ import annotations

import re

# resource type -> the stem of its placeholders: SUBNET_ID, SUBNET_NAME. A child's id also gives those of its parents.
STEMS = {
    "Microsoft.Compute/virtualMachineScaleSets": "SCALE_SET",
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines": "INSTANCE",
    "Microsoft.Compute/virtualMachineScaleSets/extensions": "VM_EXTENSION",
    "Microsoft.Compute/virtualMachines": "VM",
    "Microsoft.Compute/disks": "DISK",
    "Microsoft.Compute/snapshots": "SNAPSHOT",
    "Microsoft.ContainerRegistry/registries": "REGISTRY",
    "Microsoft.ContainerService/managedClusters/agentPools": "POOL",
    "Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings": "BINDING",
    "Microsoft.FileShares/fileShares": "FILE_SHARE",
    "Microsoft.Insights/privateLinkScopes": "MONITOR_SCOPE",
    "Microsoft.Kubernetes/connectedClusters": "CONNECTED_CLUSTER",
    "Microsoft.KubernetesConfiguration/extensions": "EXTENSION",
    "Microsoft.KubernetesConfiguration/fluxConfigurations": "FLUX_CONFIGURATION",
    "Microsoft.Network/applicationGateways": "APPLICATION_GATEWAY",
    "Microsoft.Network/azureFirewalls": "FIREWALL",
    "Microsoft.Network/bastionHosts": "BASTION",
    "Microsoft.Network/connections": "VPN_CONNECTION",
    "Microsoft.Network/dnsForwardingRulesets": "RULESET",
    "Microsoft.Network/loadBalancers": "LOAD_BALANCER",
    "Microsoft.Network/natGateways": "NAT_GATEWAY",
    "Microsoft.Network/networkInterfaces": "NIC",
    "Microsoft.Network/networkSecurityGroups": "NSG",
    "Microsoft.Network/privateDnsZones": "ZONE",
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks": "ZONE_LINK",
    "Microsoft.Network/privateEndpoints": "PRIVATE_ENDPOINT",
    "Microsoft.Network/privateLinkServices": "PRIVATE_LINK_SERVICE",
    "Microsoft.Network/publicIPAddresses": "PUBLIC_IP",
    "Microsoft.Network/publicIPPrefixes": "PUBLIC_IP_PREFIX",
    "Microsoft.Network/routeTables": "ROUTE_TABLE",
    "Microsoft.Network/serviceEndpointPolicies": "SERVICE_ENDPOINT_POLICY",
    "Microsoft.Network/serviceGateways": "SERVICE_GATEWAY",
    "Microsoft.Network/virtualHubs": "VIRTUAL_HUB",
    "Microsoft.Network/virtualHubs/hubVirtualNetworkConnections": "HUB_CONNECTION",
    "Microsoft.Network/virtualNetworkAppliances": "NETWORK_APPLIANCE",
    "Microsoft.Network/virtualNetworkGateways": "VNET_GATEWAY",
    "Microsoft.Network/virtualNetworks": "VNET",
    "Microsoft.Network/virtualNetworks/subnets": "SUBNET",
    "Microsoft.Network/virtualNetworks/virtualNetworkPeerings": "PEERING",
    "Microsoft.Storage/storageAccounts": "STORAGE_ACCOUNT",
}

FROM_THE_RESOURCE = {
    "RESOURCE_ID": "ARM id of the finding's resource",
    "RESOURCE_NAME": "its name",
    "RESOURCE_GROUP": "its resource group, never that of the cluster",
    "SUBSCRIPTION_ID": "its subscription",
    "PARENT_ID": "ARM id of the resource that it is a child of",
    "PARENT_NAME": "name of that one",
    "NAMESPACE": "namespace of the finding's Kubernetes object",
    "NAME": "name of the finding's Kubernetes object",
    "KIND": "kind of that object, as kubectl takes it",
}
FROM_THE_CLUSTER = {
    "CLUSTER_ID": "ARM id of the cluster",
    "CLUSTER_NAME": "its name",
    "CLUSTER_GROUP": "its resource group, beside CLUSTER_NAME",
    "CLUSTER_SUBSCRIPTION": "its subscription",
    "NODE_GROUP": "its node resource group",
}
# A check gives these: fails(..., fill={"RULE_NAME": rule.name}).
FROM_THE_CHECK = {
    "ADDON_NAME": "add-on of the cluster, as az calls it",
    "ASSIGNMENT_ID": "ARM id of a role assignment",
    "ATTACHED_ID": "ARM id of what is attached to the resource",
    "CONFIGURATION_NAME": "name of an IP configuration of the interface",
    "DESTINATION": "address or prefix",
    "GATEWAY_NAME": "name of a gateway, or of a pool of gateways, of the cluster",
    "LINK_ID": "ARM id of a private endpoint connection",
    "NSG_GROUP": "resource group of the security group NSG_NAME",
    "RULE_NAME": "name of a rule, route, frontend, webhook or of another entry that the resource lists",
    "SECRET_NAME": "name of a Secret that the pods take variables from",
    "SENTINEL_NIC_ID": "ARM id of the interface that the effective rules or routes were read from",
}
CHOSEN = {
    "ADMIN_RULE_ID": "the security admin rule that the message names",
    "ALLOWED_RANGES": "ranges that may reach the API server",
    "API_SERVER_FQDN": "name of the API server, as the kubeconfig has it",
    "DEFINITION_NAME": "a definition of the service endpoint policy",
    "DEPLOYED_CONFIGURATION_IDS": "configurations of Network Manager that stay deployed",
    "DOMAIN_LIST": "the domain list that the message names",
    "FIREWALL_POLICY": "the firewall's policy",
    "FLEET_MEMBER_ID": "the member of the fleet that stands for the cluster",
    "FIREWALL_RULE": "the rule that the message names",
    "IPV4_PREFIX": "the IPv4 prefix of the subnet",
    "KUBELET_OBJECT_ID": "object id of the kubelet's identity",
    "LOAD_BALANCER_GROUP": "resource group of a load balancer of your own",
    "LOCATION": "a region",
    "MACHINE_CONFIGURATION": "an IP configuration of the machine's interface",
    "MACHINE_ID": "the machine of the interface",
    "MACHINE_ADDRESS": "address of the machine",
    "MANAGER_GROUP": "resource group of the Network Manager",
    "MANAGER_NAME": "name of the Network Manager",
    "MANAGER_SUBSCRIPTION": "its subscription",
    "NEW_NAME": "a name for what is made",
    "NEW_POOL": "a name for a new pool",
    "NEW_SUBNET_ID": "a subnet of a virtual network of your own",
    "NODE_CLASS": "an AKSNodeClass",
    "NODE_NSG_GROUP": "its resource group",
    "NODE_NSG": "the security group of the nodes",
    "NODE_ROUTE_TABLE_ID": "the route table of the node subnets",
    "OLD_POOL": "the pool of the machine",
    "OTHER_CLUSTER_ID": "another cluster",
    "OTHER_DOMAIN": "a domain that your workloads need",
    "OUR_ACCOUNT_IDS": "storage accounts that are yours",
    "OUR_SUBSCRIPTIONS": "subscriptions that are yours",
    "OWN_GROUP": "a resource group of your own",
    "POOL_SUBNET_ID": "the subnet of a pool",
    "PRIVATE_PREFIX": "a private address or prefix",
    "REGISTRY_DATA_HOST": "data endpoint of your registry",
    "REGISTRY_HOST": "name of your registry",
    "REGISTRY_OF_YOURS": "a registry of your own",
    "REGISTRY_RESOURCE_ID": "the registry that caches the platform's images",
    "RULE_COLLECTION": "the collection of the rule",
    "RULE_GROUP": "the collection group of the rule",
    "SENTINEL_ADDRESS": "address of a machine in the subnet",
    "SENTINEL_GROUP": "its resource group",
    "SENTINEL_VM": "its name",
    "SERVICE_NAME": "the Service that asked for the frontend",
    "SERVICE_NAMESPACE": "its namespace",
    "SOURCE_IMAGE": "an image elsewhere, by digest",
    "STATIC_MEMBER_ID": "the member of the network group that stands for the network",
    "STORAGE_HOST": "name of your storage account's endpoint",
    "STORAGE_RESOURCE_ID": "a storage account of your own",
    "TARGET_IMAGE": "repository and tag in your registry",
    "TARGET_NAMESPACE": "namespace of the pods that the finding names",
    "USER": "a user or service account",
}
KNOWN = frozenset(
    {
        *FROM_THE_RESOURCE,
        *FROM_THE_CLUSTER,
        *FROM_THE_CHECK,
        *CHOSEN,
        *(f"{stem}_{part}" for stem in STEMS.values() for part in ("ID", "NAME")),
    }
)
"""Every placeholder that a remedy may contain."""

PLACEHOLDER = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*(?![A-Za-z0-9_])")
