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

ENGINES: Mapping[Member, EngineAdapter] = MappingProxyType({engine.member: engine for engine in (VLLM, NIM, SGLANG)})


def engine_of(spec: ModelDeploymentSpec) -> EngineAdapter:
    """The engine of this spec, which has exactly one by the union rule."""
    return ENGINES[spec.engine.member]


def launch(spec: ModelDeploymentSpec) -> Launch:
    """How the engine of this spec is started."""
    return engine_of(spec).launch(spec)
