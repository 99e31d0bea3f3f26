"""Every engine that people can type is one that the product knows, in every place that names engines."""

from __future__ import annotations

import pytest

from hermetic.api.configuration import Configuration
from hermetic.api.engine import MEMBERS, Engine
from hermetic.engines.registry import ENGINES, engine_of
from tests.renderings import RENDERINGS
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


def chosen(member: str):
    """What the first rendering of this engine says of it."""
    specs = (spec_of(manifest) for manifest in RENDERINGS.values() if member in manifest["spec"]["engine"])
    spec = next(specs)
    assert engine_of(spec) is ENGINES[member]
    return spec.engine.chosen
