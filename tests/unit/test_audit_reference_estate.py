"""The public reference deployment of the air-gapped article: every contradiction on the list has its finding."""

from __future__ import annotations

import asyncio

import pytest

from hermetic.audit.model.findings import Finding, Verdict, overall
from testbed.azure.reference_estate import CONTRADICTIONS, Contradiction, reference_estate
from tests.azure_audits import audited


@pytest.fixture(scope="module")
def findings() -> tuple[Finding, ...]:
    return asyncio.run(audited(reference_estate(), "graph"))


@pytest.mark.parametrize("contradiction", CONTRADICTIONS, ids=lambda claim: claim.sentence)
def test_every_contradiction_has_its_finding(contradiction: Contradiction, findings: tuple[Finding, ...]) -> None:
    fails = [
        (finding.check, finding.resource, finding.severity.value)
        for finding in findings
        if finding.verdict is Verdict.FAIL
    ]
    missing = [
        misconfiguration
        for misconfiguration in contradiction.owed(reference_estate())
        if not any(misconfiguration.is_met_by(*f) for f in fails)
    ]
    assert missing == []


def test_the_verdict_is_fail_and_every_fail_says_what_to_do(findings: tuple[Finding, ...]) -> None:
    assert overall(findings) is Verdict.FAIL
    for finding in findings:
        if finding.verdict is Verdict.FAIL:
            assert finding.remedy
            assert finding.message
            assert finding.evidence
