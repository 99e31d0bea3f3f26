"""Nodes, their addresses and GPUs, namespaces, and the classes that new nodes are made from."""

from __future__ import annotations

from typing import Any, ClassVar

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.pods import is_gpu
from hermetic.audit.estate.resource import Part

GPU_LABELS = ("kubernetes.azure.com/accelerator", "accelerator")


class NodeAddress(Part):
    """`type` is InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS; open."""

    type: str = ""
    address: str = ""


class NodeStatus(Part):
    """The status of a node."""

    addresses: list[NodeAddress] | None = None
    capacity: FreeMap[Any] | None = None


class Node(KubernetesObject):
    """v1/nodes."""

    TYPE: ClassVar[str] = "v1/nodes"
    KIND: ClassVar[str] = "Node"
    NAMESPACED: ClassVar[bool] = False

    status: NodeStatus = NodeStatus()

    @property
    def external(self) -> tuple[str, ...]:
        """External addresses and names."""
        kinds = {"ExternalIP", "ExternalDNS"}
        return tuple(one.address for one in self.status.addresses or () if one.type in kinds and one.address)

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses and names."""
        return tuple(one.address for one in self.status.addresses or () if one.address)

    @property
    def has_gpu(self) -> bool:
        """Whether it has GPUs, or a label of such: without its device plug-in it reports none."""
        return any(is_gpu(name) for name in self.status.capacity or ()) or any(
            self.labels.get(label) for label in GPU_LABELS
        )


class Namespace(KubernetesObject):
    """v1/namespaces."""

    TYPE: ClassVar[str] = "v1/namespaces"
    KIND: ClassVar[str] = "Namespace"
    NAMESPACED: ClassVar[bool] = False


class NodeClassSpec(Part):
    """The subnet of new nodes; absent: the subnet of the cluster's first pool."""

    vnet_subnet_id: str | None = None


class AksNodeClass(KubernetesObject):
    """karpenter.azure.com/v1beta1/aksnodeclasses: what node auto provisioning makes nodes from."""

    TYPE: ClassVar[str] = "karpenter.azure.com/v1beta1/aksnodeclasses"
    KIND: ClassVar[str] = "AKSNodeClass"
    NAMESPACED: ClassVar[bool] = False

    spec: NodeClassSpec = NodeClassSpec()


class StaticGatewayConfiguration(KubernetesObject):
    """egressgateway.kubernetes.azure.com/v1alpha1/staticgatewayconfigurations."""

    TYPE: ClassVar[str] = "egressgateway.kubernetes.azure.com/v1alpha1/staticgatewayconfigurations"
    KIND: ClassVar[str] = "StaticGatewayConfiguration"
