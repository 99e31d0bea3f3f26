"""Nodes, their addresses and GPUs, namespaces, and the classes that new nodes are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.node_choice import LINUX, OS_LABEL
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Trimmed, api_object
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


class NodeCondition(Part):
    """`status` is True, False or Unknown. Times are not kept: the kubelet renews them every few minutes."""

    type: str = ""
    status: str = ""


class NodeInfo(Part):
    """The ids of the operating system and of its start: they change where a machine is reimaged under its name."""

    machine_id: str | None = None
    boot_id: str | None = None


class NodeStatus(Trimmed):
    """Of the conditions only Ready is kept: the others change often and no check reads them."""

    addresses: list[NodeAddress] | None = None
    node_info: NodeInfo | None = None
    capacity: FreeMap[Any] | None = None
    conditions: list[NodeCondition] | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop every condition but Ready."""
        conditions = fields.get("conditions")
        if not isinstance(conditions, list):
            return fields
        ready = [
            condition for condition in conditions if isinstance(condition, Mapping) and condition.get("type") == "Ready"
        ]
        return {**fields, "conditions": ready}


@api_object("v1/nodes", "Node", namespaced=False)
class Node(KubernetesObject):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_virtual(self) -> bool:
        """Whether a virtual kubelet registered it (learn.microsoft.com/azure/aks/virtual-nodes-cli)."""
        return self.labels.get("type") == VIRTUAL_KUBELET

    @property
    def is_linux(self) -> bool:
        """Whether its label, which its kubelet sets, names Linux; False without the label."""
        return self.labels.get(OS_LABEL) == LINUX

    @property
    def machine(self) -> str:
        """ARM id of its machine; "" where the node names none of Azure."""
        named = self.spec.provider_id or ""
        return named.removeprefix(AZURE) if named.startswith(f"{AZURE}/") else ""

    @property
    def external(self) -> tuple[str, ...]:
        """External addresses and names."""
        kinds = {"ExternalIP", "ExternalDNS"}
        return tuple(
            address.address for address in self.status.addresses or () if address.type in kinds and address.address
        )

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses and names."""
        return tuple(address.address for address in self.status.addresses or () if address.address)

    @property
    def has_gpu(self) -> bool:
        """Whether it has GPUs, or a label of such: without its device plug-in it reports none."""
        return any(is_gpu(name) for name in self.status.capacity or ()) or any(
            self.labels.get(label) for label in GPU_LABELS
        )


class NamespaceStatus(Part):
    """`phase` is Active or Terminating; the API server refuses Active once the namespace has a deletionTimestamp."""

    phase: str | None = None


@api_object("v1/namespaces", "Namespace", namespaced=False)
class Namespace(KubernetesObject):
    status: NamespaceStatus = NamespaceStatus()

    @property
    def is_terminating(self) -> bool:
        """Whether it is being deleted, so that the API server creates nothing in it any more.

        Nothing ends that state but the end of the namespace (kubernetes.io: Admission Controllers, NamespaceLifecycle).
        """
        return self.status.phase == "Terminating"


class NodeClassSpec(Part):
    """The subnet of new nodes; absent: the subnet of the cluster's first pool."""

    vnet_subnet_id: str | None = None


@api_object("karpenter.azure.com/v1beta1/aksnodeclasses", "AKSNodeClass", namespaced=False)
class AksNodeClass(KubernetesObject):
    """What node auto provisioning makes nodes from."""

    spec: NodeClassSpec = NodeClassSpec()


class StaticGatewaySpec(Part):
    """The addresses of a static egress gateway (github.com/Azure/kube-egress-gateway); absent fields decide nothing."""

    provision_public_ips: bool | None = None
    public_ip_prefix_id: str | None = None


@api_object("egressgateway.kubernetes.azure.com/v1alpha1/staticgatewayconfigurations", "StaticGatewayConfiguration")
class StaticGatewayConfiguration(KubernetesObject):
    spec: StaticGatewaySpec = StaticGatewaySpec()

    @property
    def has_private_addresses_only(self) -> bool:
        """Whether it says that no public address is provisioned, and names no prefix of public addresses."""
        return self.spec.provision_public_ips is False and not self.spec.public_ip_prefix_id
