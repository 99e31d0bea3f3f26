"""Rules of the whole `spec` that engines ask for.

The models of the engines know nothing of the other parts of a spec. The model of the spec imports these rules, so they
take it as Any.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from hermetic.api.reserved_flags import REMOTE_CODE
from hermetic.api.rules import Rule

LEAVES_CACHE = r"^0\.([0-9]|1[0-9]|2[0-8])\."
"""Releases of vLLM that keep the offloaded cache in a file that outlives a crash, or in more memory than configured."""
MULTIPLYING = ("--d", "-d", "--p", "-p")
"""How spellings of flags begin that multiply the GPUs: --data-parallel-size, -dp, --prefill-context-parallel-size."""


def gpus_are_all_used(member: Literal["vllm", "sglang"]) -> Rule:
    """The parallelism uses all GPUs of the pod; `member` is the field that holds the parallel sizes.

    Tensor and pipeline parallel sizes are fields. Data and context parallel sizes are flags of `extraArgs`, which
    multiply them; their product is compared where flags are parsed, in `engines/flag_engine.py`. Without such a flag
    this rule is exact. `group_rules.py` has the rule of several nodes.
    """
    engine = f"self.engine.{member}"
    tensor = f"(has({engine}.tensorParallelSize) ? {engine}.tensorParallelSize : 1)"
    stages = f"(has({engine}.pipelineParallelSize) ? {engine}.pipelineParallelSize : 1)"
    group = f"{stages} * {tensor}"
    begins = " || ".join(f"argument.startsWith('{prefix}')" for prefix in MULTIPLYING)

    def holds(spec: Any) -> bool:
        chosen, count = getattr(spec.engine, member), spec.accelerator.count
        if chosen is None or spec.accelerator.nodes > 1:
            return True
        gpus: int = (chosen.tensor_parallel_size or 1) * (chosen.pipeline_parallel_size or 1)
        may_be_more = chosen.tensor_parallel_size is None or any(
            argument.startswith(MULTIPLYING) for argument in chosen.extra_args
        )
        return count == gpus or (may_be_more and count % gpus == 0)

    return Rule(
        cel=f"!has({engine}) || self.accelerator.nodes > 1 || self.accelerator.count == {group} || "
        f"(self.accelerator.count % ({group}) == 0 && "
        f"(!has({engine}.tensorParallelSize) || {engine}.extraArgs.exists(argument, {begins})))",
        message=f"must equal `engine.{member}.tensorParallelSize` times `pipelineParallelSize` times the data parallel "
        "size of `extraArgs`, or be a multiple of `pipelineParallelSize` where `tensorParallelSize` is left out",
        holds=holds,
        field=".accelerator.count",
    )


def needs_weights_in_an_image(member: Literal["vllm", "sglang"]) -> Rule:
    """Code beside the weights may run only where a digest pins it; `member` is the field that holds `extraArgs`.

    `--trust-remote-code` runs Python files of the model folder. In an image that is pinned by digest they are as fixed
    as the engine's own code; on a share, every account that may write to the share can change them.
    """
    engine = f"self.engine.{member}"

    def holds(spec: Any) -> bool:
        if getattr(spec.engine, member) is None or not spec.engine.runs_remote_code:
            return True
        return spec.weights.baked_image is not None or spec.weights.image_volume is not None

    return Rule(
        cel=f"!has({engine}) || !has({engine}.extraArgs) || !{engine}.extraArgs.exists(argument, argument == "
        f"'{REMOTE_CODE}') || has(self.weights.bakedImage) || has(self.weights.imageVolume)",
        message=f"must not hold '{REMOTE_CODE}' with weights on a share: no digest pins the code there. Put the model "
        "with its code into an image (`weights.bakedImage` or `weights.imageVolume`), or leave the flag out: engines "
        "serve many models that bring code by classes of their own",
        holds=holds,
        field=f".engine.{member}.extraArgs",
        show=f"'\\'{REMOTE_CODE}\\''",
    )


def _offloads(spec: Any, member: Literal["vllm", "nim", "sglang"]) -> bool:
    """Whether the spec asks this engine to keep a cache in the memory of the node."""
    return spec.kv_cache_offload is not None and getattr(spec.engine, member) is not None


_RULES_OF_VLLM = (
    gpus_are_all_used("vllm"),
    needs_weights_in_an_image("vllm"),
    # Source: `CPUOffloadingSpec._uses_shared_region` in vllm/v1/kv_offload/cpu/spec.py of vLLM 0.33.0, and
    # https://github.com/vllm-project/vllm/pull/50094, which measured the rounding.
    Rule(
        cel="!has(self.kvCacheOffload) || !has(self.engine.vllm) || !self.accelerator.resource.startsWith('amd.com/')",
        message="`kvCacheOffload` with engine `vllm` needs GPUs of NVIDIA: on others vLLM rounds the memory up to a "
        "power of two, and the pod would exceed its limit",
        holds=lambda spec: not _offloads(spec, "vllm") or not spec.accelerator.resource.startswith("amd.com/"),
        field=".kvCacheOffload",
    ),
    # Source: vllm/v1/kv_offload/cpu of the source distributions of 0.26.0 to 0.29.0, and
    # https://github.com/vllm-project/vllm/issues/51579.
    Rule(
        cel="!has(self.kvCacheOffload) || !has(self.engine.vllm) || "
        f"!self.engine.vllm.version.matches(r'{LEAVES_CACHE}')",
        message="`kvCacheOffload` needs vLLM 0.29 or later: before, an engine that crashed left its cache in /dev/shm, "
        "and its container could not start again; use a later image",
        holds=lambda spec: not _offloads(spec, "vllm") or not re.search(LEAVES_CACHE, spec.engine.vllm.version),
        field=".kvCacheOffload",
    ),
)

_RULES_OF_NIM = (
    Rule(
        cel="!(has(self.endpoint.apiKey) && has(self.engine.nim))",
        message="`endpoint.apiKey` needs engine `vllm` or `sglang`: a NIM does not check API keys",
        holds=lambda spec: spec.endpoint.api_key is None or spec.engine.nim is None,
        field=".endpoint.apiKey",
    ),
    Rule(
        cel="!has(self.model.aliases) || self.model.aliases.size() == 0 || has(self.engine.vllm)",
        message="`model.aliases` needs engine `vllm`: the others serve one name",
        holds=lambda spec: not spec.model.aliases or spec.engine.vllm is not None,
        field=".model.aliases",
    ),
    Rule(
        cel="!has(self.engine.nim) || !has(self.weights.bakedImage) || !has(self.engine.nim.profile)",
        message="`engine.nim.profile` needs staged weights: a baked image brings its own model folder",
        holds=lambda spec: (
            spec.engine.nim is None or spec.weights.baked_image is None or spec.engine.nim.profile is None
        ),
        field=".engine.nim.profile",
    ),
    # Source: docs.nvidia.com/nim/large-language-models/1.10.0, Release Notes (NIM_KV_CACHE_HOST_MEM_FRACTION).
    Rule(
        cel="!has(self.kvCacheOffload) || !has(self.engine.nim)",
        message="`kvCacheOffload` needs engine `vllm` or `sglang`: a NIM takes a share of the memory that is free on "
        "its node in place of a size, so that no limit of the pod could hold it",
        holds=lambda spec: not _offloads(spec, "nim"),
        field=".kvCacheOffload",
    ),
)

_RULES_OF_SGLANG = (
    gpus_are_all_used("sglang"),
    needs_weights_in_an_image("sglang"),
    Rule(
        cel="!has(self.engine.sglang) || !self.model.name.contains(':')",
        message="`model.name` must not hold ':' with engine `sglang`, which takes what is behind it for an adapter",
        holds=lambda spec: spec.engine.sglang is None or ":" not in spec.model.name,
        field=".model.name",
        show="'\\'' + self.model.name + '\\''",
    ),
    # At least 1 GiB for each GPU: SGLang takes whole gigabytes, and 0 of them mean a multiple of the GPU's own cache.
    Rule(
        cel="!has(self.kvCacheOffload) || !has(self.engine.sglang) || "
        "!self.kvCacheOffload.memory.matches('^[1-9][0-9]{0,3}Gi$') || "
        "int(self.kvCacheOffload.memory.replace('Gi', '')) >= self.accelerator.count",
        message="must be at least 1Gi for each GPU of `accelerator.count` with engine `sglang`, which divides it",
        holds=lambda spec: not _offloads(spec, "sglang") or spec.kv_cache_offload.gibibytes >= spec.accelerator.count,
        field=".kvCacheOffload.memory",
        show="'\\'' + self.kvCacheOffload.memory + '\\''",
    ),
)

ENGINE_RULES: tuple[Rule, ...] = (*_RULES_OF_VLLM, *_RULES_OF_NIM, *_RULES_OF_SGLANG)
