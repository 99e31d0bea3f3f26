"""The one place that chooses an engine."""

from __future__ import annotations

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines import nim, vllm
from hermetic.engines.launch import Launch


def launch(spec: ModelDeploymentSpec) -> Launch:
    """How the engine of this spec is started; the spec has exactly one (the union rule says so)."""
    if spec.engine.vllm is not None:
        return vllm.launch(spec, spec.engine.vllm)
    assert spec.engine.nim is not None  # noqa: S101 - guarded by the union rule of Engine
    return nim.launch(spec, spec.engine.nim)


def image(spec: ModelDeploymentSpec) -> str:
    """The serving image, by digest."""
    engine = spec.engine.vllm or spec.engine.nim
    assert engine is not None  # noqa: S101 - guarded by the union rule of Engine
    return engine.image


def engine_name(spec: ModelDeploymentSpec) -> str:
    """The engine as people write it."""
    return "vLLM" if spec.engine.vllm is not None else "NIM"


def ready_path(spec: ModelDeploymentSpec) -> str:
    """The path on which the engine says that it serves, of whichever version it is."""
    return vllm.READY_PATH if spec.engine.vllm is not None else nim.READY_PATH


def tensor_parallel_size(spec: ModelDeploymentSpec) -> int:
    """GPUs that share each layer; a NIM's profile decides for itself, all GPUs of the pod at most."""
    if spec.engine.vllm is not None:
        return vllm.tensor_parallel_size(spec, spec.engine.vllm)
    return spec.accelerator.count
