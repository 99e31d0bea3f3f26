"""Every engine, by its field of `spec.engine`. A new one: a folder, its model in `api/`, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hermetic.api.engine import Member
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.flag_engine import FlagEngine
from hermetic.engines.launch import Launch
from hermetic.engines.nim import NIM
from hermetic.engines.nim.profiles import read_profile
from hermetic.engines.protocol import EngineAdapter
from hermetic.engines.sglang import SGLANG
from hermetic.engines.vllm import VLLM

ENGINES: Mapping[Member, EngineAdapter] = MappingProxyType({engine.member: engine for engine in (VLLM, NIM, SGLANG)})

FLAG_ENGINES: Mapping[str, FlagEngine] = MappingProxyType({engine.member: engine for engine in (VLLM, SGLANG)})
"""The engines that are started with flags of a table."""


def gpus_of_profile(profile: str) -> int | None:
    """The GPUs that a NIM profile of this name is for; None where the name does not say it."""
    shape = read_profile(profile)
    return shape.count if shape is not None else None


def engine_of(spec: ModelDeploymentSpec) -> EngineAdapter:
    """The engine of this spec, which has exactly one by the union rule."""
    return ENGINES[spec.engine.member]


def launch(spec: ModelDeploymentSpec) -> Launch:
    """How the engine of this spec is started."""
    return engine_of(spec).launch(spec)
