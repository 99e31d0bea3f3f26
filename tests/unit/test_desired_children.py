"""The children of a generation are rendered once, and again as soon as another input of theirs changes."""

from __future__ import annotations

import copy
from dataclasses import replace

from hermetic.api.configuration import Configuration
from hermetic.plan.desired_children import SpecRendering, desired_children
from hermetic.plan.planning import plan
from tests.planning import running
from tests.scenarios import a_share_model
from tests.snapshots import NOW, OWNER, a_snapshot, spec_of

SPEC = spec_of(a_share_model())
VERIFIER = f"contoso.azurecr.io/hermetic@sha256:{'ab' * 32}"


def verifying() -> Configuration:
    return Configuration.model_validate({"integrity": {"verifiers": [VERIFIER], "minimumPolicy": "Warn"}})


def test_the_children_of_the_same_inputs_are_rendered_once() -> None:
    rendering, snapshot = SpecRendering(SPEC), a_snapshot()
    first = rendering.children(snapshot)
    assert rendering.children(replace(snapshot, generation=7, status={"conditions": []})) is first
    assert first == desired_children(SPEC, snapshot)


def test_a_changed_input_renders_them_again() -> None:
    rendering, snapshot = SpecRendering(SPEC), a_snapshot()
    rendering.children(snapshot)
    other_children = (
        replace(snapshot, owner=replace(OWNER, uid="another")),
        replace(snapshot, policy=verifying()),
        replace(snapshot, policy=Configuration.model_validate({"podRanges": ["10.244.0.0/16"]})),
    )
    for other in other_children:
        assert rendering.children(other) == desired_children(SPEC, other)
        assert rendering.children(other) != desired_children(SPEC, snapshot)


def test_a_plan_with_an_earlier_rendering_is_the_plan_without_one_and_leaves_it_as_it_is() -> None:
    manifest = a_share_model()
    rendering = SpecRendering(SPEC)
    for snapshot in (a_snapshot(), running(manifest), replace(running(manifest), policy=verifying())):
        before = copy.deepcopy(rendering.children(snapshot))
        assert plan(SPEC, snapshot, NOW, rendering) == plan(SPEC, snapshot, NOW)
        assert rendering.children(snapshot) == before
