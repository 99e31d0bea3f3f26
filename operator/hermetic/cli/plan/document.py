"""The output of `hermetic plan` as JSON. Sizes are bytes, times seconds, contexts tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hermetic.cli.plan.planned import Load, Planned
from hermetic.plan.cache_use import cache_use
from hermetic.sizing.catalogue import Size
from hermetic.sizing.comparison import Choice
from hermetic.sizing.facts_file import as_json
from hermetic.sizing.memory import Fit
from hermetic.sizing.placement import Placement

SCHEMA = "hermetic.dev/plan/v1"


def as_document(plans: Iterable[Planned]) -> dict[str, Any]:
    return {"schema": SCHEMA, "deployments": [_deployment(one) for one in plans]}


def _deployment(plan: Planned) -> dict[str, Any]:
    cost, caches = plan.offload, cache_use(plan.spec, required=True)
    return {
        "namespace": plan.namespace,
        "name": plan.name,
        "answer": plan.answer.value,
        "impossible": list(plan.impossible),
        "sizesNotListed": list(plan.unlisted),
        "asWritten": [_placement(one) for one in plan.named],
        "sizes": [_choice(one) for one in plan.choices],
        "loadTimes": [_load(one) for one in plan.loads],
        "startupBudgetSeconds": plan.spec.startup_budget_seconds,
        "offload": None
        if cost is None
        else {"bytes": cost.missing, "secondsPerStep": round(cost.seconds_per_step, 3), "advised": cost.advised},
        "compileCaches": None
        if caches is None
        else {"used": caches.status == "True", "reason": caches.reason.value, "message": caches.message},
        "facts": as_json(plan.facts),
    }


def _placement(one: Placement) -> dict[str, Any]:
    return {**_size(one.size), "answer": one.answer.value, "objections": list(one.objections), **_fit(one.fit)}


def _choice(one: Choice) -> dict[str, Any]:
    return {**_size(one.size), "answer": one.answer.value, **(_fit(one.fit) if one.fit is not None else {})}


def _size(size: Size) -> dict[str, Any]:
    return {
        "instanceType": size.name,
        "gpu": size.gpu.name,
        "gpus": size.gpus.value,
        "confirmed": size.confirmed,
        "cpuArchitecture": size.cpu,
    }


def _fit(fit: Fit) -> dict[str, Any]:
    return {
        "tensorParallelSize": fit.serving.tensor_parallel,
        "pipelineParallelSize": fit.serving.pipeline_parallel,
        "gpuMemoryBytes": fit.memory,
        "utilizationPercent": fit.serving.utilization_percent,
        "allowedBytes": fit.allowed,
        "weightsBytes": fit.weights,
        "overheadBytes": fit.overhead,
        "keyValueBytesPerToken": round(fit.cache.token_bytes) if fit.cache is not None else None,
        "keyValueBytes": fit.requested,
        "neededBytes": fit.needed,
        "contextLength": fit.context,
        "longestContext": fit.longest_context,
        "requestsOfThisLength": fit.full_requests,
        "notComputed": list(fit.unknown),
    }


def _load(one: Load) -> dict[str, Any]:
    return {
        "storage": one.storage.name,
        "seconds": round(one.time.seconds, 1),
        "bound": one.time.bound,
        "estimate": one.time.estimate,
        "startupBudgetSeconds": one.budget,
        "filesWanted": one.files_wanted,
    }
