"""The numbers of `status.plan`: what was decided from the spec, and what sizing computed for it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.registry import engine_of
from hermetic.objects.weights_volume import share_of
from hermetic.plan.model_fit import ModelPlacement
from hermetic.sizing.catalogue import Storage, Value, storages
from hermetic.sizing.load_time import files_of, load_time, pcie_rate
from hermetic.sizing.placement import Placement

_UNLIMITED = Value(math.inf, "not known to the operator", True)


def planned_status(spec: ModelDeploymentSpec, model: ModelPlacement | None) -> dict[str, Any]:
    """The object `status.plan`; `model`: of a spec with facts, the model on the sizes that its pods may get."""
    decided: dict[str, Any] = {
        "engine": engine_of(spec).name,
        "tensorParallelSize": engine_of(spec).tensor_parallel_size(spec),
        "startupBudgetSeconds": spec.startup_budget_seconds,
    }
    placement = None if model is None else model.deciding
    if placement is None or placement.fit.needed is None:
        return decided
    load = _load(spec, placement)
    return decided | {"memory": _memory(placement, placement.fit.needed)} | ({"load": load} if load else {})


def _memory(placement: Placement, needed: int) -> dict[str, Any]:
    return {
        "instanceType": placement.size.name,
        "neededBytesPerGpu": needed,
        "availableBytesPerGpu": placement.fit.allowed,
        "answer": placement.answer.value,
    }


def _load(spec: ModelDeploymentSpec, placement: Placement) -> dict[str, Any] | None:
    """The bounds that are known: the node's network, the cap of one file of Azure Files, and PCIe."""
    facts, weights = spec.weights.facts, spec.weights
    if facts is None or share_of(spec) is None:
        return None
    capped = next(one.file for one in storages() if one.file is not None) if weights.azure_files is not None else None
    share = Storage("", _UNLIMITED, capped, shared=True)
    size = placement.size
    # Each node of a group needs its part of the weights at least.
    files, nodes = files_of(facts), spec.accelerator.nodes
    part = replace(files, total=files.total // nodes, largest=min(files.largest, files.total // nodes))
    least = load_time(part, share, nic=size.nic, pcie=pcie_rate(size.gpu, spec.accelerator.count))
    return {"leastSeconds": max(1, math.ceil(least.seconds)), "boundBy": least.bound}
