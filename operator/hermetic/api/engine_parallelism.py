"""The rule that the parallelism of an engine uses all GPUs of the pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hermetic.api.rules import Rule

if TYPE_CHECKING:
    from hermetic.api.modeldeployment import ModelDeploymentSpec


def gpus_are_all_used(member: Literal["vllm", "sglang"]) -> Rule:
    """For the field of `spec.engine` that holds `tensorParallelSize` and `pipelineParallelSize`."""
    engine = f"self.engine.{member}"

    def holds(spec: ModelDeploymentSpec) -> bool:
        chosen, count = getattr(spec.engine, member), spec.accelerator.count
        if chosen is None:
            return True
        tensor: int = chosen.tensor_parallel_size or count // chosen.pipeline_parallel_size
        return bool(tensor * chosen.pipeline_parallel_size == count)

    return Rule(
        cel=f"!has({engine}) || self.accelerator.count == {engine}.pipelineParallelSize * "
        f"(has({engine}.tensorParallelSize) ? {engine}.tensorParallelSize : "
        f"self.accelerator.count / {engine}.pipelineParallelSize)",
        message=f"must equal `engine.{member}.tensorParallelSize` times `pipelineParallelSize`, or be a multiple of "
        "`pipelineParallelSize` where `tensorParallelSize` is left out",
        holds=holds,
        field=".accelerator.count",
    )
