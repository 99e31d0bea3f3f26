"""Chooses the nodes for the probe: one for every pool and subnet. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hermetic.collect.probe.job import ProbedNode

POOL_LABELS = ("kubernetes.azure.com/agentpool", "agentpool", "karpenter.sh/nodepool")
SUBNET_LABEL = "kubernetes.azure.com/network-subnet"
UNNAMED = "unnamed"


def probed_nodes(nodes: Iterable[Mapping[str, Any]]) -> tuple[ProbedNode, ...]:
    """One node per pool and subnet, the one that has been ready for longest, sorted.

    The oldest, because a VM keeps a default outbound public address until it is deallocated. A pool without a ready
    node stays among them, so that its missing answer is reported.
    """
    chosen: dict[tuple[str, str], Mapping[str, Any]] = {}
    for node in sorted(nodes, key=_preference):
        chosen.setdefault(place_of(node), node)
    return tuple(ProbedNode(pool, subnet, node["metadata"]["name"]) for (pool, subnet), node in sorted(chosen.items()))


def place_of(node: Mapping[str, Any]) -> tuple[str, str]:
    """(pool, subnet) from the labels that AKS sets on nodes."""
    labels = node["metadata"].get("labels") or {}
    pool = next((labels[label] for label in POOL_LABELS if labels.get(label)), UNNAMED)
    return (pool, labels.get(SUBNET_LABEL) or UNNAMED)


def _preference(node: Mapping[str, Any]) -> tuple[bool, str, str]:
    metadata = node["metadata"]
    return (not _is_ready(node), metadata.get("creationTimestamp") or "~", metadata["name"])


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
