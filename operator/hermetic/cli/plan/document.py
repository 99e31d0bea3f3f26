"""The output of `hermetic plan` as JSON. Sizes are bytes, times seconds, contexts tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hermetic.cli.plan.planned import Load, Planned, StagedAdapter
from hermetic.plan.cache_use import cache_use
from hermetic.sizing.catalogue import Size
from hermetic.sizing.comparison import Choice
from hermetic.sizing.facts_file import as_json
from hermetic.sizing.memory import Fit
from hermetic.sizing.node_counts import NodeChoice
from hermetic.sizing.placement import Placement

SCHEMA = "hermetic.dev/plan/v1"


def as_document(plans: Iterable[Planned]) -> dict[str, Any]:
    return {"schema": SCHEMA, "deployments": [_deployment(plan) for plan in plans]}


def _deployment(plan: Planned) -> dict[str, Any]:
    cost, caches = plan.offload, cache_use(plan.spec, required=True)
    offloaded = plan.host_cache
    return {
        "namespace": plan.namespace,
        "name": plan.name,
        "answer": plan.answer.value,
        "impossible": list(plan.impossible),
        "sizesNotListed": list(plan.unlisted),
        "asWritten": [_placement(placement) for placement in plan.named],
        "sizes": [_choice(choice) for choice in plan.choices],
        **({"nodeCounts": [_node_choice(choice) for choice in plan.node_choices]} if plan.node_choices else {}),
        "loadTimes": [_load(load) for load in plan.loads],
        "startupBudgetSeconds": plan.spec.startup_budget_seconds,
        "offload": None
        if cost is None
        else {"bytes": cost.missing, "secondsPerStep": round(cost.seconds_per_step, 3), "advised": cost.advised},
        "kvCacheOffload": None
        if offloaded is None
        else {"bytes": offloaded.size, "tokens": offloaded.tokens, "tokensPerSecond": offloaded.tokens_per_second},
        "compileCaches": None
        if caches is None
        else {"used": caches.status == "True", "reason": caches.reason.value, "message": caches.message},
        **_adapters(plan.adapters),
        "facts": as_json(plan.facts),
    }


def _adapters(adapters: tuple[StagedAdapter, ...]) -> dict[str, Any]:
    """{"adapters": ...} where a staged folder was named and the manifest has adapters."""
    listed = [
        {
            "name": adapter.name,
            "rank": adapter.declared,
            "neededRank": adapter.needed,
            "problems": list(adapter.problems),
            "unread": adapter.unread or None,
        }
        for adapter in adapters
    ]
    return {"adapters": listed} if listed else {}


def _placement(placement: Placement) -> dict[str, Any]:
    return {
        **_size(placement.size),
        "gpu": placement.fit.gpu.name,
        "answer": placement.answer.value,
        "objections": list(placement.objections),
        **_fit(placement.fit),
    }


def _choice(choice: Choice) -> dict[str, Any]:
    computed = {} if choice.fit is None else {"gpu": choice.fit.gpu.name, **_fit(choice.fit)}
    return {**_size(choice.size), "answer": choice.answer.value, **computed}


def _node_choice(choice: NodeChoice) -> dict[str, Any]:
    return {
        **_size(choice.size),
        "answer": choice.fit.answer.value,
        "network": choice.network or None,
        "loadSeconds": round(choice.load.seconds, 1),
        "loadBound": choice.load.bound,
        "loadEstimate": choice.load.estimate,
        **_fit(choice.fit),
    }


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
        "dataParallelSize": fit.serving.data_parallel,
        **({"nodes": fit.serving.nodes} if fit.serving.nodes > 1 else {}),
        "gpuMemoryBytes": fit.memory,
        "utilizationPercent": fit.serving.utilization_percent,
        "allowedBytes": fit.allowed,
        "weightsBytes": None if fit.serving.may_shrink_weights else fit.weights,
        "overheadBytes": fit.overhead if fit.cache is not None else None,
        **({"adapterBytes": fit.adapters} if fit.serving.lora is not None and fit.cache is not None else {}),
        "encoderBytes": fit.encoder if fit.cache is not None else None,
        "stateBytes": fit.reserved if fit.cache is not None else None,
        "keyValueBytesPerToken": round(fit.cache.token_bytes) if fit.cache is not None else None,
        "keyValueBytes": fit.requested,
        "neededBytes": fit.needed,
        "contextLength": fit.context,
        "longestContext": fit.longest_context or None,
        "requestsOfThisLength": fit.full_requests,
        "notComputed": list(fit.unknown),
    }


def _load(load: Load) -> dict[str, Any]:
    return {
        "storage": load.storage.name,
        "seconds": round(load.time.seconds, 1),
        "bound": load.time.bound,
        "estimate": load.time.estimate,
        "startupBudgetSeconds": load.budget,
        "filesWanted": load.files_wanted,
    }
