"""Rules of replicas of several nodes, which are groups of pods: of the whole `spec`, and of the object.

As those of `engine_rules.py` they take the spec as Any, for its model imports them.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from hermetic.api.field_types import name_of
from hermetic.api.rules import Rule

LONGEST_NAME = 42
"""A label of each pod holds the name of its StatefulSet, with '-group-255', and 11 characters more, in 63."""
GROUP_PORTS = (20000, 20064)
"""Where SGLang meets, and ports that it derives from that (`PortArgs` in sglang/srt/server_args.py of 0.5.23)."""
ADDRESS_PORTS = (29500, 29501)
"""Where the head serves its address, and where vLLM meets."""
MOST_PODS = 256
"""Pods of one model, as many as without groups: what is read of the pods of a model is bounded (kube/pod_bounds.py)."""
NOT_IN_GROUPS = (
    "must not be set with several `accelerator.nodes`: ranks of a group get no such size; use more `replicas`"
)
"""What messages say of data parallel sizes and of other flags that a group has no ranks for."""
_DATA_PARALLEL = r"^(--data[-_]parallel|-dp|--prefill[-_]context[-_]parallel|-pcp|--api[-_]server[-_]count|-asc)"
_SEVERAL = "self.accelerator.nodes > 1"


def _is_group(spec: Any) -> bool:
    return bool(spec.accelerator.nodes > 1)


def _sizes_are_those_of_the_group(member: Literal["vllm", "sglang"]) -> Rule:
    """Tensor times pipeline parallel size are the GPUs of all nodes; `member` is the field that holds them."""
    engine, gpus = f"self.engine.{member}", "self.accelerator.count * self.accelerator.nodes"
    stages = f"(has({engine}.pipelineParallelSize) ? {engine}.pipelineParallelSize : self.accelerator.nodes)"

    def holds(spec: Any) -> bool:
        chosen = getattr(spec.engine, member)
        if chosen is None or not _is_group(spec):
            return True
        pipeline, total = chosen.pipeline_parallel_size or spec.accelerator.nodes, spec.accelerator.gpus
        if chosen.tensor_parallel_size is None:
            return bool(total % pipeline == 0)
        return bool(chosen.tensor_parallel_size * pipeline == total)

    return Rule(
        cel=f"!has({engine}) || !({_SEVERAL}) || (has({engine}.tensorParallelSize) ? {engine}.tensorParallelSize * "
        f"{stages} == {gpus} : {gpus} % {stages} == 0)",
        message=f"times `accelerator.count` must equal `engine.{member}.tensorParallelSize` times "
        "`pipelineParallelSize`, or be a multiple of `pipelineParallelSize` where `tensorParallelSize` is left out",
        holds=holds,
        field=".accelerator.nodes",
    )


def _refused(other: str, holds_without: Any, field: str, why: str) -> Rule:
    """A rule that refuses several nodes where the CEL expression `other` is true."""
    return Rule(
        cel=f"!({_SEVERAL}) || !({other})",
        message=f"must not be used with several `accelerator.nodes`: {why}",
        holds=lambda spec: not _is_group(spec) or holds_without(spec),
        field=field,
    )


def _no_port_of_the_group(spec: Any) -> bool:
    port = spec.endpoint.port
    return not any(first <= port <= last for first, last in (GROUP_PORTS, ADDRESS_PORTS))


def _has_stages_of_whole_nodes(spec: Any) -> bool:
    sglang, nodes = spec.engine.sglang, spec.accelerator.nodes
    if sglang is None:
        return True
    stages = sglang.pipeline_parallel_size
    return bool(nodes % stages == 0 or stages % nodes == 0)


def _has_no_data_parallel_flag(spec: Any) -> bool:
    vllm = spec.engine.vllm
    return vllm is None or not any(re.search(_DATA_PARALLEL, argument) for argument in vllm.extra_args)


GROUP_RULES: tuple[Rule, ...] = (
    _sizes_are_those_of_the_group("vllm"),
    _sizes_are_those_of_the_group("sglang"),
    # Source: `_calculate_rank_ranges` in sglang/srt/entrypoints/engine.py of 0.5.23, which rounds down silently.
    Rule(
        cel=f"!has(self.engine.sglang) || !({_SEVERAL}) || "
        "self.accelerator.nodes % self.engine.sglang.pipelineParallelSize == 0 || "
        "self.engine.sglang.pipelineParallelSize % self.accelerator.nodes == 0",
        message="must be a divisor or a multiple of `accelerator.nodes`: SGLang gives each node whole stages, or each "
        "stage whole nodes",
        holds=lambda spec: not _is_group(spec) or _has_stages_of_whole_nodes(spec),
        field=".engine.sglang.pipelineParallelSize",
    ),
    Rule(
        cel=f"!has(self.engine.vllm) || !has(self.engine.vllm.extraArgs) || !({_SEVERAL}) || "
        f"!self.engine.vllm.extraArgs.exists(argument, argument.matches(r'{_DATA_PARALLEL}'))",
        message=f"a data parallel size, a prefill context parallel size and a number of API servers {NOT_IN_GROUPS}",
        holds=lambda spec: not _is_group(spec) or _has_no_data_parallel_flag(spec),
        field=".engine.vllm.extraArgs",
    ),
    # Sources: docs.nvidia.com, NIM for LLMs, Multi-Node Deployment (1.x: MPI over ssh; 2.x: Ray with ports at random).
    _refused(
        "has(self.engine.nim)",
        lambda spec: spec.engine.nim is None,
        ".engine.nim",
        "a NIM starts its other nodes over ssh or by Ray, on ports that no NetworkPolicy could name; engine `vllm` or "
        "`sglang` does without",
    ),
    _refused(
        "has(self.autoscaling)",
        lambda spec: spec.autoscaling is None,
        ".autoscaling",
        "each replica is an object of its own, and a HorizontalPodAutoscaler scales the pods of one; set `replicas`",
    ),
    _refused(
        "has(self.rollout) && self.rollout == 'Surge'",
        lambda spec: spec.rollout == "Replace",
        ".rollout",
        "the pods of a replica stop before their successors start; with 2 `replicas` or more the others serve",
    ),
    _refused(
        "has(self.kvCacheOffload)",
        lambda spec: spec.kv_cache_offload is None,
        ".kvCacheOffload",
        "engines divide that memory over the GPUs of all nodes, and no limit of one pod would hold it",
    ),
    Rule(
        cel=f"!({_SEVERAL}) || self.replicas * self.accelerator.nodes <= {MOST_PODS}",
        message=f"times `accelerator.nodes` must be at most {MOST_PODS}: that many pods has a model at most",
        holds=lambda spec: not _is_group(spec) or spec.replicas * spec.accelerator.nodes <= MOST_PODS,
        field=".replicas",
    ),
    _refused(
        f"(self.endpoint.port >= {GROUP_PORTS[0]} && self.endpoint.port <= {GROUP_PORTS[1]}) || "
        f"(self.endpoint.port >= {ADDRESS_PORTS[0]} && self.endpoint.port <= {ADDRESS_PORTS[1]})",
        _no_port_of_the_group,
        ".endpoint.port",
        f"the pods of a replica meet on ports {GROUP_PORTS[0]} to {GROUP_PORTS[1]} or {ADDRESS_PORTS[0]} and "
        f"{ADDRESS_PORTS[1]}; take another",
    ),
)

GROUP_NAME_RULE = Rule(
    cel=f"!({_SEVERAL.replace('self.', 'self.spec.')}) || self.metadata.name.size() <= {LONGEST_NAME}",
    holds=lambda deployment: not _is_group(deployment.spec) or len(name_of(deployment.metadata)) <= LONGEST_NAME,
    message=f"must have at most {LONGEST_NAME} characters with several `spec.accelerator.nodes`: a label of each pod "
    "holds it with 21 more",
    field=".metadata.name",
    show="'\\'' + self.metadata.name + '\\''",
)
