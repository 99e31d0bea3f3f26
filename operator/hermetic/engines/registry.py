"""Every engine, by its field of `spec.engine`. A new one: a folder, its model in `api/`, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hermetic.api.engine import Member
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.launch import Launch
from hermetic.engines.nim import NIM
from hermetic.engines.protocol import EngineAdapter
from hermetic.engines.sglang import SGLANG
from hermetic.engines.vllm import VLLM
from hermetic.sizing.serving import Serving

ENGINES: Mapping[Member, EngineAdapter] = MappingProxyType({engine.member: engine for engine in (VLLM, NIM, SGLANG)})


def engine_of(spec: ModelDeploymentSpec) -> EngineAdapter:
    """The engine of this spec, which has exactly one by the union rule."""
    return ENGINES[spec.engine.member]


def launch(spec: ModelDeploymentSpec) -> Launch:
    """How the engine of this spec is started."""
    return engine_of(spec).launch(spec)


def image(spec: ModelDeploymentSpec) -> str:
    """The serving image, by digest."""
    return spec.engine.chosen.image


def engine_name(spec: ModelDeploymentSpec) -> str:
    """The engine's name in the status."""
    return engine_of(spec).name


def ready_path(spec: ModelDeploymentSpec) -> str:
    """The path that answers 200 once the engine serves, in every version."""
    return engine_of(spec).ready_path


def serving(spec: ModelDeploymentSpec) -> Serving:
    """The settings of the spec that decide how much memory the engine takes on each GPU."""
    return engine_of(spec).serving(spec)


def tensor_parallel_size(spec: ModelDeploymentSpec) -> int:
    """GPUs that share each layer; for a NIM, whose profile decides, all GPUs of the pod as an upper bound."""
    return engine_of(spec).tensor_parallel_size(spec)
