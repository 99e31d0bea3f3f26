"""The places of the cluster's nodes, compared with those that the attestation covers.

AKS labels a node with its pool and, in most network modes, with its subnet by name. A label can be changed by a holder
of rights to nodes; `spec.providerID` cannot, once it is set, and names the scale set. Labels as in
Azure/karpenter-provider-azure (pkg/providers/labels) and Azure/AgentBaker (node labels of the network).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from operator import attrgetter
from typing import Any

from hermetic.api.condition_updates import is_true
from hermetic.audit.attestation.report_form import AttestedCoverage, AttestedPool
from hermetic.audit.estate.arm_ids import group_of, name_of, parent_of, same_id
from hermetic.audit.estate.kubernetes.nodes import AZURE, VIRTUAL_KUBELET

POOL_LABELS = ("kubernetes.azure.com/agentpool", "agentpool")
PROVISIONED_LABEL = "karpenter.sh/nodepool"
SUBNET_LABEL = "kubernetes.azure.com/network-subnet"
NETWORK_LABEL = "kubernetes.azure.com/network-name"
GROUP_LABEL = "kubernetes.azure.com/network-resourcegroup"
IMAGE_LABEL = "kubernetes.azure.com/node-image-version"
LONGEST_LABEL = 63
_SCALE_SET = re.compile(r"(?i)^(/subscriptions/.+/virtualMachineScaleSets/[^/]+)/virtualMachines/[^/]+$")


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where nodes are, by their labels and provider id; "" for what a node does not say.

    `provisioner` is the NodePool of node auto provisioning; `address` the internal address, kept only where no label
    names the subnet.
    """

    pool: str = ""
    provisioner: str = ""
    subnet: str = ""
    network: str = ""
    network_group: str = ""
    scale_set: str = ""
    image: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class PlacedNodes:
    """A place, the number of ready nodes in it, and the name of the first of them."""

    node_place: NodePlace
    count: int
    first: str


@dataclass(frozen=True, slots=True)
class PlaceProblem:
    """Why a place is not covered, in words that name the node."""

    message: str
    is_provisioned: bool = False


def place_of_ready_node(node: Mapping[str, Any]) -> NodePlace | None:
    """The place of a node as the API server returns it; None for a node that is not ready, and for a virtual kubelet.

    The check k8s-alternative-paths evaluates virtual kubelets. The label alone makes none of a machine of Azure.
    """
    labels = node["metadata"].get("labels") or {}
    machine = str((node.get("spec") or {}).get("providerID") or "").removeprefix(AZURE)
    pool = next((str(labels[label]) for label in POOL_LABELS if labels.get(label)), "")
    if not is_true(node, "Ready"):
        return None
    if labels.get("type") == VIRTUAL_KUBELET and not (machine or pool):
        return None
    scale_set = _SCALE_SET.match(machine)
    node_place = NodePlace(
        pool=pool,
        provisioner=str(labels.get(PROVISIONED_LABEL) or ""),
        subnet=str(labels.get(SUBNET_LABEL) or ""),
        network=str(labels.get(NETWORK_LABEL) or ""),
        network_group=str(labels.get(GROUP_LABEL) or ""),
        scale_set=scale_set[1] if scale_set else "",
        image=str(labels.get(IMAGE_LABEL) or ""),
    )
    is_of_provisioner_only = bool(node_place.provisioner) and not node_place.subnet
    return replace(node_place, address=_internal_address(node)) if is_of_provisioner_only else node_place


def problems_of_places(nodes: tuple[PlacedNodes, ...], coverage: AttestedCoverage) -> Iterator[PlaceProblem]:
    """Every place that the coverage does not contain."""
    pools = _Pools(coverage)
    for placed in nodes:
        message = pools.problem_of(placed.node_place)
        if message:
            more = f" and {placed.count - 1} more nodes" if placed.count > 1 else ""
            is_provisioned = bool(placed.node_place.provisioner)
            yield PlaceProblem(f"node {placed.first}{more}: {message}", is_provisioned)


def changed_images(nodes: tuple[PlacedNodes, ...], coverage: AttestedCoverage) -> Iterator[str]:
    """A sentence for each covered place whose nodes run another image than the pool had when it was audited."""
    pools = _Pools(coverage)
    for placed in nodes:
        pool = pools.pool_of(placed.node_place)
        if isinstance(pool, str) or not pool.node_image or not placed.node_place.image:
            continue
        if pool.node_image.casefold() != placed.node_place.image.casefold():
            yield (
                f"node {placed.first} of pool {pool.name} has the image {placed.node_place.image}; "
                f"{pool.node_image} was attested"
            )


class _Pools:
    """The covered pools by name and by scale set, both in lower case."""

    def __init__(self, coverage: AttestedCoverage) -> None:
        self._coverage = coverage
        self._by_name = {pool.name.casefold(): pool for pool in coverage.pools}
        self._by_scale_set = {scale_set.casefold(): pool for pool in coverage.pools for scale_set in pool.scale_sets}

    def pool_of(self, node_place: NodePlace) -> AttestedPool | str:
        """The pool of a place; a text that says why there is none."""
        labelled = self._by_name.get(node_place.pool.casefold()) if node_place.pool else None
        if node_place.scale_set:
            owner = self._by_scale_set.get(node_place.scale_set.casefold())
            if owner is not None and node_place.pool and owner is not labelled:
                return (
                    f"its label names the pool '{node_place.pool}', and its scale set belongs to the pool "
                    f"'{owner.name}'"
                )
            if owner is None and labelled is not None and labelled.scale_sets:
                return f"its scale set {node_place.scale_set} is not that of the attested pool '{node_place.pool}'"
            if owner is not None:
                return owner
        if labelled is not None:
            return labelled
        if node_place.pool:
            return f"the pool '{node_place.pool}' is not in the attestation"
        return "it has no label of a pool (kubernetes.azure.com/agentpool), so its network is not known"

    def problem_of(self, node_place: NodePlace) -> str:
        """Why a place is not covered; "" where it is."""
        if node_place.provisioner and not node_place.scale_set and node_place.pool.casefold() not in self._by_name:
            return self._problem_of_provisioned(node_place)
        pool = self.pool_of(node_place)
        if isinstance(pool, str):
            return pool
        subnets = pool.subnets or [subnet.id for subnet in self._coverage.subnets]
        if node_place.subnet and not any(_names(node_place, subnet) for subnet in subnets):
            return f"the subnet '{_shown_subnet(node_place)}' is not that of the attested pool '{pool.name}'"
        return ""

    def _problem_of_provisioned(self, node_place: NodePlace) -> str:
        subnets = self._coverage.provisioned_subnets
        if node_place.subnet:
            if any(_names(node_place, subnet) for subnet in subnets):
                return ""
            return f"node auto provisioning made it in the subnet '{_shown_subnet(node_place)}', which was not attested"
        prefixes = [
            prefix
            for subnet in self._coverage.subnets
            if any(same_id(subnet.id, subnet_id) for subnet_id in subnets)
            for prefix in subnet.prefixes
        ]
        if node_place.address and any(_is_within(node_place.address, prefix) for prefix in prefixes):
            return ""
        return "node auto provisioning made it, and neither its labels nor its address name an attested subnet"


def _names(node_place: NodePlace, subnet_id: str) -> bool:
    """Whether the labels name this subnet. A label holds 63 characters, a subnet's name up to 80."""
    network = parent_of(subnet_id)
    return (
        _is_label_of(node_place.subnet, name_of(subnet_id))
        and (not node_place.network or _is_label_of(node_place.network, name_of(network)))
        and (not node_place.network_group or _is_label_of(node_place.network_group, name_of(group_of(subnet_id))))
    )


def _is_label_of(label: str, name: str) -> bool:
    return label.casefold() in {name.casefold(), name[:LONGEST_LABEL].rstrip("-_.").casefold()}


def _shown_subnet(node_place: NodePlace) -> str:
    return f"{node_place.network}/{node_place.subnet}" if node_place.network else node_place.subnet


def _internal_address(node: Mapping[str, Any]) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((str(address.get("address") or "") for address in addresses if address.get("type") == "InternalIP"), "")


def _is_within(address: str, prefix: str) -> bool:
    try:
        return ip_address(address) in ip_network(prefix, strict=False)
    except ValueError:
        return False


def placed_nodes(nodes: Iterable[tuple[str, NodePlace]]) -> tuple[PlacedNodes, ...]:
    """(name, place) of ready nodes, gathered by place; the same result in every order."""
    names: dict[NodePlace, list[str]] = {}
    for name, node_place in nodes:
        names.setdefault(node_place, []).append(name)
    placed = (PlacedNodes(node_place, len(together), min(together)) for node_place, together in names.items())
    return tuple(sorted(placed, key=attrgetter("first")))
