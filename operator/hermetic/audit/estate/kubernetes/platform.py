"""Workloads that AKS and Hermetic run, and the exceptions to the rules that each of them needs.

A part of the platform is recognised by several properties together: its namespace, the controller that made it (or its
service account), and that all its images come from Microsoft's registry or its mirror. A name alone is not enough.
Names come from AKS's documentation and its components' own repositories; what is not here needs an exception, or
`trustedNodeAgents` in the policy. Each part is allowed what it is documented to need, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hermetic.audit.estate.kubernetes.calls import WebhookConfiguration
from hermetic.audit.estate.kubernetes.images import microsofts
from hermetic.audit.estate.kubernetes.pods import POLICY_ENGINES, Pod, SecurityContext

KUBE_SYSTEM = "kube-system"
CALICO, TIGERA = "calico-system", "tigera-operator"
MESH = "aks-istio-system"
PLATFORM_NAMESPACES = frozenset({KUBE_SYSTEM, CALICO, TIGERA})
"""Namespaces in which the platform runs its own workloads, under its own policies."""


SHOWN_BY = {CALICO: "operator.tigera.io", TIGERA: "operator.tigera.io", "gatekeeper-system": "templates.gatekeeper.sh"}
"""API groups that exist wherever the platform runs something in these namespaces.

A user who may create namespaces can use such a name. Only a cluster administrator can add an API group.
"""


@dataclass(frozen=True, slots=True)
class PlatformTrust:
    """The settings that the recognition of a part needs beside the pod itself.

    `approved` are the registries that the policy allows: the mirror of Microsoft's images may be in one of them.
    `namespaces` are kube-system and those of `SHOWN_BY` that belong to the platform in this cluster. `has_mesh` is
    whether AKS's service mesh add-on is installed (`is_hook_of_mesh`).
    """

    approved: frozenset[str]
    namespaces: frozenset[str]
    has_mesh: bool = False

    def holds_in(self, namespace: str) -> bool:
        """Whether a name of the platform counts in this namespace."""
        return namespace not in SHOWN_BY or namespace in self.namespaces


@dataclass(frozen=True, slots=True)
class PlatformPart:
    """A controller of the platform. A `name` ending in "*" is a prefix, or without a hyphen before it also the name
    itself; "" is any name, checked by the service account.

    `node` are rights over the node and its folders, `host_network` is the node's network. `folders` are the only
    folders of the node that it may have; None: any.
    """

    kind: str
    name: str
    node: bool = False
    host_network: bool = False
    service_account: str = ""
    folders: frozenset[str] | None = None

    def made(self, kind: str, name: str, service_account: str) -> bool:
        """Whether it is the controller of this kind and name."""
        prefix = self.name.removesuffix("*")
        begins = prefix != self.name and name.startswith(prefix) and not (name == prefix and prefix.endswith("-"))
        is_named = not self.name or name == self.name or begins
        return kind == self.kind and is_named and self.service_account in {"", service_account}

    def has_folders_of(self, pod: Pod) -> bool:
        """Whether the pod mounts no other folder of its node than the part is documented to need."""
        paths = (volume.host_path.path for volume in pod.spec.volumes or () if volume.host_path is not None)
        return self.folders is None or all(path in self.folders for path in paths)


def _on_every_node(*names: str, host_network: bool = False) -> tuple[PlatformPart, ...]:
    """DaemonSets, each with rights over its node."""
    return tuple(PlatformPart("DaemonSet", name, True, host_network) for name in names)


def _controllers(*names: str, node: bool = False, host_network: bool = False) -> tuple[PlatformPart, ...]:
    return tuple(PlatformPart("Deployment", name, node, host_network) for name in names)


_IN_KUBE_SYSTEM: tuple[PlatformPart, ...] = (
    # Networking: azure-container-networking, cilium, AKS's changelog (azure-iptables-monitor from Kubernetes 1.33),
    # Advanced Container Networking Services (retina-agent, acns-security-agent), use-network-policies.md (azure-npm).
    # Those for Windows are on every cluster, without a pod where it has no such node: github.com/Azure/AKS/issues/4952
    # (windows-kube-proxy-initializer); Azure/azure-container-networking, cns/daemonset-windows.yaml (azure-cns-win) and
    # npm/examples/windows (azure-npm-win); microsoft/retina, the chart's daemonset.yaml (retina-agent-win).
    *_on_every_node(
        "acns-security-agent",
        "azure-cns",
        "azure-cns-win",
        "azure-ip-masq-agent",
        "azure-iptables-monitor",
        "azure-npm",
        "azure-npm-win",
        "cilium",
        "kube-proxy",
        "retina-agent",
        "retina-agent-win",
        "windows-kube-proxy-initializer",
        host_network=True,
    ),
    *_controllers("cilium-operator", node=True, host_network=True),
    # azure-cni-overlay.md: konnectivity uses the node's address.
    *_controllers("konnectivity-agent", host_network=True),
    # kubernetes-sigs/cloud-provider-azure
    *_on_every_node("cloud-node-manager", "cloud-node-manager-windows", host_network=True),
    # Storage: kubernetes-sigs/azuredisk-csi-driver, azurefile-csi-driver, blob-csi-driver; csi-secrets-store-driver.md
    *_on_every_node(
        "csi-azuredisk-node",
        "csi-azuredisk-node-win",
        "csi-azurefile-node",
        "csi-azurefile-node-win",
        "csi-blob-node",
        "aks-secrets-store-provider-azure",
        "aks-secrets-store-provider-azure-windows",
        host_network=True,
    ),
    # Those for Windows: github.com/kubernetes/ingress-nginx/issues/13351, in the list of an AKS cluster.
    *_on_every_node("aks-secrets-store-csi-driver", "aks-secrets-store-csi-driver-windows"),
    # Azure Monitor: microsoft/Docker-Provider, Azure/prometheus-collector. On AKS Automatic a DaemonSet for each size
    # of node. `aks-monitoring` evaluates where they send the data.
    *_on_every_node(
        "ama-logs",
        "ama-logs-xs",
        "ama-logs-s",
        "ama-logs-m",
        "ama-logs-l",
        "ama-logs-xl",
        "ama-logs-windows",
        "ama-metrics-node",
        "ama-metrics-node-*",
        "ama-metrics-win-node",
    ),
    *_controllers("ama-logs-rs", "ama-metrics", node=True),
    # Defender for Containers: defender-for-containers-architecture.md (hostPID, eBPF, folders of the node)
    *_on_every_node("microsoft-defender-collector-ds", "microsoft-defender-publisher-ds"),
    # Image Cleaner: image-cleaner.md, eraser-dev/eraser. Worker pods belong to an ImageJob with a name of its own.
    PlatformPart("ImageJob", "", node=True, service_account="eraser-imagejob-pods"),
)
_IN_CALICO: tuple[PlatformPart, ...] = (
    # tigera/operator, as AKS runs it for networkPolicy calico
    *_on_every_node("calico-node", "calico-node-windows", host_network=True),
    *_on_every_node("csi-node-driver"),
    *_controllers("calico-typha", host_network=True),
)
_BY_NAMESPACE: Mapping[str, tuple[PlatformPart, ...]] = {
    KUBE_SYSTEM: _IN_KUBE_SYSTEM,
    CALICO: _IN_CALICO,
    TIGERA: _controllers("tigera-operator", node=True, host_network=True),
}
_GROUPS = {"DaemonSet": "apps", "Deployment": "apps", "ImageJob": "eraser.sh"}
# AKS's own mirror of quay.io: github.com/Azure/AKS/issues/4999 and 5675 (mirror/quay/calico).
_OF_CALICO = re.compile(r"(oss/(v2/)?|mirror/quay/)(calico|tigera)/.+")
# Static pods of the control plane, in a cluster that runs its own.
_STATIC = frozenset({"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"})
# What Azure Policy runs in a namespace that any user could have created: these alone, without rights over a node.
_ADD_ONS: Mapping[str, tuple[PlatformPart, ...]] = {
    "gatekeeper-system": _controllers("gatekeeper-audit", "gatekeeper-controller")
}
# In namespaces that any user could have created, only images of the project that belongs there: Microsoft's registry
# also has images that run arbitrary commands.
_PROJECTS: Mapping[str, re.Pattern[str]] = {
    CALICO: _OF_CALICO,
    TIGERA: _OF_CALICO,
    "gatekeeper-system": re.compile(r"oss/(v2/)?open-policy-agent/.+"),
}
# Other workloads that AKS runs from Microsoft's registry, in namespaces that any user could have created: proxies and
# their control planes. Policies limit their egress, as for every workload.
_UNDER_POLICIES: Mapping[str, tuple[PlatformPart, ...]] = {
    "app-routing-system": _controllers("nginx*", "external-dns*"),
    MESH: _controllers("istiod*"),
    "aks-istio-ingress": _controllers("aks-istio-ingressgateway-*"),
    "aks-istio-egress": _controllers("*"),
}
# learn.microsoft.com/azure/aks/istio-cni names the DaemonSet. Its chart, istio/istio manifests/charts/istio-cni, sets
# capabilities, and neither `privileged` nor the node's network.
_IN_MESH: Mapping[str, tuple[PlatformPart, ...]] = {
    MESH: (
        PlatformPart(
            "DaemonSet",
            "azure-service-mesh-istio-cni-addon-node",
            node=True,
            folders=frozenset(
                {
                    "/etc/cni/net.d",
                    "/opt/cni/bin",
                    "/proc",
                    "/var/run/istio-cni",
                    "/var/run/netns",
                    "/var/run/ztunnel",
                }
            ),
        ),
    )
}
_CAPABILITIES_OF_MESH = frozenset({"DAC_OVERRIDE", "NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE"})
_IMAGE_OF_MESH = re.compile(r"oss/(v2/)?istio/.+")
_HOOK_OF_MESH = re.compile(r"istio-sidecar-injector-asm-[0-9]+-[0-9]+-aks-istio-system")


def may_control_its_node(pod: Pod, trust: PlatformTrust) -> bool:
    """Whether a pod is a component of AKS that needs administrator rights on its node."""
    return _is_static(pod) or is_of_mesh(pod, trust) or any(part.node for part in _parts(pod, _BY_NAMESPACE, trust))


def is_of_mesh(pod: Pod, trust: PlatformTrust) -> bool:
    """Whether a pod is the network plug-in of AKS's service mesh add-on, with the rights that its chart gives it."""
    if not trust.has_mesh or pod.spec.host_pid or pod.spec.host_ipc:
        return False
    contexts = (pod.spec.security_context, *(container.security_context for container in pod.containers))
    if not all(context is None or _has_rights_of_mesh(context) for context in contexts):
        return False
    paths = (microsofts(container.image, trust.approved) for container in pod.containers)
    is_istio = all(path and _IMAGE_OF_MESH.fullmatch(path) for path in paths)
    return is_istio and any(part.has_folders_of(pod) for part in _parts(pod, _IN_MESH, trust))


def _has_rights_of_mesh(context: SecurityContext) -> bool:
    """Whether it gives the capabilities that the chart of the plug-in sets, and no other right."""
    added = (context.capabilities.add if context.capabilities is not None else None) or ()
    is_plain = not context.privileged and context.proc_mount != "Unmasked" and context.windows_options is None
    return is_plain and all(capability in _CAPABILITIES_OF_MESH for capability in added)


def is_hook_of_mesh(configuration: WebhookConfiguration) -> bool:
    """Whether it is the injector of AKS's service mesh add-on, which shows that the add-on owns `MESH`.

    A user who may create namespaces can create one of this name, with any label. Only a cluster administrator can
    create a webhook configuration. Its name: learn.microsoft.com/azure/aks/istio-upgrade and lists of AKS clusters.
    """
    services = [hook.client_config.service for hook in configuration.webhooks or ()]
    calls_mesh = bool(services) and all(service is not None and service.namespace == MESH for service in services)
    return calls_mesh and _HOOK_OF_MESH.fullmatch(configuration.metadata.name) is not None


def may_use_the_host_network(pod: Pod, trust: PlatformTrust) -> bool:
    """Whether a pod is a component of AKS that needs its node's network."""
    return _is_static(pod) or any(part.host_network for part in _parts(pod, _BY_NAMESPACE, trust))


def is_the_platforms(pod: Pod, trust: PlatformTrust) -> bool:
    """Whether a pod is run by the platform, from Microsoft's images and under the platform's own policies."""
    if pod.namespace in trust.namespaces & PLATFORM_NAMESPACES:
        return _is_static(pod) or _runs_microsofts_images(pod, trust)
    return bool(_parts(pod, _ADD_ONS, trust))


def may_run_microsofts_images(pod: Pod, trust: PlatformTrust) -> bool:
    """Whether a pod is one that AKS itself runs from Microsoft's registry."""
    return is_the_platforms(pod, trust) or is_of_mesh(pod, trust) or bool(_parts(pod, _UNDER_POLICIES, trust))


def _parts(
    pod: Pod, parts_by_namespace: Mapping[str, tuple[PlatformPart, ...]], trust: PlatformTrust
) -> tuple[PlatformPart, ...]:
    """The parts that a pod matches by namespace, controller, service account and images together."""
    parts = parts_by_namespace.get(pod.namespace, ()) if trust.holds_in(pod.namespace) else ()
    owner = pod.metadata.controller
    if not parts or owner is None or not _runs_microsofts_images(pod, trust):
        return ()
    version, _, kind = pod.workload.partition(" ")[0].rpartition("/")
    if version.partition("/")[0] != _GROUPS.get(kind):
        return ()
    account = pod.spec.service_account_name or ""
    return tuple(part for part in parts if part.made(kind, pod.workload_name, account))


def _runs_microsofts_images(pod: Pod, trust: PlatformTrust) -> bool:
    """Checks every container, init and ephemeral ones too: one that was added later is no part of the platform."""
    paths = [microsofts(container.image, trust.approved) for container in pod.containers]
    pattern = _PROJECTS.get(pod.namespace)
    return bool(paths) and all(path and (pattern is None or pattern.fullmatch(path)) for path in paths)


def _is_static(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return (
        owner is not None
        and owner.kind == "Node"
        and pod.namespace == KUBE_SYSTEM
        and owner.name == pod.spec.node_name
        and pod.workload_name in _STATIC
    )


def engine_named_by(pod: Pod) -> str:
    """The engine whose agent this pod is by its namespace and controller alone; "" for all others."""
    owner = pod.metadata.controller
    if owner is None or owner.kind != "DaemonSet" or POLICY_ENGINES.get(owner.name) != pod.namespace:
        return ""
    return owner.name


def is_operator(pod: Pod, namespaces: Collection[str]) -> bool:
    """Whether a pod is Hermetic's own operator; `namespaces` are those of Hermetic."""
    return _is_hermetic(pod, "operator", namespaces)


def is_probe(pod: Pod, namespaces: Collection[str]) -> bool:
    """Whether a pod is Hermetic's own probe, which must be able to try connections that others must not make."""
    owner = pod.metadata.controller
    return _is_hermetic(pod, "egress-probe", namespaces) and owner is not None and owner.kind == "Job"


def _is_hermetic(pod: Pod, component: str, namespaces: Collection[str]) -> bool:
    labels = pod.labels
    return (
        pod.namespace in namespaces
        and labels.get("app.kubernetes.io/name") == "hermetic"
        and labels.get("app.kubernetes.io/component") == component
    )
