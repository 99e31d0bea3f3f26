"""The AKS cluster read for fields that no model has: features newer than this release.

The fields are those of the stable specification 2026-06-01 (Azure/azure-rest-api-specs,
containerservice/resource-manager/Microsoft.ContainerService/aks), normalised by `arm_fields.spelling`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from hermetic.audit.estate.arm_fields import FreeMap, child, spelling
from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Resource, arm


def _names(text: str) -> frozenset[str]:
    return frozenset(spelling(name) for name in text.split())


KNOWN: Mapping[str, frozenset[str]] = {
    "": _names(
        "provisioningState powerState maxAgentPools kubernetesVersion currentKubernetesVersion dnsPrefix fqdnSubdomain "
        "fqdn privateFQDN azurePortalFQDN agentPoolProfiles linuxProfile windowsProfile servicePrincipalProfile "
        "addonProfiles podIdentityProfile oidcIssuerProfile nodeResourceGroup nodeResourceGroupProfile enableRBAC "
        "supportPlan networkProfile aadProfile autoUpgradeProfile upgradeSettings autoScalerProfile "
        "apiServerAccessProfile diskEncryptionSetID identityProfile privateLinkResources disableLocalAccounts "
        "httpProxyConfig securityProfile storageProfile ingressProfile publicNetworkAccess workloadAutoScalerProfile "
        "azureMonitorProfile serviceMeshProfile resourceUID metricsProfile nodeProvisioningProfile bootstrapProfile "
        "aiToolchainOperatorProfile schedulerProfile hostedSystemProfile status"
    ),
    "agentpoolprofiles": _names(
        "name eTag count vmSize osDiskSizeGB osDiskType kubeletDiskType workloadRuntime messageOfTheDay vnetSubnetID "
        "podSubnetID podIPAllocationMode maxPods osType osSKU maxCount minCount enableAutoScaling scaleDownMode type "
        "mode orchestratorVersion currentOrchestratorVersion nodeImageVersion upgradeSettings provisioningState "
        "powerState availabilityZones enableNodePublicIP nodePublicIPPrefixID scaleSetPriority scaleSetEvictionPolicy "
        "spotMaxPrice tags nodeLabels nodeTaints proximityPlacementGroupID kubeletConfig linuxOSConfig "
        "enableEncryptionAtHost enableUltraSSD enableFIPS gpuInstanceProfile creationData capacityReservationGroupID "
        "hostGroupID networkProfile windowsProfile securityProfile gpuProfile artifactStreamingProfile "
        "virtualMachinesProfile virtualMachineNodesStatus localDNSProfile status gatewayProfile"
    ),
    "agentpoolprofiles.networkprofile": _names("nodePublicIPTags allowedHostPorts applicationSecurityGroups dranet"),
    "agentpoolprofiles.securityprofile": _names("enableVTPM enableSecureBoot sshAccess"),
    "agentpoolprofiles.gatewayprofile": _names("publicIPPrefixSize"),
    "networkprofile": _names(
        "networkPlugin networkPluginMode networkPolicy networkMode networkDataplane advancedNetworking podCidr "
        "serviceCidr dnsServiceIP outboundType loadBalancerSku loadBalancerProfile natGatewayProfile "
        "staticEgressGatewayProfile podCidrs serviceCidrs ipFamilies"
    ),
    "networkprofile.natgatewayprofile": _names(
        "sku managedOutboundIPProfile effectiveOutboundIPs idleTimeoutInMinutes"
    ),
    "networkprofile.loadbalancerprofile": _names(
        "managedOutboundIPs outboundIPPrefixes outboundIPs effectiveOutboundIPs allocatedOutboundPorts "
        "idleTimeoutInMinutes enableMultipleStandardLoadBalancers backendPoolType"
    ),
    "ingressprofile": _names("webAppRouting gatewayAPI applicationLoadBalancer"),
    "ingressprofile.gatewayapi": _names("installation"),
    "ingressprofile.webapprouting": _names(
        "enabled gatewayAPIImplementations dnsZoneResourceIds nginx identity defaultDomain"
    ),
    "ingressprofile.webapprouting.gatewayapiimplementations": _names("appRoutingIstio"),
    "securityprofile": _names("defender azureKeyVaultKms workloadIdentity imageCleaner customCATrustCertificates"),
    "metricsprofile": _names("costAnalysis"),
}
"""Fields by the object, or the objects of a list, that contain them. `azureMonitorProfile` is not here: a check
evaluates everything that is on in it."""

OFF = frozenset({"", "disabled", "none", "notspecified", "unmanaged", "manual"})


@arm("Microsoft.ContainerService/managedClusters", CONTAINER_SERVICE)
class ClusterUnread(Resource):
    """The cluster, read for the fields that no other model reads."""

    everything: FreeMap[Any] = {}

    @classmethod
    def read(cls, body: Body) -> Self:
        """Keep the properties as answered: no model has a field that is new."""
        inner = child(body.value, "properties")
        properties = {"everything": inner} if isinstance(inner, Mapping) else {}
        wrapped = {"id": body.value.get("id"), "properties": properties if isinstance(inner, Mapping) else inner}
        return super().read(Body(wrapped, body.evidence))

    @property
    def unread(self) -> tuple[str, ...]:
        """Dotted paths, as written, of unknown fields whose value is not off; sorted."""
        return tuple(sorted(set(_unread(self.everything, "", ""))))


def _unread(value: Mapping[str, Any], path: str, written: str) -> Iterator[str]:
    for key, inner in value.items():
        name = spelling(str(key))
        below, spelled = f"{path}.{name}".lstrip("."), f"{written}.{key}".lstrip(".")
        if name not in KNOWN[path]:
            if not _is_off(inner):
                yield spelled
        elif below in KNOWN:
            for item in inner if isinstance(inner, list) else [inner]:
                if isinstance(item, Mapping):
                    yield from _unread(item, below, spelled)


def _is_off(value: Any) -> bool:
    """Whether nothing in it is on: false, empty, Disabled, or an object of such values only."""
    if isinstance(value, Mapping):
        return all(_is_off(inner) for inner in value.values())
    if isinstance(value, str):
        return value.lower() in OFF
    return value is None or value is False or value == []
