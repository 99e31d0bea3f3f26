"""What AKS itself runs in every cluster: nodes, kube-system, storage classes, names.

learn.microsoft.com/azure/aks/core-aks-concepts and the tables of network rules list the components; which of them a
cluster has depends on its network plugin, its policy engine, and how its API server is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.azure.estate import Estate
from testbed.azure.ids import name_of
from testbed.textbook.kinds import EVERYWHERE, OF_PLUGINS, definitions
from testbed.textbook.objects import (
    MICROSOFT,
    Machine,
    Manifest,
    Part,
    agent,
    an_object,
    controller,
    namespace,
    service,
    webhook,
)

OSS = f"{MICROSOFT}/oss/v2"
# learn.microsoft.com/azure/aks/localdns-custom: where a node's own resolver answers pods and machines
LOCAL_DNS = ("169.254.10.10", "169.254.10.11")
NODES = "/var/lib/kubelet"


@dataclass(frozen=True)
class Plane:
    """plugin: cilium (Azure CNI powered by Cilium), npm (Azure CNI with Azure NPM) or calico (kubenet).

    tunnel: konnectivity agents, where the API server is reached by a private endpoint; with API Server VNet
    Integration there are none.
    """

    machines: tuple[Machine, ...]
    plugin: str = "cilium"
    tunnel: bool = True
    resolvers: tuple[str, ...] = ()
    api_server: str = "10.40.0.4"

    @property
    def system(self) -> tuple[Machine, ...]:
        return tuple(machine for machine in self.machines if machine.mode == "System")

    @property
    def gpus(self) -> tuple[Machine, ...]:
        return tuple(machine for machine in self.machines if machine.gpus)


def machines_of(estate: Estate) -> tuple[Machine, ...]:
    """The nodes of an estate: instances of its scale sets, and machines that AKS makes one by one."""
    pools = {pool["name"]: pool for pool in estate.properties(estate.cluster)["agentPoolProfiles"]}
    found = []
    for body in estate.of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"):
        scale_set, _, remainder = body["id"].partition("/virtualMachines/")
        pool = pools[estate[scale_set]["tags"]["aks-managed-poolName"]]
        address = body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"]
        name = f"{name_of(scale_set)}{int(remainder.partition('/')[0]):06d}"
        gpus = 1 if "_NC" in pool["vmSize"] else 0
        instance = f"{scale_set}/virtualMachines/{remainder.partition('/')[0]}"
        found.append(Machine(name, address, pool["name"], pool["mode"], instance, gpus))
    return (*found, *_provisioned(estate))


def _provisioned(estate: Estate) -> Iterator[Machine]:
    """learn.microsoft.com/azure/aks/node-auto-provisioning: a machine of its own for each node, one interface each."""
    group = f"{estate.site.node_group}/providers/Microsoft.Network/networkInterfaces/".lower()
    for body in estate.of_type("Microsoft.Network/networkInterfaces"):
        machine = body["properties"].get("virtualMachine")
        if machine and body["id"].lower().startswith(group):
            address = body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"]
            yield Machine(name_of(machine["id"]), address, "default", arm_id=machine["id"], gpus=1)


def aks(plane: Plane) -> list[Manifest]:
    """Everything that is there before anything is installed."""
    return [
        *(_node(machine) for machine in plane.machines),
        *(namespace(name) for name in ("default", "kube-system", "kube-public", "kube-node-lease")),
        *_api_server(plane),
        *_agents(plane),
        *_controllers(plane),
        *_storage(),
        *_names(plane),
        *_admission(),
        *definitions(EVERYWHERE, OF_PLUGINS[plane.plugin]),
    ]


def _node(machine: Machine) -> Manifest:
    labels = {
        "agentpool": machine.pool,
        "kubernetes.azure.com/agentpool": machine.pool,
        "kubernetes.azure.com/mode": machine.mode.lower(),
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
    }
    capacity = {"cpu": "40", "memory": "330Gi", "pods": "110"}
    if machine.gpus:
        labels |= {"kubernetes.azure.com/accelerator": "nvidia", "accelerator": "nvidia"}
        capacity["nvidia.com/gpu"] = str(machine.gpus)
    return an_object(
        "v1",
        "Node",
        machine.name,
        labels=labels,
        spec={"providerID": f"azure://{machine.arm_id}"},
        status={
            "addresses": [
                {"type": "InternalIP", "address": machine.address},
                {"type": "Hostname", "address": machine.name},
            ],
            "capacity": capacity,
        },
    )


def _api_server(plane: Plane) -> list[Manifest]:
    spec = {"type": "ClusterIP", "clusterIP": "172.29.0.1", "ports": [{"port": 443}]}
    return [
        an_object("v1", "Service", "kubernetes", "default", spec=spec),
        an_object(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            "kubernetes",
            "default",
            labels={"kubernetes.io/service-name": "kubernetes"},
            addressType="IPv4",
            endpoints=[{"addresses": [plane.api_server]}],
        ),
    ]


def _agents(plane: Plane) -> list[Manifest]:
    """One pod on each machine; what the plugin needs, and what every machine has."""
    manifests: list[Manifest] = []
    for name, part in {**_PLUGINS[plane.plugin], **_EVERYWHERE}.items():
        manifests += agent(name, "kube-system", part, plane.machines)
    for name, part in _OF_WINDOWS.items():
        manifests += agent(name, "kube-system", part, ())
    if plane.plugin == "calico":
        manifests += _calico(plane)
    if plane.plugin == "cilium":
        manifests.append(an_object("v1", "ConfigMap", "cilium-config", "kube-system", data=_CILIUM_CONFIG))
    return manifests


# Azure/azure-container-networking, test/integration/manifests/cilium/v1.17/cilium-config/cilium-config.yaml, in parts.
# There is no CiliumNodeConfig beside it.
_CILIUM_CONFIG = {
    "cluster-name": "default",
    "disable-cnp-status-updates": "true",
    "enable-k8s-networkpolicy": "true",
    "enable-l7-proxy": "false",
    "enable-non-default-deny-policies": "true",
    "enable-policy": "default",
    "enable-well-known-identities": "false",
    "identity-allocation-mode": "crd",
    "ipam": "delegated-plugin",
    "kube-proxy-replacement": "true",
    "routing-mode": "native",
}


def _on_host(image: str, account: str, name: str, **rights: Any) -> Part:
    return Part(f"{OSS}/{image}", account, {"k8s-app": name}, host_network=True, **rights)


_CSI = {"privileged": True, "folders": (f"{NODES}/plugins", NODES, "/dev")}
_EVERYWHERE = {
    "cloud-node-manager": _on_host(
        "kubernetes/azure-cloud-node-manager:v1.34.1", "cloud-node-manager", "cloud-node-manager"
    ),
    "csi-azuredisk-node": _on_host(
        "kubernetes-csi/azuredisk-csi:v1.33.5", "csi-azuredisk-node-sa", "csi-azuredisk-node", **_CSI
    ),
    "csi-azurefile-node": _on_host(
        "kubernetes-csi/azurefile-csi:v1.34.1", "csi-azurefile-node-sa", "csi-azurefile-node", **_CSI
    ),
}
# For Windows: on every cluster, without a pod where it has no Windows node. Names: github.com/Azure/AKS/issues/4952 and
# lists of fresh clusters in issues. Rights of azure-cns-win: Azure/azure-container-networking,
# cns/daemonset-windows.yaml; those of windows-kube-proxy-initializer are not public, and taken to be the same. The last
# one stands for those of later releases, whose names are not known.
_OF_WINDOWS = {
    name: _on_host(f"{image}:v1", name, name, privileged=True, node_os="windows")
    for name, image in {
        "azure-cns-win": "azure/azure-cns",
        "cloud-node-manager-windows": "kubernetes/azure-cloud-node-manager",
        "csi-azuredisk-node-win": "kubernetes-csi/azuredisk-csi",
        "csi-azurefile-node-win": "kubernetes-csi/azurefile-csi",
        "windows-kube-proxy-initializer": "kubernetes/windows-kube-proxy-initializer",
        "windows-agent-of-a-later-release": "kubernetes/windows-agent",
    }.items()
}
_IP_MASQ = _on_host(
    "azure/ip-masq-agent-v2:v0.1.15", "default", "azure-ip-masq-agent", capabilities=("NET_ADMIN", "NET_RAW")
)
_PROXY = _on_host(
    "kubernetes/kube-proxy:v1.34.2",
    "kube-proxy",
    "kube-proxy",
    capabilities=("NET_ADMIN",),
    folders=("/run/xtables.lock", "/lib/modules"),
)
_CNS = Part(
    f"{MICROSOFT}/containernetworking/azure-cns:v1.7.5",
    "azure-cns",
    {"k8s-app": "azure-cns"},
    host_network=True,
    capabilities=("NET_ADMIN", "NET_RAW"),
    folders=("/opt/cni/bin", "/etc/cni/net.d", "/var/lib/azure-network"),
)
_PLUGINS: dict[str, dict[str, Part]] = {
    "cilium": {
        "azure-cns": _CNS,
        "azure-ip-masq-agent": _IP_MASQ,
        "cilium": Part(
            f"{MICROSOFT}/containernetworking/cilium/cilium:v1.17.7",
            "cilium",
            {"k8s-app": "cilium"},
            host_network=True,
            privileged=True,
            folders=("/sys/fs/bpf", "/proc", "/var/run/cilium", "/opt/cni/bin", "/etc/cni/net.d", "/lib/modules"),
        ),
        "azure-iptables-monitor": Part(
            f"{MICROSOFT}/containernetworking/azure-iptables-monitor:v0.0.3",
            "azure-iptables-monitor",
            {"k8s-app": "azure-iptables-monitor"},
            host_network=True,
            capabilities=("NET_ADMIN", "NET_RAW"),
        ),
    },
    "npm": {
        "azure-cns": _CNS,
        "azure-ip-masq-agent": _IP_MASQ,
        "kube-proxy": _PROXY,
        "azure-npm": Part(
            f"{MICROSOFT}/containernetworking/azure-npm:v1.6.33",
            "azure-npm",
            {"k8s-app": "azure-npm"},
            host_network=True,
            privileged=True,
            folders=("/run/xtables.lock", "/etc/protocols"),
        ),
    },
    "calico": {"azure-ip-masq-agent": _IP_MASQ, "kube-proxy": _PROXY},
}


def _calico(plane: Plane) -> list[Manifest]:
    """As the Tigera operator installs it for AKS."""
    calico = f"{OSS}/calico"
    node = Part(
        f"{calico}/node:v3.30.3",
        "calico-node",
        {"k8s-app": "calico-node"},
        host_network=True,
        privileged=True,
        folders=("/lib/modules", "/run/xtables.lock", "/opt/cni/bin", "/etc/cni/net.d", "/var/run/calico", "/sys/fs"),
    )
    typha = Part(f"{calico}/typha:v3.30.3", "calico-typha", {"k8s-app": "calico-typha"}, host_network=True)
    operator = Part(
        f"{OSS}/tigera/operator:v1.38.6", "tigera-operator", {"k8s-app": "tigera-operator"}, host_network=True
    )
    csi = Part(
        f"{calico}/csi:v3.30.3",
        "csi-node-driver",
        {"k8s-app": "csi-node-driver"},
        privileged=True,
        folders=(NODES, "/var/run"),
    )
    kube = Part(f"{calico}/kube-controllers:v3.30.3", "calico-kube-controllers", {"k8s-app": "calico-kube-controllers"})
    return [
        namespace("calico-system"),
        namespace("tigera-operator"),
        *agent("calico-node", "calico-system", node, plane.machines),
        *agent("csi-node-driver", "calico-system", csi, plane.machines),
        *controller("calico-typha", "calico-system", typha, plane.system[:1]),
        *controller("calico-kube-controllers", "calico-system", kube, plane.system[:1]),
        *controller("tigera-operator", "tigera-operator", operator, plane.system[:1]),
        an_object("storage.k8s.io/v1", "CSIDriver", "csi.tigera.io", spec={}),
        an_object("operator.tigera.io/v1", "Installation", "default", spec={"kubernetesProvider": "AKS"}),
    ]


def _controllers(plane: Plane) -> list[Manifest]:
    dns = Part(f"{OSS}/kubernetes/coredns:v1.12.1", "coredns", {"k8s-app": "kube-dns"})
    scaler = Part(f"{OSS}/kubernetes/autoscaler/cpvpa:v0.8.9", "coredns-autoscaler", {"k8s-app": "coredns-autoscaler"})
    metrics = Part(f"{OSS}/kubernetes/metrics-server:v0.8.0", "metrics-server", {"k8s-app": "metrics-server"})
    manifests = [
        *controller("coredns", "kube-system", dns, plane.system),
        *controller("coredns-autoscaler", "kube-system", scaler, plane.system[:1]),
        *controller("metrics-server", "kube-system", metrics, plane.system),
        service("kube-dns", "kube-system", {"k8s-app": "kube-dns"}, 53),
        service("metrics-server", "kube-system", {"k8s-app": "metrics-server"}, 443),
        _aggregated("v1beta1.metrics.k8s.io", "metrics-server"),
    ]
    if plane.tunnel:
        tunnel = Part(
            f"{OSS}/kubernetes/apiserver-network-proxy/agent:v0.33.0",
            "konnectivity-agent",
            {"app": "konnectivity-agent"},
        )
        manifests += controller("konnectivity-agent", "kube-system", tunnel, plane.system)
    if plane.plugin == "cilium":
        operator = Part(
            f"{MICROSOFT}/containernetworking/cilium/operator-generic:v1.17.7",
            "cilium-operator",
            {"io.cilium/app": "operator"},
            host_network=True,
        )
        manifests += controller("cilium-operator", "kube-system", operator, plane.system)
    return manifests


def _aggregated(name: str, called: str, space: str = "kube-system") -> Manifest:
    spec = {"service": {"name": called, "namespace": space}, "group": name.partition(".")[2], "version": "v1beta1"}
    return an_object("apiregistration.k8s.io/v1", "APIService", name, spec=spec)


aggregated = _aggregated


def _storage() -> list[Manifest]:
    """The classes and drivers that AKS makes by itself (learn.microsoft.com/azure/aks/concepts-storage)."""
    classes = {
        "azurefile-csi": ("file.csi.azure.com", {"skuName": "Standard_LRS"}),
        "azurefile-csi-premium": ("file.csi.azure.com", {"skuName": "Premium_LRS"}),
        "managed-csi": ("disk.csi.azure.com", {"skuname": "StandardSSD_LRS"}),
        "managed-csi-premium": ("disk.csi.azure.com", {"skuname": "Premium_LRS"}),
    }
    return [
        *(
            an_object("storage.k8s.io/v1", "StorageClass", name, provisioner=driver, parameters=parameters)
            for name, (driver, parameters) in classes.items()
        ),
        *(an_object("storage.k8s.io/v1", "CSIDriver", f"{kind}.csi.azure.com", spec={}) for kind in ("disk", "file")),
    ]


COREFILE = """.:53 {
    errors
    ready
    health {
      lameduck 5s
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
      fallthrough in-addr.arpa ip6.arpa
      ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
    import custom/*.override
    template ANY ANY internal.cloudapp.net {
      match "^(?:[^.]+\\\\.){4,}internal\\\\.cloudapp\\\\.net\\\\.$"
      rcode NXDOMAIN
      fallthrough
    }
}
import custom/*.server
"""


def _names(plane: Plane) -> list[Manifest]:
    forwarded = f". {' '.join(plane.resolvers)}" if plane.resolvers else ""
    custom = {"own.override": f"forward {forwarded}\n"} if forwarded else {}
    return [
        an_object("v1", "ConfigMap", "coredns", "kube-system", data={"Corefile": COREFILE}),
        an_object("v1", "ConfigMap", "coredns-custom", "kube-system", data=custom),
    ]


def _admission() -> list[Manifest]:
    """AKS's own webhook is answered by the control plane under a name inside the cluster."""
    return [
        webhook("ValidatingWebhookConfiguration", "aks-node-validating-webhook", "kube-system", "aks-webhook"),
        webhook("MutatingWebhookConfiguration", "aks-node-mutating-webhook", "kube-system", "aks-webhook"),
    ]


def on(machines: Sequence[Machine], count: int = 1) -> Sequence[Machine]:
    """The first machines, for a workload of a few replicas."""
    return machines[:count]
