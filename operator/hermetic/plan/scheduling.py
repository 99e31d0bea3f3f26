"""Why no node accepts the pod, with the arithmetic: which resource, which pool, how much is missing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.plan.snapshot import ClusterSnapshot, NodeFacts

# A first attempt often fails and the second succeeds: the claim is bound a moment after its pod was created.
GRACE = timedelta(seconds=3)


def is_being_placed(pod: Mapping[str, Any], now: datetime) -> bool:
    """Whether the scheduler failed so recently that the failure is not reported yet."""
    until = unschedulable_deadline(pod)
    return until is not None and now < until <= now + 2 * GRACE  # ignore timestamps far in the future


def unschedulable_deadline(pod: Mapping[str, Any]) -> datetime | None:
    """When an unschedulable pod is reported; None for a pod that has a node."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            since = condition.get("lastTransitionTime")
            return datetime.fromisoformat(since) + GRACE if since else None
    return None


def unschedulable(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, quoted: str) -> str:
    """A sentence that names resource, pool and shortfall, and then quotes the scheduler (`quoted`)."""
    quote = f"; the scheduler reports: {quoted[:300]}" if quoted else ""
    return _shortfall(spec, snapshot.nodes) + quote


def eligible_nodes(spec: ModelDeploymentSpec, nodes: tuple[NodeFacts, ...]) -> list[NodeFacts]:
    """The nodes that offer the GPUs and are of a size that the spec allows, however many are free."""
    sizes = spec.accelerator.instance_types
    return [node for node in _offering(spec, nodes) if not sizes or node.instance_type in sizes]


def _offering(spec: ModelDeploymentSpec, nodes: tuple[NodeFacts, ...]) -> list[NodeFacts]:
    return [node for node in nodes if node.gpus.get(spec.accelerator.resource, 0) > 0]


def _shortfall(spec: ModelDeploymentSpec, nodes: tuple[NodeFacts, ...]) -> str:
    resource, wanted = spec.accelerator.resource, spec.accelerator.count
    needs = f"needs {wanted} {resource} on one node"
    offering = _offering(spec, nodes)
    if not offering:
        return f"{needs}, but no node offers any: is the device plug-in running on the GPU pool?"
    sizes = spec.accelerator.instance_types
    eligible = eligible_nodes(spec, nodes)
    if not eligible:
        there = ", ".join(sorted({node.instance_type for node in offering}))
        return f"{needs} of size {' or '.join(sizes)}, but the nodes that offer it are of size {there}"
    # The order of nodes in memory differs between runs; the sentence, which is written to the status, must not.
    largest = min(eligible, key=lambda node: (-node.gpus[resource], node.pool, node.instance_type))
    where = f"pool '{largest.pool}' ({largest.instance_type})"
    if largest.gpus[resource] < wanted:
        short = wanted - largest.gpus[resource]
        return f"{needs}, but the largest node, of {where}, has {largest.gpus[resource]}: {short} short"
    total = sum(node.gpus[resource] for node in eligible)
    return f"{needs}; {where} and its like have {total} in all, and none that is free and fits"
