"""Fleets of GPU nodes as AKS shows them, simulated by kwok: labels, taints and capacity of real Azure sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.api import Api
from testbed.kwok import FAKE
from testbed.programs import KUBERNETES_VERSION

REGION = "swedencentral"
GPU_TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
RUNTIME_VERSION = "containerd://2.2.4"
# what AKS keeps back for the system; near enough for scheduling
RESERVED_MILLICPU, RESERVED_MEMORY_GIB = 260, 6


@dataclass(frozen=True)
class Size:
    """One Azure VM size. `memory` is the machine's, in GiB; `vendor` names the resource: `nvidia.com/gpu`."""

    name: str
    gpus: int
    cpus: int
    memory: int
    vendor: str = "nvidia"
    architecture: str = "amd64"

    @property
    def resource(self) -> str:
        return f"{self.vendor}.com/gpu"


SIZES: Mapping[str, Size] = {
    size.name: size
    for size in (
        Size("Standard_NC24ads_A100_v4", gpus=1, cpus=24, memory=220),
        Size("Standard_NC48ads_A100_v4", gpus=2, cpus=48, memory=440),
        Size("Standard_NC96ads_A100_v4", gpus=4, cpus=96, memory=880),
        Size("Standard_NC40ads_H100_v5", gpus=1, cpus=40, memory=320),
        Size("Standard_NC80adis_H100_v5", gpus=2, cpus=80, memory=640),
        Size("Standard_ND96asr_v4", gpus=8, cpus=96, memory=900),
        Size("Standard_ND96amsr_A100_v4", gpus=8, cpus=96, memory=1900),
        Size("Standard_ND96isr_H100_v5", gpus=8, cpus=96, memory=1900),
        Size("Standard_ND96isr_H200_v5", gpus=8, cpus=96, memory=1850),
        Size("Standard_ND96isr_MI300X_v5", gpus=8, cpus=96, memory=1850, vendor="amd"),
        Size("Standard_ND128isr_NDR_GB200_v6", gpus=4, cpus=128, memory=900, architecture="arm64"),
        Size("Standard_D16s_v5", gpus=0, cpus=16, memory=64),
    )
}


@dataclass(frozen=True)
class Pool:
    """A node pool. A GPU pool carries the taint that AKS's documentation recommends unless `taints` says otherwise.

    `driver=False` is a pool whose nodes have the size of a GPU machine but advertise no GPU, as AKS leaves them when
    no device plug-in is installed. `labels` and `annotations` are added to every node's. `subscription` is the one
    that the machines are in, for their provider id.
    """

    name: str
    size: str = "Standard_NC24ads_A100_v4"
    taints: tuple[Mapping[str, str], ...] | None = None
    driver: bool = True
    runtime_version: str = RUNTIME_VERSION
    kubelet_version: str = KUBERNETES_VERSION
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    subscription: str = "00000000-0000-0000-0000-000000000000"


def add_nodes(api: Api, pool: Pool, count: int = 1) -> list[str]:
    """Creates the pool's nodes, numbered from 0, and returns their names; kwok makes them Ready within a second."""
    nodes = [node(pool, number) for number in range(count)]
    for manifest in nodes:
        api.create("/api/v1/nodes", manifest)
    return [manifest["metadata"]["name"] for manifest in nodes]


def remove_nodes(api: Api, names: list[str]) -> None:
    """Deletes nodes, as a scale-down does."""
    for name in names:
        api.delete(f"/api/v1/nodes/{name}")


def node(pool: Pool, number: int) -> dict[str, Any]:
    """The Node that the kubelet of one of the pool's machines would register."""
    size = SIZES[pool.size]
    name = f"aks-{pool.name}-10137600-vmss{number:06d}"
    taints = pool.taints if pool.taints is not None else (GPU_TAINT,) if size.gpus else ()
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {**FAKE, **pool.annotations},
            "labels": {**_labels(pool, size, name), **pool.labels},
        },
        "spec": {
            "providerID": f"azure:///subscriptions/{pool.subscription}/resourceGroups/nodes/{name}",
            "taints": [dict(taint) for taint in taints],
        },
        "status": _status(pool, size),
    }


def _labels(pool: Pool, size: Size, name: str) -> dict[str, str]:
    accelerator = {"kubernetes.azure.com/accelerator": size.vendor, "accelerator": size.vendor} if size.gpus else {}
    return {
        "agentpool": pool.name,
        "kubernetes.azure.com/agentpool": pool.name,
        "kubernetes.azure.com/mode": "user",
        "kubernetes.azure.com/network-subnet": "nodes",
        "kubernetes.azure.com/priority": "regular",
        **accelerator,
        "kubernetes.io/arch": size.architecture,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": size.name,
        "topology.kubernetes.io/region": REGION,
        "topology.kubernetes.io/zone": f"{REGION}-1",
    }


def _status(pool: Pool, size: Size) -> dict[str, Any]:
    gpus = {size.resource: str(size.gpus)} if size.gpus and pool.driver else {}
    fixed = {"ephemeral-storage": "128Gi", "pods": "110", **gpus}
    return {
        "capacity": {"cpu": str(size.cpus), "memory": f"{size.memory}Gi", **fixed},
        "allocatable": {
            "cpu": f"{size.cpus * 1000 - RESERVED_MILLICPU}m",
            "memory": f"{size.memory - RESERVED_MEMORY_GIB}Gi",
            **fixed,
        },
        "nodeInfo": {
            "architecture": size.architecture,
            "operatingSystem": "linux",
            "osImage": "Ubuntu 24.04.3 LTS",
            "kernelVersion": "6.8.0-1034-azure",
            "containerRuntimeVersion": pool.runtime_version,
            "kubeletVersion": pool.kubelet_version,
            "kubeProxyVersion": "",
            "bootID": "",
            "machineID": "",
            "systemUUID": "",
        },
    }
