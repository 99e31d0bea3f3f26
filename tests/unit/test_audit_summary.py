"""A summary is no better than its reports: age, expired exceptions and contradictions count on its day."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.times import timestamp
from hermetic.audit.checks.registry import PAGES
from hermetic.audit.summary.cluster_result import StoredReport
from hermetic.audit.summary.forms import FORMS, lines
from hermetic.audit.summary.summary import Summary, summarize
from hermetic.cli.audit.summaries import ENDINGS
from tests.commandline import Ran, hermetic
from tests.scenarios import CLUSTER

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
SUBNET = f"{CLUSTER.partition('/providers/')[0]}/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes"
EXCEPTION = {"reason": "agreed", "owner": "network", "expiry": "2026-11-24", "accepted": "Fail"}


def a_finding(verdict: str = "Pass", check: str = "subnet-nat-gateway", **more: Any) -> dict[str, Any]:
    return {"check": check, "resource": SUBNET, "verdict": verdict, "severity": "critical", **more}


def a_report(*findings: dict[str, Any], cluster: str = CLUSTER, verdict: str = "Pass", **more: Any) -> dict[str, Any]:
    counted = Counter(finding["verdict"] for finding in findings)
    verdicts = ("Pass", "Fail", "Unknown", "Excepted", "NotApplicable")
    return {
        "schema": "hermetic.dev/audit/v1",
        "cluster": cluster,
        "sources": ["azure"],
        "profile": "sealed",
        "startedAt": "2026-11-24T11:00:00Z",
        "finishedAt": "2026-11-24T11:01:00Z",
        "verdict": verdict,
        "notAsked": {},
        "summary": {name: counted[name] for name in verdicts},
        "findings": list(findings),
        **more,
    }


def summary_of(*reports: dict[str, Any], now: datetime = NOW) -> Summary:
    stored = [StoredReport(json.dumps(report).encode(), f"{number}.json") for number, report in enumerate(reports)]
    return summarize(stored, PAGES, now=now, max_age=timedelta(hours=24))


def test_a_fresh_pass_is_a_pass() -> None:
    assert summary_of(a_report(a_finding())).verdict == "Pass"


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=45), "45 s"),
        (timedelta(seconds=119), "1 min"),
        (timedelta(hours=5, minutes=59), "5 h"),
        (timedelta(hours=47), "47 h"),
        (timedelta(days=3, hours=5), "3 d"),
    ],
)
def test_age_of_evidence_is_in_the_largest_unit_that_it_fills(age: timedelta, text: str) -> None:
    started = datetime(2026, 11, 24, 11, 0, tzinfo=UTC)
    summary = summary_of(a_report(a_finding()), now=started + age)
    (row,) = [
        line for line in lines(summary) if CLUSTER.rpartition("/")[2] in line and "  " in line and ":" not in line
    ]
    assert f"  {text}  " in row


@pytest.mark.parametrize(
    ("now", "report", "verdict", "doubt"),
    [
        (NOW + timedelta(hours=23, minutes=1), a_report(a_finding()), "Unknown", "is 24 h old"),
        (NOW - timedelta(hours=2), a_report(a_finding()), "Unknown", "from the future"),
        (NOW + timedelta(days=90), a_report(a_finding("Fail"), verdict="Fail"), "Fail", ""),
        (NOW, a_report(a_finding("Excepted", exception=EXCEPTION)), "Pass", ""),
        (NOW + timedelta(hours=13), a_report(a_finding("Excepted", exception=EXCEPTION)), "Fail", "has expired"),
    ],
)
def test_verdict_is_that_of_the_day_of_the_summary(
    now: datetime, report: dict[str, Any], verdict: str, doubt: str
) -> None:
    (result,) = summary_of(report, now=now).clusters
    assert result.verdict == verdict
    assert doubt in result.doubt
    assert bool(result.doubt) == bool(doubt)


@pytest.mark.parametrize("verdicts", [("Pass", "Fail", "Unknown"), ("Unknown", "Pass", "Fail")])
def test_worst_cluster_decides_whatever_the_order(verdicts: tuple[str, ...]) -> None:
    reports = [
        a_report(a_finding(verdict), cluster=f"{CLUSTER}{number}", verdict=verdict)
        for number, verdict in enumerate(verdicts)
    ]
    assert summary_of(*reports).verdict == "Fail"
    assert [result.verdict for result in summary_of(*reports).clusters] == ["Fail", "Unknown", "Pass"]


def test_newest_report_counts_and_is_compared_with_the_one_before() -> None:
    old = a_report(a_finding(), startedAt="2026-11-23T11:00:00Z", finishedAt="2026-11-23T11:01:00Z")
    new = a_report(a_finding("Fail"), cluster=CLUSTER.upper(), verdict="Fail")
    for reports in ((old, new), (new, old)):
        (result,) = summary_of(*reports).clusters
        assert result.verdict == "Fail"
        assert [change.check for change in result.opened] == ["subnet-nat-gateway"]


def test_warnings_block_nothing_and_are_no_cause() -> None:
    warning = a_finding("Fail") | {"severity": "medium"}
    (result,) = summary_of(a_report(warning)).clusters
    assert (result.verdict, result.blocking, result.causes) == ("Pass", 0, ())


def test_one_cause_of_several_clusters_is_one_row() -> None:
    reports = [a_report(a_finding("Fail"), cluster=f"{CLUSTER}{number}", verdict="Fail") for number in range(3)]
    (cause,) = summary_of(*reports).causes
    assert (cause.findings, len(cause.clusters)) == (3, 3)


# ------------------------------------------------------------------ the command


def run_summary(folder: Path, *reports: dict[str, Any], arguments: tuple[str | Path, ...] = ()) -> Ran:
    for number, report in enumerate(reports):
        (folder / f"{number}.json").write_text(json.dumps(report))
    return hermetic("summary", folder, *arguments)


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (a_report(a_finding("Fail")), "its verdict is Pass, and its findings come to Fail"),
        (a_report(), "its findings come to Unknown"),
        (a_report(a_finding()) | {"summary": {"Pass": 7}}, "summary."),
        (a_report(a_finding("Excepted")), "with or for no exception"),
        (a_report(a_finding(), startedAt="yesterday"), "is not a time"),
        (a_report(a_finding(), finishedAt="2026-11-24T11:01:00"), "not a time with a zone"),
        (a_report(a_finding(), sources=[]), "sources"),
        ({"schema": "hermetic.dev/audit/v2"}, "schema"),
        (a_report(a_finding(), baseline={"added": 1}), "baseline"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(report: dict[str, Any], says: str, tmp_path: Path) -> None:
    ran = run_summary(tmp_path, a_report(a_finding(), cluster=f"{CLUSTER}0"), report)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.errors[0]
    assert "1.json" in ran.errors[0]


def test_an_old_pass_is_3_and_max_age_allows_it(tmp_path: Path) -> None:
    moment = timestamp(datetime.now(UTC) - timedelta(hours=48))
    report = a_report(a_finding(), startedAt=moment, finishedAt=moment)
    assert run_summary(tmp_path, report).code == 3
    assert run_summary(tmp_path, report, arguments=("--max-age", "72")).code == 0


def test_files_of_a_summary_are_its_forms_and_other_endings_are_refused(tmp_path: Path) -> None:
    reports, out = tmp_path / "reports", tmp_path / "out.csv"
    reports.mkdir()
    ran = run_summary(reports, a_report(a_finding("Fail"), verdict="Fail"), arguments=("--out", out))
    assert ran.code == 1
    assert out.read_text().startswith('"cluster"')
    assert run_summary(reports, arguments=("--out", tmp_path / "out.pdf")).code == 2


def test_names_in_reports_are_text_in_html_and_no_formula_in_csv(tmp_path: Path) -> None:
    cluster = "=1+1<script>alert(1)</script>"
    report = a_report(a_finding("Fail"), cluster=cluster, verdict="Fail")
    assert "<script>alert" not in run_summary(tmp_path, report, arguments=("-o", "html")).out
    assert "\"'=1+1" in run_summary(tmp_path, report, arguments=("-o", "csv")).out


def test_a_folder_without_reports_is_wrong_input(tmp_path: Path) -> None:
    assert run_summary(tmp_path).code == 2
    assert hermetic("summary", tmp_path / "gone").code == 2


def test_every_form_of_a_summary_has_an_ending() -> None:
    assert set(ENDINGS.values()) == set(FORMS)
