"""What the nodes need besides each other: registry, storage, file share, each behind a private endpoint; and names."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import (
    CLUSTER_GROUP,
    CONTROL_PLANE,
    KUBELET,
    LOCATION,
    MICROSOFT,
    NETWORK,
    NODE_GROUP,
    WORKLOAD,
    Layout,
)
from testbed.azure.baseline.network import RESOLVER
from testbed.azure.estate import Estate
from testbed.azure.ids import name_of

Body = dict[str, Any]

ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
PULL_ASSIGNMENT = "5a0c9d7e-31b4-4d0e-8f62-c49e7ab1d853"
ZONES = ("privatelink.azurecr.io", "privatelink.file.core.windows.net", f"privatelink.{LOCATION}.azmk8s.io")
# every registry has these scope maps of Azure's own, and no token of them
SYSTEM_SCOPE_MAPS = {
    "_repositories_pull": ("content/read",),
    "_repositories_push": ("content/read", "content/write"),
    "_repositories_admin": ("content/delete", "content/read", "content/write", "metadata/read", "metadata/write"),
}


def add_services(estate: Estate, layout: Layout) -> None:
    add_stores(estate)
    site, group = estate.site, layout.network_group
    endpoints = f"{group}/{NETWORK}/privateEndpoints"
    add_endpoint(estate, f"{endpoints}/pe-registry", site.registry, "registry", "10.40.8.5")
    add_endpoint(estate, f"{endpoints}/pe-storage", site.storage, "file", "10.40.8.6")
    add_endpoint(estate, f"{endpoints}/pe-share", site.share, "FileShare", "10.40.8.7")
    if layout.private_link_api:
        add_api_server_endpoint(estate)
    add_names(estate, layout.network_group)
    if layout.own_dns:
        estate.policy["allowedDnsServers"] = [RESOLVER]


def add_stores(estate: Estate) -> None:
    """The site's registry, storage account and file share."""
    add_registry(estate, estate.site.registry)
    _add_storage(estate)
    _add_share(estate)


def add_registry(estate: Estate, registry: str) -> None:
    """A closed registry with the cache rule of network isolated clusters, from which the kubelet's identity pulls."""
    estate.add(
        registry,
        {
            "loginServer": f"{name_of(registry)}.azurecr.io",
            "adminUserEnabled": False,
            "anonymousPullEnabled": False,
            "publicNetworkAccess": "Disabled",
            "networkRuleBypassOptions": "None",
            "networkRuleBypassAllowedForTasks": False,
            "writableCacheRepos": "Disabled",
            "regionalEndpoints": "Disabled",
            "endpointProtocol": "IPv4",
            "networkRuleSet": {"defaultAction": "Deny", "ipRules": []},
            "dataEndpointEnabled": False,
            "zoneRedundancy": "Enabled",
            "policies": {
                "exportPolicy": {"status": "disabled"},
                "azureADAuthenticationAsArmPolicy": {"status": "enabled"},
                "quarantinePolicy": {"status": "disabled"},
                "trustPolicy": {"type": "Notary", "status": "disabled"},
            },
            "privateEndpointConnections": [],
        },
        location=LOCATION,
        sku={"name": "Premium", "tier": "Premium"},
    )
    rule = {"sourceRepository": "mcr.microsoft.com/*", "targetRepository": "aks-managed-repository/*"}
    estate.add(f"{registry}/cacheRules/aks-managed-mcr", rule)
    for name, actions in SYSTEM_SCOPE_MAPS.items():
        properties = {"type": "SystemDefined", "actions": [f"repositories/*/{action}" for action in actions]}
        estate.add(f"{registry}/scopeMaps/{name}", properties)
    estate.add(f"{registry}/replications/{LOCATION}", {"regionEndpointEnabled": True}, location=LOCATION)
    assign(estate, registry, KUBELET, ACR_PULL)


def assign(estate: Estate, scope: str, principal: str, role: str, name: str = PULL_ASSIGNMENT) -> str:
    """A role assignment at a scope."""
    return estate.add(
        f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}",
        {
            "roleDefinitionId": f"/subscriptions/{WORKLOAD}/providers/Microsoft.Authorization/roleDefinitions/{role}",
            "principalId": principal,
            "principalType": "ServicePrincipal",
            "scope": scope,
        },
    )


def _add_storage(estate: Estate) -> None:
    closed = {
        "defaultAction": "Deny",
        "bypass": "None",
        "ipRules": [],
        "virtualNetworkRules": [],
        "resourceAccessRules": [],
    }
    estate.add(
        estate.site.storage,
        {
            "publicNetworkAccess": "Disabled",
            "networkAcls": closed,
            "allowedCopyScope": "PrivateLink",
            "allowCrossTenantReplication": False,
            "allowBlobPublicAccess": False,
            "allowSharedKeyAccess": False,
            "isSftpEnabled": False,
            "isLocalUserEnabled": False,
            "minimumTlsVersion": "TLS1_2",
            "supportsHttpsTrafficOnly": True,
            "privateEndpointConnections": [],
        },
        location=LOCATION,
        kind="FileStorage",
        sku={"name": "PremiumV2_ZRS", "tier": "Premium"},
    )

    # a premium account for files has this service alone; it is there without being made
    estate.add(f"{estate.site.storage}/fileServices/default", {"protocolSettings": {}})


def _add_share(estate: Estate) -> None:
    estate.add(
        estate.site.share,
        {
            "mountName": "share-weights",
            "hostName": "fs-vlkd3q1x.z21.file.storage.azure.net",
            "mediaTier": "SSD",
            "redundancy": "Zone",
            "protocol": "NFS",
            "provisionedStorageGiB": 2048,
            "provisionedIOPerSec": 8000,
            "provisionedThroughputMiBPerSec": 2048,
            "nfsProtocolProperties": {"rootSquash": "RootSquash", "encryptionInTransitRequired": "Enabled"},
            "publicAccessProperties": {"allowedSubnets": []},
            "publicNetworkAccess": "Disabled",
            "privateEndpointConnections": [],
        },
        location=LOCATION,
    )


def add_endpoint(estate: Estate, endpoint: str, target: str, part: str, address: str, subnet: str = "") -> str:
    """An approved private endpoint with its interface, known to its target when that is ours."""
    home = subnet or estate.site.endpoint_subnet
    nic = f"{endpoint.partition('/providers/')[0]}/{NETWORK}/networkInterfaces/{name_of(endpoint)}.nic.4d1f8c02"
    approved = {"status": "Approved", "description": "Auto-Approved", "actionsRequired": "None"}
    connection = {"privateLinkServiceId": target, "groupIds": [part], "privateLinkServiceConnectionState": approved}
    estate.add(
        endpoint,
        {
            "subnet": {"id": home},
            "networkInterfaces": [{"id": nic}],
            "privateLinkServiceConnections": [{"name": name_of(endpoint), "properties": connection}],
            "manualPrivateLinkServiceConnections": [],
            "customDnsConfigs": [{"fqdn": f"{name_of(target)}.example", "ipAddresses": [address]}],
        },
        location=LOCATION,
    )
    _add_endpoint_nic(estate, nic, endpoint, home, address)
    if target in estate:
        properties = {"privateEndpoint": {"id": endpoint}, "privateLinkServiceConnectionState": approved}
        estate.add(f"{target}/privateEndpointConnections/{name_of(endpoint)}.c0ffee", properties)
    return endpoint


def _add_endpoint_nic(estate: Estate, nic: str, endpoint: str, subnet: str, address: str) -> None:
    configuration = {
        "privateIPAddress": address,
        "privateIPAddressVersion": "IPv4",
        "subnet": {"id": subnet},
        "primary": True,
    }
    estate.add(
        nic,
        {
            "privateEndpoint": {"id": endpoint},
            "enableIPForwarding": False,
            "defaultOutboundConnectivityEnabled": False,
            "dnsSettings": {"dnsServers": []},
            "ipConfigurations": [{"name": "privateEndpointIpConfig", "properties": configuration}],
        },
        location=LOCATION,
    )


def add_api_server_endpoint(estate: Estate) -> None:
    """AKS makes it in the node group; what it leads to lies in a subscription of Microsoft's."""
    target = (
        f"/subscriptions/{MICROSOFT}/resourceGroups/hcp-underlay/{NETWORK}/privateLinkServices/aks-inference-management"
    )
    endpoint = f"{NODE_GROUP}/{NETWORK}/privateEndpoints/kube-apiserver"
    add_endpoint(estate, endpoint, target, "management", "10.40.0.4", estate.site.system_subnet)
    estate.policy["allowedPrivateLinkServices"] = [target]
    approved = {"privateEndpoint": {"id": endpoint}, "privateLinkServiceConnectionState": {"status": "Approved"}}
    estate.add(f"{estate.cluster}/privateEndpointConnections/kube-apiserver", approved)


def add_names(estate: Estate, group: str) -> None:
    """Private zones and a DNS security policy in a resource group, linked to the cluster's network."""
    site = estate.site
    for zone in ZONES:
        identifier = f"{group}/{NETWORK}/privateDnsZones/{zone}"
        estate.add(identifier, {"numberOfVirtualNetworkLinks": 1}, location="global")
        named = {"virtualNetwork": {"id": site.vnet}, "registrationEnabled": False, "resolutionPolicy": "Default"}
        estate.add(f"{identifier}/virtualNetworkLinks/inference", named, location="global")
    lists = f"{group}/{NETWORK}/dnsResolverDomainLists"
    allowed = estate.add(f"{lists}/allowed", {"domains": [f"{zone}." for zone in ZONES]}, location=LOCATION)
    everything = estate.add(f"{lists}/everything", {"domains": ["."]}, location=LOCATION)
    estate.add(site.dns_policy, {}, location=LOCATION)
    estate.add(
        f"{site.dns_policy}/virtualNetworkLinks/inference", {"virtualNetwork": {"id": site.vnet}}, location=LOCATION
    )
    for name, priority, action, domains in (("allow", 100, "Allow", allowed), ("block", 65000, "Block", everything)):
        properties = {
            "priority": priority,
            "action": {"actionType": action},
            "dnsResolverDomainLists": [{"id": domains}],
            "dnsSecurityRuleState": "Enabled",
        }
        estate.add(f"{site.dns_policy}/dnsSecurityRules/{name}", properties, location=LOCATION)


def add_identities(estate: Estate) -> None:
    for name, principal in (("id-kubelet", KUBELET), ("id-control-plane", CONTROL_PLANE)):
        properties = {"principalId": principal, "clientId": principal[::-1]}
        estate.add(f"{CLUSTER_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}", properties)
    # azure-aks-docs, managed-identity-overview.md: Contributor role for the node resource group
    assign(estate, NODE_GROUP, CONTROL_PLANE, CONTRIBUTOR, "c1f83b5a-70d2-4e94-8ab6-3e5d09f7a216")
