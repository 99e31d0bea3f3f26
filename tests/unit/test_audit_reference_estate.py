"""The public reference deployment of the air-gapped article: every contradiction on the list has its finding."""

from __future__ import annotations

import asyncio

import pytest

from hermetic.audit.findings import Finding, Verdict, overall
from testbed.azure.reference_estate import CONTRADICTIONS, Contradiction, reference_estate
from tests.azure_audits import audited


@pytest.fixture(scope="module")
def findings() -> tuple[Finding, ...]:
    return asyncio.run(audited(reference_estate(), "graph"))


@pytest.mark.parametrize("contradiction", CONTRADICTIONS, ids=lambda one: one.sentence)
def test_every_contradiction_has_its_finding(contradiction: Contradiction, findings: tuple[Finding, ...]) -> None:
    fails = [(one.check, one.resource, one.severity.value) for one in findings if one.verdict is Verdict.FAIL]
    missing = [
        wanted for wanted in contradiction.owed(reference_estate()) if not any(wanted.is_met_by(*f) for f in fails)
    ]
    assert missing == []


def test_the_verdict_is_fail_and_every_fail_says_what_to_do(findings: tuple[Finding, ...]) -> None:
    assert overall(findings) is Verdict.FAIL
    for one in findings:
        if one.verdict is Verdict.FAIL:
            assert one.remedy
            assert one.message
            assert one.evidence
