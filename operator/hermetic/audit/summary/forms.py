"""The forms of a summary: JSON, CSV, HTML and a table for the terminal. Equal summaries give equal bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from hermetic.api.text import aligned
from hermetic.api.times import spell_duration, timestamp
from hermetic.audit.model.findings import Verdict
from hermetic.audit.report.csv_form import guarded
from hermetic.audit.report.page import as_page
from hermetic.audit.result.report import FindingChange
from hermetic.audit.summary.cluster_result import ClusterResult
from hermetic.audit.summary.summary import SharedCause, Summary

SCHEMA = "hermetic.dev/audit-summary/v1"
FORMS = ("table", "json", "csv", "html")
SHOWN_NAMES = 5
COLUMNS = (
    "cluster",
    "name",
    "verdict",
    "doubt",
    "profile",
    "sources",
    "startedAt",
    "finishedAt",
    "ageMinutes",
    "blocking",
    "causes",
    "since",
    "verdictBefore",
    "opened",
    "closed",
    "report",
)


def rendered(form: str, summary: Summary) -> str:
    """The summary in one of FORMS, ending in a newline."""
    if form == "json":
        return json.dumps(document(summary), indent=2) + "\n"
    if form == "csv":
        return as_csv(summary)
    if form == "html":
        return as_html(summary)
    return "\n".join(lines(summary)) + "\n"


def document(summary: Summary) -> dict[str, Any]:
    """The structure of the JSON."""
    return {
        "schema": SCHEMA,
        "at": timestamp(summary.at),
        "verdict": summary.verdict.value,
        "counts": {verdict.value: count for verdict, count in summary.counts.items()},
        "causes": [
            {
                "title": cause.action,
                "severity": cause.severity.value,
                "findings": cause.findings,
                "clusters": list(cause.clusters),
            }
            for cause in summary.causes
        ],
        "clusters": [_cluster(result, summary) for result in summary.clusters],
    }


def _cluster(result: ClusterResult, summary: Summary) -> dict[str, Any]:
    return {
        "cluster": result.cluster,
        "verdict": result.verdict.value,
        "doubt": result.doubt,
        "profile": result.profile,
        "sources": list(result.sources),
        "startedAt": timestamp(result.observed_at),
        "finishedAt": timestamp(result.finished_at),
        "ageMinutes": _age_minutes(result, summary),
        "summary": {verdict.value: count for verdict, count in result.counts.items()},
        "blocking": result.blocking,
        "causes": [
            {"title": cause.title, "severity": cause.severity.value, "findings": cause.findings}
            for cause in result.causes
        ],
        "changes": _changes(result),
        "report": result.file,
        "sha256": result.sha256,
    }


def _changes(result: ClusterResult) -> dict[str, Any] | None:
    """What changed since the last run; None without one."""
    if (comparison := result.comparison) is None:
        return None
    return {
        "since": comparison.finished_at,
        "verdictBefore": comparison.verdict.value,
        "opened": [_change(change) for change in result.opened],
        "closed": [_change(change) for change in result.closed],
        "notCompared": list(comparison.not_compared),
    }


def _change(change: FindingChange) -> dict[str, str]:
    return {"check": change.check, "resource": change.resource}


def as_csv(summary: Summary) -> str:
    """A header row and a row for each cluster (RFC 4180), with the cells guarded as in the CSV of a report."""
    text = io.StringIO()
    rows = csv.DictWriter(text, COLUMNS, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    rows.writeheader()
    for result in summary.clusters:
        rows.writerow({column: guarded(value) for column, value in _row(result, summary).items()})
    return text.getvalue()


def _row(result: ClusterResult, summary: Summary) -> dict[str, str]:
    comparison = result.comparison
    return {
        "cluster": result.cluster,
        "name": result.name,
        "verdict": result.verdict.value,
        "doubt": result.doubt,
        "profile": result.profile,
        "sources": " ".join(result.sources),
        "startedAt": timestamp(result.observed_at),
        "finishedAt": timestamp(result.finished_at),
        "ageMinutes": str(_age_minutes(result, summary)),
        "blocking": str(result.blocking),
        "causes": "\n".join(cause.title for cause in result.causes),
        "since": comparison.finished_at if comparison else "",
        "verdictBefore": comparison.verdict.value if comparison else "",
        "opened": "\n".join(f"{change.check} {change.resource}" for change in result.opened),
        "closed": "\n".join(f"{change.check} {change.resource}" for change in result.closed),
        "report": result.file,
    }


def as_html(summary: Summary) -> str:
    """One HTML file in the style of the audit's report, without a script."""
    moment = timestamp(summary.at)
    content = {
        "summary": summary,
        "headline": headline(summary),
        "moment": moment,
        "clusters": [(result, _age(result, summary), change_text(result)) for result in summary.clusters],
        "causes": [(cause, cluster_names(cause)) for cause in summary.causes],
    }
    return as_page("summary.html.j2", content, f"{summary.verdict}  {len(summary.clusters)} clusters  {moment}")


def lines(summary: Summary) -> Iterator[str]:
    """The table: a line for each cluster, then the changes that are needed."""
    yield f"{summary.verdict.value}  {headline(summary)}"
    yield ""
    cells = [("VERDICT", "CLUSTER", "BLOCKING", "EVIDENCE", "SINCE THE LAST RUN")]
    for result in summary.clusters:
        age, changes = _age(result, summary), change_text(result)
        cells.append((result.verdict.value, result.name, str(result.blocking), age, changes))
    yield from aligned(cells)
    for result in summary.clusters:
        if result.doubt:
            yield f"{result.name}: {result.doubt}"
    if summary.causes:
        yield ""
        yield f"What blocks, by cause ({len(summary.causes)})"
    for number, cause in enumerate(summary.causes, 1):
        yield f"  {number} {cause.action}: {findings_text(cause)}; {cluster_names(cause)}"


def headline(summary: Summary) -> str:
    """ "2 of 20 clusters fail, 1 is unknown, 17 pass." """
    counts, total = summary.counts, len(summary.clusters)
    parts = [
        f"{counts[verdict]} {verb}"
        for verdict, verb in ((Verdict.FAIL, "Fail"), (Verdict.UNKNOWN, "Unknown"), (Verdict.PASS, "Pass"))
        if counts[verdict]
    ]
    return f"{total} cluster{'' if total == 1 else 's'}: {', '.join(parts)}."


def change_text(result: ClusterResult) -> str:
    """ "Pass before; 2 opened, 1 closed", "no change", or that there is no earlier run."""
    if (comparison := result.comparison) is None:
        return "no earlier report"
    before = f"{comparison.verdict.value} before; " if comparison.verdict is not result.verdict else ""
    counts = ((len(result.opened), "opened"), (len(result.closed), "closed"))
    text = ", ".join(f"{count} {verb}" for count, verb in counts if count)
    return before + (text or "no blocking finding changed")


def findings_text(cause: SharedCause) -> str:
    """ "3 findings, critical"."""
    return f"{cause.findings} finding{'' if cause.findings == 1 else 's'}, {cause.severity.value}"


def cluster_names(cause: SharedCause) -> str:
    """The clusters that need a change, by name; of many the first, and how many more."""
    names = [cluster.rpartition("/")[2] for cluster in cause.clusters]
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def _age(result: ClusterResult, summary: Summary) -> str:
    return spell_duration(summary.at - result.observed_at, units=1)


def _age_minutes(result: ClusterResult, summary: Summary) -> int:
    return max(0, int((summary.at - result.observed_at).total_seconds())) // 60
