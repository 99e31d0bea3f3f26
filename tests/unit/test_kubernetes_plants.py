"""Every Kubernetes plant on the sealed cluster: found as expected, and nothing else is wrong at critical or high."""

from __future__ import annotations

import copy

import pytest

from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.result.run import evaluate
from testbed.kubernetes_plants import PLANTS
from tests.kubernetes_estates import POLICY, estate, sealed_cluster

URGENT = {"critical", "high"}
FINE = {Verdict.PASS, Verdict.NOT_APPLICABLE}


def objections(findings: tuple[Finding, ...]) -> list[Finding]:
    """What is wrong or not known."""
    return [finding for finding in findings if finding.verdict not in FINE]


def test_the_sealed_cluster_is_clean() -> None:
    assert objections(evaluate(estate(sealed_cluster()), POLICY)) == []


@pytest.mark.parametrize("name", sorted(PLANTS))
def test_what_is_planted_is_found_and_nothing_else(name: str) -> None:
    plant, manifests = PLANTS[name], copy.deepcopy(sealed_cluster())
    expected = plant.into(manifests)
    objections_found = objections(evaluate(estate(manifests), POLICY))
    found_keys = {
        (finding.check, finding.resource, finding.severity.value, finding.verdict.value) for finding in objections_found
    }
    assert (expected.check, expected.resource, expected.severity, expected.verdict) in found_keys
    alarms = {finding.check for finding in objections_found if finding.severity.value in URGENT}
    assert alarms <= {expected.check} | plant.also


def test_every_plant_says_what_it_opens_and_where_that_is_documented() -> None:
    assert all(plant.title and plant.source for plant in PLANTS.values())
