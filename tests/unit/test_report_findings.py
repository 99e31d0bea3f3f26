"""The verdict of a whole report, and the order of its findings."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.audit.model.findings import (
    AcceptedException,
    Evidence,
    Finding,
    Severity,
    Verdict,
    by_check,
    overall,
    worst_first,
)
from tests.audit_reports import a_failing_report, a_sealed_report, an_empty_report
from tests.drawn_paths import hops


def found(verdict: Verdict, severity: Severity, check: str = "peering-any") -> Finding:
    return Finding(check, "/subscriptions/1", verdict, severity)


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.HIGH])
def test_one_critical_or_high_fail_fails_the_report_whatever_else_is_there(severity):
    findings = [found(verdict, severity) for verdict in Verdict for severity in Severity if verdict is not Verdict.FAIL]
    assert overall([*findings, found(Verdict.FAIL, severity)]) is Verdict.FAIL


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.HIGH])
def test_one_critical_or_high_unknown_is_never_a_pass(severity):
    findings = [found(Verdict.PASS, severity) for severity in Severity] + [found(Verdict.FAIL, Severity.MEDIUM)]
    assert overall([*findings, found(Verdict.UNKNOWN, severity)]) is Verdict.UNKNOWN


def test_fails_and_unknowns_of_lower_severity_are_warnings():
    lower = [Severity.MEDIUM, Severity.LOW, Severity.INFO]
    assert overall([found(v, s) for v in (Verdict.FAIL, Verdict.UNKNOWN) for s in lower]) is Verdict.PASS


def test_an_accepted_fail_does_not_fail_the_report():
    assert overall([found(Verdict.EXCEPTED, Severity.CRITICAL), found(Verdict.PASS, Severity.HIGH)]) is Verdict.PASS


def test_an_audit_that_looked_at_nothing_is_unknown():
    assert an_empty_report().verdict is Verdict.UNKNOWN


def test_scenarios_are_what_they_are_called():
    assert a_failing_report().verdict is Verdict.FAIL
    assert a_sealed_report().verdict is Verdict.PASS


def test_summary_counts_every_finding_under_every_verdict():
    assert [(verdict.value, count) for verdict, count in a_failing_report().summary.items()] == [
        ("Pass", 10), ("Fail", 6), ("Unknown", 2), ("Excepted", 1), ("NotApplicable", 1),
    ]  # fmt: skip


def test_a_critical_unknown_is_told_before_a_warning():
    findings = [
        found(Verdict.PASS, Severity.CRITICAL),
        found(Verdict.FAIL, Severity.LOW),
        found(Verdict.UNKNOWN, Severity.CRITICAL),
        found(Verdict.FAIL, Severity.HIGH),
        found(Verdict.FAIL, Severity.CRITICAL),
    ]
    assert worst_first(findings) == [findings[4], findings[3], findings[2], findings[1], findings[0]]


SAID = {
    "check": ["acr-admin", "peering-any"],
    "resource": ["/subscriptions/1", "/Subscriptions/1", "/subscriptions/2"],
    "verdict": [Verdict.FAIL, Verdict.PASS],
    "severity": [Severity.HIGH, Severity.LOW],
    "message": ["", "open"],
    "paths": [(), (hops("a -> b"),), (hops("a -> c"),)],
    "evidence": [(), (Evidence("GET /1", 200),)],
    "exception": [None, AcceptedException("r", "o", "2026-12-31")],
}


@given(st.lists(st.builds(Finding, **{name: st.sampled_from(texts) for name, texts in SAID.items()})), st.randoms())
def test_findings_are_told_in_one_order_whatever_order_they_came_in(findings, chance):
    mixed = [*findings]
    chance.shuffle(mixed)
    for order in (by_check, worst_first):
        assert order(mixed) == order(findings)
    assert by_check(findings) == sorted(findings, key=_everything)


def _everything(finding: Finding) -> tuple[str, ...]:
    details = repr((finding.path_texts, finding.evidence, finding.exception))
    fields = (finding.verdict, finding.severity, finding.reason, finding.message, finding.remedy)
    return (finding.check, finding.resource.lower(), finding.resource, *fields, details)


class Unspeakable(Evidence):
    """Evidence that is never written out."""

    def __repr__(self) -> str:
        raise AssertionError("written out")


def test_findings_that_differ_in_words_are_not_written_out_to_be_told_apart():
    evidence = (Unspeakable("GET /1"),)
    findings = [replace(found(Verdict.PASS, Severity.HIGH, check), evidence=evidence) for check in ("b", "a")]
    assert (
        [finding.check for finding in by_check(findings)]
        == [finding.check for finding in worst_first(findings)]
        == ["a", "b"]
    )


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))])  # noqa: DTZ001
def test_times_of_no_zone_or_another_are_refused(moment):
    with pytest.raises(ValueError, match="UTC"):
        replace(a_failing_report(), started_at=moment)
    assert replace(a_failing_report(), started_at=datetime(2026, 1, 1, tzinfo=UTC)).started_at.year == 2026
