"""Every engine that people can type is one that the product knows, in every place that names engines."""

from __future__ import annotations

from typing import get_args

import pytest

from hermetic.api.configuration import Configuration
from hermetic.api.engine import MEMBERS, Engine
from hermetic.api.engine_caches import EngineCaches
from hermetic.engines.compile_caches import FOLDERS, cache_key
from hermetic.engines.registry import ENGINES, engine_of, launch
from tests.renderings import RENDERINGS
from tests.scenarios import changed
from tests.snapshots import spec_of


def test_the_fields_of_the_spec_are_the_engines_of_the_registry():
    assert set(MEMBERS) == set(Engine.model_fields) == set(ENGINES)
    assert all(engine.member == member for member, engine in ENGINES.items())
    assert len({engine.name for engine in ENGINES.values()}) == len(ENGINES)


@pytest.mark.parametrize("member", MEMBERS)
def test_every_engine_can_be_named_in_the_configuration_and_says_its_release(member):
    allowed = {"engine": member, "variables": ["A_NAME"], "namespaces": ["*"]}
    assert Configuration.model_validate({"engineSettings": [allowed]}).engine_settings[0].engine == member
    assert ENGINES[member].release_field in type(chosen(member)).model_fields


@pytest.mark.parametrize("member", MEMBERS)
def test_every_engine_is_rendered_somewhere(member):
    assert chosen(member).image


def test_the_engines_whose_caches_can_be_staged_are_those_of_their_key():
    assert set(FOLDERS) == set(get_args(EngineCaches.model_fields["engine"].annotation))


@pytest.mark.parametrize("member", MEMBERS)
def test_every_engine_starts_on_a_gpu_that_is_known_with_a_key_of_its_caches_or_a_reason(member):
    spec = spec_of(changed(a_shape_of(member), accelerator={"count": 8, "instanceTypes": ["Standard_ND96isr_H100_v5"]}))
    key = ENGINES[member].cache_key(spec)
    assert key
    assert isinstance(key, EngineCaches if member in FOLDERS else str)
    assert launch(spec).image == spec.engine.chosen.image


@pytest.mark.parametrize("member", sorted(set(MEMBERS) - FOLDERS.keys()))
def test_caches_of_an_engine_of_which_none_are_known_are_refused_with_a_reason(member):
    spec = spec_of(a_shape_of("vllm"))
    assert member in cache_key(member, "1.0.0", ENGINES["vllm"].serving(spec), spec.accelerator)


def a_shape_of(member: str):
    """The first shape with this engine."""
    shapes = [manifest for manifest in RENDERINGS.values() if member in manifest["spec"]["engine"]]
    assert shapes, f"tests/renderings.py has no shape with engine {member}"
    return shapes[0]


def chosen(member: str):
    """What the first rendering of this engine says of it."""
    spec = spec_of(a_shape_of(member))
    assert engine_of(spec) is ENGINES[member]
    return spec.engine.chosen
