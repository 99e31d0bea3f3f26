"""Why no node accepts the pod, with the arithmetic: which resource, which pool, how much is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.text import cut_middle, first_of
from hermetic.plan.snapshot import ClusterSnapshot, NodeFacts

# A first attempt often fails and the second succeeds: the claim is bound a moment after its pod was created.
GRACE = timedelta(seconds=3)
LONGEST_QUOTE = 300
_POOLS_NAMED = 5
# What the scheduler adds about preemption says nothing about the pod: no pod of a model may end another.
_PREEMPTION = re.compile(r"(?:,? ?no new claims to deallocate)?,? ?preemption: .*$", re.DOTALL)


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
    text = cut_middle(_PREEMPTION.sub("", quoted), LONGEST_QUOTE)
    quote = f"; the scheduler reports: {text}" if text else ""
    return _shortfall(spec, snapshot.nodes) + quote


def eligible_nodes(spec: ModelDeploymentSpec, nodes: Sequence[NodeFacts]) -> list[NodeFacts]:
    """The nodes that offer the GPUs, of a size and with the labels that the spec names, however many GPUs are free."""
    return [node for node in _offering(spec, nodes) if _has_size(node, spec) and not _missing_labels(node, spec)]


def _offering(spec: ModelDeploymentSpec, nodes: Sequence[NodeFacts]) -> list[NodeFacts]:
    return [node for node in nodes if node.gpus.get(spec.accelerator.resource, 0) > 0]


def _has_size(node: NodeFacts, spec: ModelDeploymentSpec) -> bool:
    sizes = spec.accelerator.instance_types
    return not sizes or node.instance_type in sizes


def _missing_labels(node: NodeFacts, spec: ModelDeploymentSpec) -> list[str]:
    """The labels of `scheduling.nodeSelector` that the node lacks, as 'key: value'."""
    selector = spec.scheduling.node_selector if spec.scheduling is not None else {}
    return [f"{key}: {value}" for key, value in sorted(selector.items()) if node.labels.get(key) != value]


def _shortfall(spec: ModelDeploymentSpec, nodes: Sequence[NodeFacts]) -> str:
    resource, gpus = spec.accelerator.resource, spec.accelerator.count
    needs = f"needs {gpus} {resource} on one node"
    offering = _offering(spec, nodes)
    if not offering:
        return f"{needs}, but no node offers any: is the device plug-in running on the GPU pool?"
    of_a_size = [node for node in offering if _has_size(node, spec)]
    if not of_a_size:
        there = ", ".join(sorted({node.instance_type for node in offering}))
        sizes = " or ".join(spec.accelerator.instance_types)
        return f"{needs} of size {sizes}, but the nodes that offer it are of size {there}"
    eligible = eligible_nodes(spec, of_a_size)
    if not eligible:
        return f"{needs} with the labels of `scheduling.nodeSelector`, but {_without_labels(spec, of_a_size)}"
    # The order of nodes in memory differs between runs; the sentence, which is written to the status, must not.
    largest = min(eligible, key=lambda node: (-node.gpus[resource], node.pool, node.instance_type))
    where = f"pool '{largest.pool}' ({largest.instance_type})"
    if largest.gpus[resource] < gpus:
        short = gpus - largest.gpus[resource]
        return f"{needs}, but the largest node, of {where}, has {largest.gpus[resource]}: {short} short"
    total = sum(node.gpus[resource] for node in eligible)
    free = f"no node has {gpus} free, and room for the pod"
    return f"{needs}; {where} and pools like it have {total} in all: {free}"


def _without_labels(spec: ModelDeploymentSpec, nodes: Sequence[NodeFacts]) -> str:
    """The pools of the nodes with the labels that each lacks; the same text whatever the order of the nodes."""
    pools = {(node.pool or node.name, first_of(_missing_labels(node, spec), 3)) for node in nodes}
    return "; ".join(f"pool '{pool}' lacks {labels}" for pool, labels in sorted(pools)[:_POOLS_NAMED])
