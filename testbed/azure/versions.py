"""Api-versions: which ones a type is served in, and which fields an old one leaves out.

A read with an old version succeeds and says less: the field is simply not there, and "not there" is easily read as
"off". SINCE is that trap. Dates marked (c) are confirmed by the facts this product rests on; the others are the oldest
version in which we know the field to exist, so a newer field may be hidden here longer than Azure hides it, never
shorter.
"""

from __future__ import annotations

import copy
from typing import Any

from testbed.azure import refusals

Body = dict[str, Any]

NETWORK = (
    "2020-11-01", "2022-07-01", "2023-09-01", "2023-11-01", "2024-01-01", "2024-03-01", "2024-05-01", "2024-07-01",
    "2024-10-01", "2025-01-01", "2025-03-01", "2025-05-01", "2025-07-01",
)  # fmt: skip
AKS = (
    "2023-10-01", "2024-05-01", "2024-09-01", "2025-02-01", "2025-05-01", "2025-07-01", "2025-10-01", "2026-01-01",
    "2026-04-01", "2026-06-01", "2026-07-01",
)  # fmt: skip
REGISTRY = ("2019-05-01", "2022-12-01", "2023-07-01", "2025-04-01", "2025-11-01", "2026-11-01")
REGISTRY_PREVIEW = "2026-09-01-preview"
STORAGE = ("2021-04-01", "2022-09-01", "2023-05-01", "2024-01-01", "2025-01-01")
NEVER_STABLE = "9999"  # only previews show it, and nothing here asks for one

BY_NAMESPACE = {
    "microsoft.network": NETWORK,
    "microsoft.compute": ("2022-11-01", "2023-09-01", "2024-03-01", "2024-07-01", "2024-11-01", "2025-04-01"),
    "microsoft.containerservice": AKS,
    "microsoft.containerregistry": REGISTRY,
    "microsoft.storage": STORAGE,
    "microsoft.fileshares": ("2025-06-01-preview", "2025-09-01-preview", "2026-06-01", "2026-09-01"),
    "microsoft.authorization": ("2015-07-01", "2018-07-01", "2020-04-01-preview", "2022-04-01"),
    "microsoft.managedidentity": ("2018-11-30", "2023-01-31", "2024-11-30"),
    "microsoft.kubernetesconfiguration": ("2022-11-01", "2023-05-01", "2024-11-01", "2025-04-01"),
    "microsoft.kubernetes": ("2021-10-01", "2024-01-01", "2024-07-15-preview", "2025-12-01-preview"),
    "microsoft.insights": ("2021-07-01-preview", "2021-09-01", "2023-06-01-preview"),
    "microsoft.keyvault": ("2022-07-01", "2023-07-01", "2024-11-01"),
    "microsoft.operationalinsights": ("2020-08-01", "2022-10-01", "2023-09-01", "2025-02-01"),
    # specification/eventgrid/resource-manager/Microsoft.EventGrid/stable
    "microsoft.eventgrid": ("2022-06-15", "2025-02-15"),
    "microsoft.security": ("2025-09-01-preview", "2026-01-01"),
    "microsoft.monitor": ("2023-04-03", "2025-05-03-preview"),
    # learn.microsoft.com/azure/templates, change log of each type
    "microsoft.alertsmanagement": ("2021-08-08", "2023-03-01"),
    "microsoft.dataprotection": ("2023-11-01", "2024-04-01"),
    "microsoft.recoveryservices": ("2023-04-01", "2024-04-01"),
    "microsoft.eventhub": ("2021-11-01", "2024-01-01"),
    "microsoft.servicebus": ("2021-11-01", "2024-01-01"),
    "microsoft.relay": ("2017-04-01", "2021-11-01"),
    "microsoft.web": ("2022-09-01", "2023-12-01"),
    "microsoft.search": ("2022-09-01", "2023-11-01", "2025-05-01"),
    "microsoft.cognitiveservices": ("2023-05-01", "2024-10-01", "2025-06-01"),
    "microsoft.sql": ("2021-11-01", "2023-08-01"),
    "microsoft.dbforpostgresql": ("2022-12-01", "2024-08-01"),
    "microsoft.dbformysql": ("2021-05-01", "2023-06-30"),
    "microsoft.documentdb": ("2023-04-15", "2023-11-15"),
    "microsoft.cache": ("2023-08-01", "2024-03-01"),
}
# specification/monitor and specification/alertsmanagement, stable
ALERTS = {
    "microsoft.insights/scheduledqueryrules": ("2021-08-01", "2022-06-15"),
    "microsoft.insights/metricalerts": ("2018-03-01",),
    "microsoft.insights/actiongroups": ("2022-06-01", "2023-01-01"),
    "microsoft.alertsmanagement/prometheusrulegroups": ("2023-03-01",),
    "microsoft.alertsmanagement/actionrules": ("2021-08-08",),
}
# specification/monitor/resource-manager/Microsoft.Insights/stable
COLLECTION = ("2021-04-01", "2022-06-01", "2023-03-11", "2024-03-11")
DISKS = ("2022-07-02", "2023-10-02", "2024-03-02", "2025-01-02")
PRIVATE_DNS = ("2018-09-01", "2020-06-01", "2024-06-01")
RESOLVERS = ("2022-07-01", "2023-07-01-preview", "2025-05-01", "2025-07-01")
BY_TYPE = {
    **ALERTS,
    # the only version in which the network provider serves these under the compute provider's path (c)
    "microsoft.compute/virtualmachinescalesets/networkinterfaces": ("2018-10-01",),
    "microsoft.compute/virtualmachinescalesets/publicipaddresses": ("2018-10-01",),
    "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces": ("2018-10-01",),
    # disks have versions of their own; these are in the provider's descriptions (c)
    "microsoft.compute/disks": DISKS,
    "microsoft.compute/snapshots": DISKS,
    "microsoft.compute/diskaccesses": DISKS,
    "microsoft.network/privatednszones": PRIVATE_DNS,
    "microsoft.network/privatednszones/virtualnetworklinks": PRIVATE_DNS,
    "microsoft.network/dnsresolverpolicies": RESOLVERS,
    "microsoft.network/dnsresolverpolicies/dnssecurityrules": RESOLVERS,
    "microsoft.network/dnsresolverpolicies/virtualnetworklinks": RESOLVERS,
    "microsoft.network/dnsresolverdomainlists": RESOLVERS,
    "microsoft.network/dnsforwardingrulesets": RESOLVERS,
    "microsoft.network/dnsforwardingrulesets/forwardingrules": RESOLVERS,
    "microsoft.network/dnsforwardingrulesets/virtualnetworklinks": RESOLVERS,
    "microsoft.network/dnsresolvers": RESOLVERS,
    "microsoft.network/dnsresolvers/inboundendpoints": RESOLVERS,
    "microsoft.network/dnsresolvers/outboundendpoints": RESOLVERS,
    # specification/network: AddressPrefixSet.tsp, added in 2025-09-01 (c)
    "microsoft.network/applicationsecuritygroups/addressprefixsets": ("2025-09-01",),
    "microsoft.network/servicegateways": ("2025-05-01", "2025-07-01"),
    "microsoft.network/virtualnetworkappliances": ("2025-05-01", "2025-07-01"),
    "microsoft.fileshares/fileshares": BY_NAMESPACE["microsoft.fileshares"],
    # asked by the Azure CLI; specification/monitor has no stable version for all kinds of resources
    "microsoft.insights/diagnosticsettings": ("2017-05-01-preview", "2021-05-01-preview"),
    "microsoft.insights/datacollectionruleassociations": COLLECTION,
    "microsoft.insights/datacollectionrules": COLLECTION,
    # specification/containerservice/.../fleet/stable
    "microsoft.containerservice/fleets": ("2023-10-15", "2024-04-01", "2025-03-01"),
    "microsoft.containerservice/fleets/members": ("2023-10-15", "2024-04-01", "2025-03-01"),
    # specification containerservice/aks: in previews only, examples/MeshMemberships_ListByManagedCluster.json (c)
    "microsoft.containerservice/managedclusters/meshmemberships": ("2026-01-02-preview", "2026-06-02-preview"),
    # azure-mgmt-storage 25.0.0 is of 2025-08-01
    "microsoft.storage/storageaccounts/blobservices": (*STORAGE, "2025-08-01"),
    "microsoft.containerservice/managedclusters/identitybindings": ("2026-06-01", "2026-07-01"),
    # specification/containerregistry: 2026-09-01-preview in Registry/main.tsp, 2025-03-01-preview in RegistryTasks
    "microsoft.containerregistry/registries": (*REGISTRY, REGISTRY_PREVIEW),
    "microsoft.containerregistry/registries/exportpipelines": ("2023-01-01-preview", REGISTRY_PREVIEW),
    "microsoft.containerregistry/registries/tasks": ("2019-06-01-preview", "2025-03-01-preview"),
    "microsoft.containerregistry/registries/agentpools": ("2019-06-01-preview", "2025-03-01-preview"),
    "microsoft.containerregistry/registries/connectedregistries": ("2025-11-01",),
    # the registry's API description: tokens and scope maps are in 2025-11-01 (c)
    "microsoft.containerregistry/registries/tokens": ("2022-12-01", "2023-07-01", "2025-04-01", "2025-11-01"),
    "microsoft.containerregistry/registries/scopemaps": ("2022-12-01", "2023-07-01", "2025-04-01", "2025-11-01"),
    "microsoft.containerregistry/registries/cacherules": ("2023-07-01", "2025-04-01", "2025-11-01"),
}
# the resource manager's own endpoints
CONTAINERS = ("2016-06-01", "2019-11-01", "2020-01-01", "2021-01-01", "2021-04-01", "2022-12-01", "2024-11-01")
GRAPH = ("2019-04-01", "2020-04-01-preview", "2021-03-01", "2022-10-01", "2024-04-01")

# folded type -> dotted field below `properties` (`*` for each of a list) -> first version that shows it
SINCE: dict[str, dict[str, str]] = {
    "microsoft.insights/datacollectionrules": {
        "destinations.monitoringAccounts": "2022-06-01",
        "destinations.azureDataExplorer": "2024-03-11",
        "destinations.microsoftFabric": "2024-03-11",
    },
    "microsoft.network/virtualnetworks": {
        "subnets.*.properties.defaultOutboundAccess": "2023-09-01",
        "subnets.*.properties.sharingScope": "2023-09-01",
        "subnets.*.properties.serviceGateway": "2025-05-01",  # (c)
        "defaultPublicNatGateway": "2025-05-01",  # (c)
        "virtualNetworkPeerings.*.properties.peerCompleteVnets": "2023-11-01",
        "virtualNetworkPeerings.*.properties.localSubnetNames": "2023-11-01",
        "virtualNetworkPeerings.*.properties.remoteSubnetNames": "2023-11-01",
        "virtualNetworkPeerings.*.properties.enableOnlyIPv6Peering": "2023-11-01",
    },
    "microsoft.network/virtualnetworks/subnets": {
        "defaultOutboundAccess": "2023-09-01",
        "sharingScope": "2023-09-01",
        "serviceGateway": "2025-05-01",  # (c)
    },
    "microsoft.network/virtualnetworks/virtualnetworkpeerings": {
        "peerCompleteVnets": "2023-11-01",
        "localSubnetNames": "2023-11-01",
        "remoteSubnetNames": "2023-11-01",
        "enableOnlyIPv6Peering": "2023-11-01",
    },
    "microsoft.network/networkinterfaces": {"defaultOutboundConnectivityEnabled": "2024-07-01"},
    # Azure SDK, VirtualMachineScaleSetVMProperties and VirtualMachineProperties: minimum api-version 2021-11-01 (c)
    "microsoft.compute/virtualmachinescalesets/virtualmachines": {"timeCreated": "2021-11-01"},
    "microsoft.compute/virtualmachines": {"timeCreated": "2021-11-01"},
    "microsoft.network/natgateways": {
        "sourceVirtualNetwork": "2025-05-01",  # (c)
        "publicIpAddressesV6": "2025-05-01",  # (c)
        "publicIpPrefixesV6": "2025-05-01",  # (c)
    },
    "microsoft.network/bastionhosts": {"enablePrivateOnlyBastion": "2024-03-01"},
    "microsoft.network/privatednszones/virtualnetworklinks": {"resolutionPolicy": "2024-06-01"},  # (c)
    "microsoft.containerservice/managedclusters": {
        "bootstrapProfile": "2025-02-01",  # (c)
        "networkProfile.staticEgressGatewayProfile": "2025-02-01",
        "networkProfile.advancedNetworking": "2025-02-01",
        "nodeProvisioningProfile": "2025-05-01",
        "apiServerAccessProfile.enableVnetIntegration": "2025-05-01",
        "apiServerAccessProfile.subnetId": "2025-05-01",
        "ingressProfile.webAppRouting.nginx": "2025-02-01",
        # specification containerservice/aks: not in stable 2026-01-01, in stable 2026-06-01 (c)
        "ingressProfile.gatewayAPI": "2026-04-01",
        "ingressProfile.webAppRouting.gatewayAPIImplementations": "2026-04-01",
        "azureMonitorProfile.containerInsights": "2026-06-01",
        "networkProfile.natGatewayProfile.sku": "2026-06-01",
        "hostedSystemProfile": "2026-06-01",
        "ingressProfile.applicationLoadBalancer": NEVER_STABLE,  # (c)
    },
    "microsoft.containerregistry/registries": {
        "anonymousPullEnabled": "2025-11-01",  # (c)
        "networkRuleBypassAllowedForTasks": "2025-11-01",  # (c) the registry's API description of that version
        "policies.azureADAuthenticationAsArmPolicy": "2025-11-01",  # (c)
        # Registry.models.tsp: in the preview alone, not in stable 2026-11-01 either (c)
        "writableCacheRepos": REGISTRY_PREVIEW,
        "regionalEndpoints": REGISTRY_PREVIEW,
        "endpointProtocol": REGISTRY_PREVIEW,
    },
    "microsoft.storage/storageaccounts": {"allowedCopyScope": "2022-09-01", "isSftpEnabled": "2022-09-01"},
    # BlobServiceProperties.staticWebsite of azure-mgmt-storage 25.0.0 (2025-08-01), absent in 24.0.1 (2024-01-01)
    "microsoft.storage/storageaccounts/blobservices": {"staticWebsite": "2025-08-01"},
    "microsoft.fileshares/fileshares": {"nfsProtocolProperties.encryptionInTransitRequired": "2026-06-01"},  # (c)
}


def supported(kind: str) -> tuple[str, ...]:
    """Versions of a type, oldest first; empty for a namespace that is not served."""
    folded = kind.lower()
    return BY_TYPE.get(folded) or BY_NAMESPACE.get(folded.partition("/")[0], ())


def check(kind: str, version: str) -> None:
    """Raises the refusal that a provider's path answers for this version."""
    if not version:
        raise refusals.no_version()
    known = supported(kind)
    if not known:
        namespace, _, remainder = kind.partition("/")
        raise refusals.no_such_type(namespace, remainder, version)
    if version not in known:
        raise refusals.unknown_version(version, kind, known)


def check_endpoint(version: str, known: tuple[str, ...]) -> None:
    if not version:
        raise refusals.no_version()
    if version not in known:
        raise refusals.unknown_endpoint_version(version, known)


def as_of(body: Body, version: str) -> Body:
    """The body as that version shows it; the same object when the version hides nothing."""
    hidden = [field for field, first in SINCE.get(body["type"].lower(), {}).items() if _hides(version, first)]
    if not hidden:
        return body
    older = copy.deepcopy(body)
    for field in hidden:
        _drop(older.get("properties", {}), field.split("."))
    return older


def _hides(version: str, first: str) -> bool:
    """A field that only previews show is in no stable version, however young."""
    is_preview = first.endswith("-preview")
    return version < first or (is_preview and not version.endswith("-preview"))


def _drop(value: Any, steps: list[str]) -> None:
    step, remaining_steps = steps[0], steps[1:]
    if step == "*":
        for item in value if isinstance(value, list) else ():
            _drop(item, remaining_steps)
    elif isinstance(value, dict):
        if remaining_steps:
            _drop(value.get(step), remaining_steps)
        else:
            value.pop(step, None)
