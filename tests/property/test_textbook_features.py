"""Which documented features the textbook estates hold: each that the audit promises to let pass is in one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from testbed.azure.estate import Estate
from testbed.textbook import TEXTBOOK

Body = dict[str, Any]


@dataclass(frozen=True)
class Halves:
    """An estate's two sides, and its cluster's properties."""

    arm: Estate
    manifests: list[Body]
    cluster: Body

    @property
    def network(self) -> Body:
        network_profile: Body = self.cluster["networkProfile"]
        return network_profile

    @property
    def registry(self) -> str:
        return str(self.cluster["bootstrapProfile"]["containerRegistryId"])

    def runs(self, name: str, namespace: str = "kube-system") -> bool:
        """Whether a pod of this controller runs there."""
        pods = [manifest["metadata"] for manifest in self.manifests if manifest["kind"] == "Pod"]
        return any(pod["namespace"] == namespace and pod["name"].startswith(name) for pod in pods)

    def is_on(self, *path: str) -> bool:
        """Whether a field of the cluster says `enabled`."""
        field_value: Any = self.cluster
        for step in path:
            field_value = field_value.get(step) or {}
        return bool(field_value.get("enabled"))

    def is_in_node_group(self, identifier: str) -> bool:
        return identifier.lower().startswith(self.arm.site.node_group.lower())

    def is_behind_a_firewall(self) -> bool:
        gateways = self.arm.of_type("Microsoft.Network/virtualNetworkGateways")
        return self.arm.profile == "filtered" and bool(self.arm.site.firewall and gateways)


def _has_driver(halves: Halves, driver: str) -> bool:
    pools = halves.cluster["agentPoolProfiles"]
    return any((pool.get("gpuProfile") or {}).get("driver") == driver for pool in pools)


FEATURES: dict[str, Callable[[Halves], bool]] = {
    "own registry": lambda estate: not estate.is_in_node_group(estate.registry),
    "AKS-managed registry": lambda estate: estate.is_in_node_group(estate.registry),
    "outbound type none": lambda estate: estate.network["outboundType"] == "none",
    "outbound type block": lambda estate: estate.network["outboundType"] == "block",
    "own network": lambda estate: not estate.is_in_node_group(estate.arm.site.vnet),
    "managed network under lockdown": lambda estate: (
        estate.is_in_node_group(estate.arm.site.vnet)
        and estate.cluster["nodeResourceGroupProfile"]["restrictionLevel"] == "ReadOnly"
    ),
    "private link": lambda estate: (
        not estate.cluster["apiServerAccessProfile"].get("enableVnetIntegration") and estate.runs("konnectivity-agent")
    ),
    "API Server VNet Integration": lambda estate: (
        bool(estate.cluster["apiServerAccessProfile"].get("enableVnetIntegration"))
        and not estate.runs("konnectivity-agent")
    ),
    "CNI overlay with Cilium": lambda estate: (
        estate.network.get("networkPluginMode") == "overlay" and estate.network["networkPolicy"] == "cilium"
        and estate.runs("cilium-")
    ),
    "pod subnets with Azure NPM": lambda estate: (
        estate.network["networkPolicy"] == "azure" and bool(estate.arm.site.pod_subnet) and estate.runs("azure-npm")
    ),
    "kubenet": lambda estate: (
        estate.network["networkPlugin"] == "kubenet" and estate.runs("calico-node", "calico-system")
    ),
    "device plug-in": lambda estate: (
        _has_driver(estate, "Install") and estate.runs("nvidia-device-plugin-daemonset", "gpu-resources")
    ),
    "GPU Operator": lambda estate: (
        _has_driver(estate, "None") and estate.runs("nvidia-driver-daemonset", "gpu-operator")
    ),
    "Azure Monitor": lambda estate: (
        estate.is_on("addonProfiles", "omsagent") and estate.is_on("azureMonitorProfile", "metrics")
        and estate.runs("ama-logs")
    ),
    "Defender": lambda estate: (
        estate.is_on("securityProfile", "defender", "securityMonitoring")
        and estate.runs("microsoft-defender-collector-ds")
    ),
    "Azure Policy": lambda estate: estate.is_on("addonProfiles", "azurepolicy") and estate.runs("azure-policy"),
    "Image Cleaner": lambda estate: estate.is_on("securityProfile", "imageCleaner") and estate.runs("eraser-aks-"),
    "LocalDNS": lambda estate: all(
        (pool.get("localDNSProfile") or {}).get("state") == "Enabled" for pool in estate.cluster["agentPoolProfiles"]
    ),
    "Flux of the team's own": lambda estate: estate.runs("source-controller", "flux-system"),
    "service mesh add-on": lambda estate: (
        (estate.cluster.get("serviceMeshProfile") or {}).get("mode") == "Istio"
        and estate.runs("azure-service-mesh-istio-cni-addon-node", "aks-istio-system")
        and estate.runs("istiod-asm-", "aks-istio-system")
    ),
    "AKS Automatic": lambda estate: estate.arm[estate.arm.cluster]["sku"]["name"] == "Automatic",
    "hub with firewall and on-premises gateway": Halves.is_behind_a_firewall,
}  # fmt: skip


@cache
def halves(name: str) -> Halves:
    arm = TEXTBOOK[name].azure
    return Halves(arm, TEXTBOOK[name].manifests, arm.properties(arm.cluster))


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_is_in_an_estate(feature: str) -> None:
    assert [name for name in TEXTBOOK if FEATURES[feature](halves(name))]


@pytest.mark.parametrize("name", TEXTBOOK)
def test_each_estate_names_its_documents(name: str) -> None:
    assert "learn.microsoft.com/azure/" in TEXTBOOK[name].source
    assert "articles/aks" in TEXTBOOK[name].source


@pytest.mark.parametrize("name", TEXTBOOK)
def test_the_custom_kinds_of_an_estate_are_served(name: str) -> None:
    manifests = halves(name).manifests
    definitions = [manifest["spec"] for manifest in manifests if manifest["kind"] == "CustomResourceDefinition"]
    defined = {(spec["group"], spec["names"]["kind"]) for spec in definitions}
    custom = {
        (manifest["apiVersion"].partition("/")[0], manifest["kind"])
        for manifest in manifests
        if "." in manifest["apiVersion"] and not manifest["apiVersion"].partition("/")[0].endswith(".k8s.io")
    }
    assert custom <= defined
    assert len(definitions) == len(defined) > 3


@pytest.mark.parametrize("name", TEXTBOOK)
def test_of_what_azure_does_not_tell_the_worst_is_stood_in(name: str) -> None:
    assert halves(name).arm.scale_set_outbound_shown_by == frozenset()
