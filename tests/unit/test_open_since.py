"""Since when a finding fails: only what an earlier report shows, and the newest that knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from hermetic.audit.model.findings import AcceptedException, Finding, Severity, Verdict
from hermetic.audit.report.json_form import as_json, document
from hermetic.audit.report.page import as_html
from hermetic.audit.report.table import as_table
from hermetic.audit.result.comparison import Baseline, NotABaseline, read_baseline
from hermetic.audit.result.open_since import Opening, openings_of
from hermetic.audit.result.report import Report
from tests.audit_reports import FINISHED, a_failing_report, pages

CHECK, SUBNET = "subnet-nat-gateway", "/subscriptions/1/resourceGroups/g/providers/N/virtualNetworks/v/subnets/S"
THEN, EARLIER = FINISHED - timedelta(days=1), FINISHED - timedelta(days=30)
TIME_THEN, TIME_EARLIER, TIME_NOW = "2026-11-23T12:01:14Z", "2026-10-25T12:01:14Z", "2026-11-24T12:01:14Z"


def a_finding(verdict: Verdict, resource: str = SUBNET) -> Finding:
    return Finding(CHECK, resource, verdict, Severity.CRITICAL)


def a_report(*findings: Finding, **fields: object) -> Report:
    plain = replace(a_failing_report(), findings=findings, not_asked={}, notes=())
    return replace(plain, **fields)  # type: ignore[arg-type]


def stored(report: Report) -> Baseline:
    return read_baseline(as_json(report, pages()).encode())


def opening(*earlier: Report) -> Opening | None:
    """What these reports show about the finding that fails now."""
    openings = openings_of([a_finding(Verdict.FAIL)], FINISHED, map(stored, earlier))
    return openings.get((CHECK, SUBNET.lower()))


def test_without_an_earlier_report_it_is_not_known():
    assert opening() is None


def test_a_finding_that_failed_then_fails_since_then_or_earlier():
    failed = a_report(a_finding(Verdict.FAIL, SUBNET.upper()), finished_at=THEN)
    assert opening(failed) == Opening(TIME_THEN)
    assert Opening(TIME_THEN).phrase == f"since {TIME_THEN} or earlier"


def test_a_finding_that_passed_then_began_between_both_audits():
    passed = a_report(a_finding(Verdict.PASS), finished_at=THEN)
    assert opening(passed) == Opening(TIME_NOW, TIME_THEN)
    assert Opening(TIME_NOW, TIME_THEN).phrase == f"since a time between {TIME_THEN} and {TIME_NOW}"


def test_a_check_that_was_not_asked_or_not_decided_shows_nothing():
    other = a_finding(Verdict.UNKNOWN, "/another")
    assert opening(a_report(a_finding(Verdict.PASS), other, finished_at=THEN)) is None
    assert opening(a_report(finished_at=THEN)) is None
    assert opening(a_report(not_asked={"azure": (CHECK,)}, finished_at=THEN)) is None


def test_a_report_passes_on_what_the_reports_before_it_showed():
    key = (CHECK, SUBNET.lower())
    before = a_report(a_finding(Verdict.FAIL), finished_at=THEN, openings={key: Opening(TIME_EARLIER)})
    assert document(before, pages())["openSince"] == [{"check": CHECK, "resource": SUBNET, "since": TIME_EARLIER}]
    assert opening(before) == Opening(TIME_EARLIER)


def test_of_reports_that_contradict_each_other_the_newest_decides():
    failed = a_report(a_finding(Verdict.FAIL), finished_at=EARLIER)
    passed = a_report(a_finding(Verdict.PASS), finished_at=THEN)
    assert opening(passed, failed) == opening(failed, passed) == Opening(TIME_NOW, TIME_THEN)


def test_a_report_that_is_not_older_shows_nothing():
    assert opening(a_report(a_finding(Verdict.FAIL), finished_at=FINISHED)) is None


def test_an_accepted_fail_has_a_begin_and_a_pass_has_none():
    accepted = AcceptedException("by design", "network", "2027-01-01", Verdict.FAIL)
    excepted = replace(a_finding(Verdict.EXCEPTED), exception=accepted)
    earlier = stored(a_report(a_finding(Verdict.FAIL), finished_at=THEN))
    assert list(openings_of([excepted], FINISHED, [earlier]).values()) == [Opening(TIME_THEN)]
    assert openings_of([a_finding(Verdict.PASS)], FINISHED, [earlier]) == {}


def test_table_and_page_show_it_or_say_that_it_is_not_known():
    key = (CHECK, SUBNET.lower())
    report = a_report(a_finding(Verdict.FAIL), openings={key: Opening(TIME_THEN)})
    for form in (as_table, as_html):
        text = " ".join(form(report, pages()).split())
        assert f"Failing since {TIME_THEN} or earlier." in text
        unknown = " ".join(form(replace(report, openings={}), pages()).split())
        assert "Since when is not known: no earlier report shows it." in unknown


def test_a_damaged_time_is_no_report():
    report = json.loads(as_json(a_report(a_finding(Verdict.FAIL)), pages()))
    report["openSince"] = [{"check": CHECK, "resource": SUBNET, "since": "<yesterday>"}]
    assert _refusal(report).startswith("`openSince.0.since`")


def _refusal(report: Mapping[str, object]) -> str:
    try:
        read_baseline(json.dumps(report).encode())
    except NotABaseline as error:
        return str(error)
    return ""
