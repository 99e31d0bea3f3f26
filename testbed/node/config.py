"""The configuration of containerd, the CNI plug-ins, the kubelet, kube-proxy and CoreDNS, as each reads it."""

from __future__ import annotations

import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.node.addresses import NODE_ADDRESS, POD_NETWORKS, NodeIdentity
from testbed.packages import CNI_PLUGINS, SEARCH

PAUSE_IMAGE = "localhost/pause:1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"

# restrict_oom_score_adj: without CAP_SYS_RESOURCE no container would start otherwise, though the node is Ready
CONTAINERD = """\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing",
]
[grpc]
  address = "{socket}"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{pause}"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{cni}"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
"""

COREDNS = """\
.:53 {{
  errors
  bind {address}
  kubernetes cluster.local {{
    kubeconfig {kubeconfig}
  }}
}}
"""


@dataclass(frozen=True)
class Cluster:
    """What the node's programs have to know of the cluster they join. `cgroup`: the root of this node's."""

    authority: Path
    kubelet: Path
    proxy: Path
    cgroup: str


def containerd(cni: Path) -> str:
    return CONTAINERD.format(
        socket=CONTAINERD_SOCKET,
        pause=PAUSE_IMAGE,
        plugins=CNI_PLUGINS,
        cni=cni,
        runc=shutil.which("runc", path=SEARCH),
    )


def cni(identity: NodeIdentity) -> dict[str, Any]:
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipMasq": False,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-ipam",
                    "ranges": [[{"subnet": identity.pod_network}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def kubelet(identity: NodeIdentity, cluster: Cluster) -> dict[str, Any]:
    """Never evicts for disk and never collects images: what was made by hand cannot be pulled again."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "address": identity.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(cluster.authority)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cluster.cgroup,
        "failCgroupV1": False,
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "2s",
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "maxOpenFiles": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
    }


def kube_proxy(identity: NodeIdentity, cluster: Cluster) -> dict[str, Any]:
    """nf_conntrack_max is the machine's, not ours: maxPerCore 0 leaves it alone."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": POD_NETWORKS,
        "clientConnection": {"kubeconfig": str(cluster.proxy)},
        "hostnameOverride": identity.name,
        "bindAddress": identity.address,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": {"maxPerCore": 0},
    }


def coredns(admin: Path) -> str:
    """One server for all nodes, on the first."""
    return COREDNS.format(address=NODE_ADDRESS, kubeconfig=admin)
