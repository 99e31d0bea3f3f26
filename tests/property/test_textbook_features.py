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
        found: Body = self.cluster["networkProfile"]
        return found

    @property
    def registry(self) -> str:
        return str(self.cluster["bootstrapProfile"]["containerRegistryId"])

    def runs(self, name: str, namespace: str = "kube-system") -> bool:
        """Whether a pod of this controller runs there."""
        pods = [one["metadata"] for one in self.manifests if one["kind"] == "Pod"]
        return any(one["namespace"] == namespace and one["name"].startswith(name) for one in pods)

    def is_on(self, *path: str) -> bool:
        """Whether a field of the cluster says `enabled`."""
        found: Any = self.cluster
        for step in path:
            found = found.get(step) or {}
        return bool(found.get("enabled"))

    def is_in_node_group(self, identifier: str) -> bool:
        return identifier.lower().startswith(self.arm.site.node_group.lower())

    def is_behind_a_firewall(self) -> bool:
        gateways = self.arm.of_type("Microsoft.Network/virtualNetworkGateways")
        return self.arm.profile == "filtered" and bool(self.arm.site.firewall and gateways)


def _has_driver(one: Halves, driver: str) -> bool:
    pools = one.cluster["agentPoolProfiles"]
    return any((pool.get("gpuProfile") or {}).get("driver") == driver for pool in pools)


FEATURES: dict[str, Callable[[Halves], bool]] = {
    "own registry": lambda one: not one.is_in_node_group(one.registry),
    "AKS-managed registry": lambda one: one.is_in_node_group(one.registry),
    "outbound type none": lambda one: one.network["outboundType"] == "none",
    "outbound type block": lambda one: one.network["outboundType"] == "block",
    "own network": lambda one: not one.is_in_node_group(one.arm.site.vnet),
    "managed network under lockdown": lambda one: (
        one.is_in_node_group(one.arm.site.vnet)
        and one.cluster["nodeResourceGroupProfile"]["restrictionLevel"] == "ReadOnly"
    ),
    "private link": lambda one: (
        not one.cluster["apiServerAccessProfile"].get("enableVnetIntegration") and one.runs("konnectivity-agent")
    ),
    "API Server VNet Integration": lambda one: (
        bool(one.cluster["apiServerAccessProfile"].get("enableVnetIntegration"))
        and not one.runs("konnectivity-agent")
    ),
    "CNI overlay with Cilium": lambda one: (
        one.network.get("networkPluginMode") == "overlay" and one.network["networkPolicy"] == "cilium"
        and one.runs("cilium-")
    ),
    "pod subnets with Azure NPM": lambda one: (
        one.network["networkPolicy"] == "azure" and bool(one.arm.site.pod_subnet) and one.runs("azure-npm")
    ),
    "kubenet": lambda one: one.network["networkPlugin"] == "kubenet" and one.runs("calico-node", "calico-system"),
    "device plug-in": lambda one: (
        _has_driver(one, "Install") and one.runs("nvidia-device-plugin-daemonset", "gpu-resources")
    ),
    "GPU Operator": lambda one: (
        _has_driver(one, "None") and one.runs("nvidia-driver-daemonset", "gpu-operator")
    ),
    "Azure Monitor": lambda one: (
        one.is_on("addonProfiles", "omsagent") and one.is_on("azureMonitorProfile", "metrics") and one.runs("ama-logs")
    ),
    "Defender": lambda one: (
        one.is_on("securityProfile", "defender", "securityMonitoring") and one.runs("microsoft-defender-collector-ds")
    ),
    "Azure Policy": lambda one: one.is_on("addonProfiles", "azurepolicy") and one.runs("azure-policy"),
    "Image Cleaner": lambda one: one.is_on("securityProfile", "imageCleaner") and one.runs("eraser-aks-"),
    "LocalDNS": lambda one: all(
        (pool.get("localDNSProfile") or {}).get("state") == "Enabled" for pool in one.cluster["agentPoolProfiles"]
    ),
    "Flux of the team's own": lambda one: one.runs("source-controller", "flux-system"),
    "AKS Automatic": lambda one: one.arm[one.arm.cluster]["sku"]["name"] == "Automatic",
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
    found = halves(name).manifests
    definitions = [one["spec"] for one in found if one["kind"] == "CustomResourceDefinition"]
    defined = {(spec["group"], spec["names"]["kind"]) for spec in definitions}
    custom = {
        (one["apiVersion"].partition("/")[0], one["kind"])
        for one in found
        if "." in one["apiVersion"] and not one["apiVersion"].partition("/")[0].endswith(".k8s.io")
    }
    assert custom <= defined
    assert len(definitions) == len(defined) > 3


@pytest.mark.parametrize("name", TEXTBOOK)
def test_of_what_azure_does_not_tell_the_worst_is_stood_in(name: str) -> None:
    assert halves(name).arm.scale_set_outbound_shown_by == frozenset()
