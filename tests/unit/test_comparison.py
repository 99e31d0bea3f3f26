"""What changed since an earlier report: nothing is removed that was only not asked."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.report.json_form import as_json, document
from hermetic.audit.report.table import as_table
from hermetic.audit.result.comparison import NotABaseline, compare, read_baseline, same_cluster
from hermetic.audit.result.report import State
from tests.audit_reports import a_failing_report, a_sealed_report, pages


def one(check: str, resource: str, verdict: Verdict, severity: Severity = Severity.HIGH) -> Finding:
    return Finding(check, resource, verdict, severity)


def changes(before: tuple[Finding, ...], now: tuple[Finding, ...], **fields: object) -> list[tuple[str, str]]:
    plain = replace(a_failing_report(), not_asked={}, notes=())
    earlier = replace(plain, findings=before, **fields)  # type: ignore[arg-type]
    comparison = compare(read_baseline(as_json(earlier, pages()).encode()), replace(plain, findings=now))
    return [(change.kind, change.check) for change in comparison.changes]


def test_a_report_against_itself_has_no_change():
    report = a_failing_report()
    comparison = compare(read_baseline(as_json(report, pages()).encode()), report)
    assert (comparison.changes, comparison.not_compared) == ((), ())


def test_findings_are_added_removed_and_changed():
    before = (one("a", "/1", Verdict.FAIL), one("b", "/1", Verdict.PASS), one("c", "/1", Verdict.FAIL))
    now = (one("b", "/1", Verdict.FAIL), one("c", "/1", Verdict.FAIL, Severity.LOW), one("d", "/1", Verdict.UNKNOWN))
    assert changes(before, now) == [("removed", "a"), ("changed", "b"), ("changed", "c"), ("added", "d")]


def test_ids_in_another_case_are_the_same_resource():
    assert changes((one("a", "/Subscriptions/1", Verdict.FAIL),), (one("a", "/subscriptions/1", Verdict.FAIL),)) == []


@pytest.mark.parametrize("asked_now", [True, False])
def test_a_check_that_one_audit_did_not_ask_is_not_compared(asked_now):
    kube, plain = one("k8s-public-lb", "v1/Service a/b", Verdict.FAIL), replace(a_sealed_report(), findings=())
    with_kube, unasked = (
        replace(plain, findings=(kube,), not_asked={}),
        replace(plain, not_asked={"kube": (kube.check,)}),
    )
    before, now = (unasked, with_kube) if asked_now else (with_kube, unasked)
    comparison = compare(read_baseline(as_json(before, pages()).encode()), now)
    assert (comparison.changes, comparison.not_compared) == ((), (kube.check,))


def test_a_new_pass_is_no_news_for_a_person_and_stays_in_the_json():
    plain = replace(a_sealed_report(), findings=())
    report = replace(plain, findings=(one("a", "/1", Verdict.PASS),))
    comparison = compare(read_baseline(as_json(plain, pages()).encode()), report)
    assert comparison.that_matter == []
    shown = document(replace(report, comparison=comparison), pages())["baseline"]
    assert shown["added"] == [{"check": "a", "resource": "/1", "verdict": "Pass", "severity": "high"}]
    assert list(shown) == [
        "sha256", "finishedAt", "verdict", "profile", "added", "removed", "changed", "notCompared",
    ]  # fmt: skip


def test_the_table_says_from_what_to_what():
    sealed, failing = a_sealed_report(), a_failing_report()
    report = replace(failing, comparison=compare(read_baseline(as_json(sealed, pages()).encode()), failing))
    text = as_table(report, pages())
    assert "Since 2026-11-24T12:01:14Z (then Pass)" in text
    assert "  added: Fail critical: subnet-nat-gateway subnet vnet-spoke/snet-pods" in text


def test_a_baseline_with_two_findings_of_one_resource_counts_the_worse():
    report = replace(a_sealed_report(), findings=(one("a", "/1", Verdict.PASS), one("a", "/1", Verdict.FAIL)))
    ((_, state),) = read_baseline(as_json(report, pages()).encode()).states.values()
    assert state == State(Verdict.FAIL, Severity.HIGH)


def test_reports_of_other_tools_and_broken_ones_are_refused_with_the_reason():
    complete = document(a_failing_report(), pages())
    for damage, says in (
        ({"verdict": "Excepted"}, "verdict"),
        ({"finishedAt": "yesterday"}, "finishedAt"),
        ({"findings": [{"check": "a"}]}, "findings.0.resource"),
        ({"notAsked": None}, "notAsked"),
    ):
        with pytest.raises(NotABaseline, match=says):
            read_baseline(json.dumps(complete | damage).encode())


def test_a_byte_order_mark_and_utf_16_are_read():
    text = as_json(a_sealed_report(), pages())
    for encoding in ("utf-8-sig", "utf-16"):
        assert read_baseline(text.encode(encoding)).verdict is Verdict.PASS


def test_clusters_are_compared_without_case_and_trailing_slash():
    baseline = read_baseline(as_json(a_failing_report(), pages()).encode())
    assert same_cluster(baseline, a_failing_report().cluster.upper() + "/")
    assert not same_cluster(baseline, a_failing_report().cluster + "-2")
