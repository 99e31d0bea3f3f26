"""What AKS and Hermetic themselves run, by namespace and name: the only things that may do what others may not.

Names come from AKS's documentation and its components' own repositories. A name that is not here is nobody's: a new
component of AKS needs a signed exception until this list knows it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hermetic.audit.estate.kubernetes.pods import POLICY_ENGINES, Pod

KUBE_SYSTEM = "kube-system"
CALICO_NAMESPACES = ("calico-system", "tigera-operator")
PLATFORM_NAMESPACES = frozenset({KUBE_SYSTEM, *CALICO_NAMESPACES})
"""Namespaces in which the platform runs its own, under policies of its own."""

_NODE_AGENTS = frozenset(
    {
        "aks-secrets-store-csi-driver",
        "aks-secrets-store-provider-azure",
        # Where they send what they collect is for `aks-monitoring` to judge.
        "ama-logs",
        "ama-logs-rs",
        "ama-logs-windows",
        "azure-cns",
        "azure-ip-masq-agent",
        "azure-iptables-monitor",
        "azure-npm",
        "cilium",
        "cilium-operator",
        "cloud-node-manager",
        "cloud-node-manager-windows",
        "csi-azuredisk-node",
        "csi-azuredisk-node-win",
        "csi-azurefile-node",
        "csi-azurefile-node-win",
        "csi-blob-node",
        "kube-proxy",
        "node-local-dns",
        "nvidia-device-plugin-daemonset",
        "retina-agent",
    }
)
# The control plane of a cluster that runs its own, as pods that the kubelet starts from files.
_STATIC = frozenset({"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"})
_BY_NAMESPACE: Mapping[str, frozenset[str]] = {
    KUBE_SYSTEM: _NODE_AGENTS,
    "calico-system": frozenset({"calico-node", "calico-node-windows", "calico-typha", "csi-node-driver"}),
    "tigera-operator": frozenset({"tigera-operator"}),
}
# What Azure Policy runs in a namespace that anybody could have made: these alone, and without rights over a node.
_ADD_ONS: Mapping[str, frozenset[str]] = {
    "gatekeeper-system": frozenset({"gatekeeper-audit", "gatekeeper-controller"}),
}
_MADE_BY = frozenset({"DaemonSet", "Deployment"})


def is_platform(pod: Pod) -> bool:
    """Whether a pod is one of the components of AKS that work on their node's network or as its administrator."""
    owner = pod.metadata.controller
    if owner is None:
        return False
    if owner.kind == "Node":
        return pod.namespace == KUBE_SYSTEM and pod.workload_name in _STATIC
    return _is_named(pod, _BY_NAMESPACE)


def is_the_platforms(pod: Pod) -> bool:
    """Whether a pod is run by the platform, from its own images and under policies of its own."""
    return pod.namespace in PLATFORM_NAMESPACES or _is_named(pod, _ADD_ONS)


def _is_named(pod: Pod, names: Mapping[str, frozenset[str]]) -> bool:
    kind = pod.workload.partition(" ")[0].rpartition("/")[2]
    return kind in _MADE_BY and pod.workload_name in names.get(pod.namespace, frozenset())


def is_policy_engine(pod: Pod) -> str:
    """The engine whose agent this pod is; "" for all others."""
    owner = pod.metadata.controller
    if owner is None or owner.kind != "DaemonSet" or POLICY_ENGINES.get(owner.name) != pod.namespace:
        return ""
    return owner.name


def is_operator(pod: Pod, namespaces: Collection[str]) -> bool:
    """Whether a pod is Hermetic's own operator; `namespaces` are those of Hermetic."""
    return _is_hermetic(pod, "operator", namespaces)


def is_probe(pod: Pod, namespaces: Collection[str]) -> bool:
    """Whether a pod carries Hermetic's own probe, which has to be able to try what others must not."""
    owner = pod.metadata.controller
    return _is_hermetic(pod, "egress-probe", namespaces) and owner is not None and owner.kind == "Job"


def _is_hermetic(pod: Pod, component: str, namespaces: Collection[str]) -> bool:
    labels = pod.labels
    return (
        pod.namespace in namespaces
        and labels.get("app.kubernetes.io/name") == "hermetic"
        and labels.get("app.kubernetes.io/component") == component
    )
