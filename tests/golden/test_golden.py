"""What is rendered, as text that was read and agreed to; `python -m tests.golden.update` writes it anew."""

from __future__ import annotations

import pytest
import yaml

from tests.golden.scenarios import FOLDER, SCENARIOS, TEMPLATES, as_text, file_of, template_digests
from tests.kubernetes_models import MODELS
from tests.pod_security import violations

every_scenario = pytest.mark.parametrize("name", list(SCENARIOS))


@every_scenario
def test_what_is_rendered_is_what_was_agreed_to(name):
    assert as_text(SCENARIOS[name]) == file_of(name).read_text(), (
        "read the difference, then run: python -m tests.golden.update"
    )


@every_scenario
def test_agreed_text_is_of_objects_that_kubernetes_accepts_and_pods_that_are_restricted(name):
    children = list(yaml.safe_load_all(file_of(name).read_text()))
    for child in children:
        if child["kind"] in MODELS:
            MODELS[child["kind"]].model_validate(child)
    assert violations(children[-1]["spec"]["template"]["spec"]) == []


@pytest.mark.parametrize("name", list(template_digests()))
def test_pods_of_users_are_not_replaced_by_an_upgrade(name):
    """A change here restarts everybody's pods with the next upgrade of the operator: say so in the release notes."""
    agreed = yaml.safe_load(TEMPLATES.read_text())
    assert name in agreed, "a new shape: run python -m tests.golden.update"
    assert template_digests()[name] == agreed[name]


def test_no_file_is_left_of_a_scenario_that_is_gone():
    kept = {file_of(name) for name in SCENARIOS} | {TEMPLATES}
    assert set(FOLDER.glob("*.yaml")) == kept
