"""Nodes, their addresses and GPUs, namespaces, and the classes that new nodes are made from."""

from __future__ import annotations

from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, api_object
from hermetic.audit.estate.kubernetes.pods import is_gpu
from hermetic.audit.estate.resource import Part

GPU_LABELS = ("kubernetes.azure.com/accelerator", "accelerator")


class NodeAddress(Part):
    """`type` is InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS; open."""

    type: str = ""
    address: str = ""


AZURE = "azure://"
VIRTUAL_KUBELET = "virtual-kubelet"


class NodeSpec(Part):
    """`providerID` is set by the cloud's controller: azure:// and the ARM id of the machine."""

    provider_id: str | None = None


class NodeStatus(Part):
    addresses: list[NodeAddress] | None = None
    capacity: FreeMap[Any] | None = None


@api_object("v1/nodes", "Node", namespaced=False)
class Node(KubernetesObject):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_virtual(self) -> bool:
        """Whether a virtual kubelet registered it (learn.microsoft.com/azure/aks/virtual-nodes-cli)."""
        return self.labels.get("type") == VIRTUAL_KUBELET

    @property
    def machine(self) -> str:
        """ARM id of its machine; "" where the node names none of Azure."""
        named = self.spec.provider_id or ""
        return named.removeprefix(AZURE) if named.startswith(f"{AZURE}/") else ""

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


@api_object("v1/namespaces", "Namespace", namespaced=False)
class Namespace(KubernetesObject):
    pass


class NodeClassSpec(Part):
    """The subnet of new nodes; absent: the subnet of the cluster's first pool."""

    vnet_subnet_id: str | None = None


@api_object("karpenter.azure.com/v1beta1/aksnodeclasses", "AKSNodeClass", namespaced=False)
class AksNodeClass(KubernetesObject):
    """What node auto provisioning makes nodes from."""

    spec: NodeClassSpec = NodeClassSpec()


@api_object("egressgateway.kubernetes.azure.com/v1alpha1/staticgatewayconfigurations", "StaticGatewayConfiguration")
class StaticGatewayConfiguration(KubernetesObject):
    pass
