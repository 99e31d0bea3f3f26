"""The findings as CSV (RFC 4180), for spreadsheets and ticket systems: one row for each finding, cause by cause.

Every field is quoted. A spreadsheet evaluates a cell that begins with = + - or @ as a formula, and a resource may have
any name: such a text is prefixed with an apostrophe.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from hermetic.api.text import printable
from hermetic.api.times import timestamp
from hermetic.audit.model.findings import CheckPage, Finding
from hermetic.audit.report.causes import by_cause
from hermetic.audit.report.sentences import evidence_line, page_of, remedy_of
from hermetic.audit.result.report import Report

# the last four are full-width forms of the first four, which some spreadsheets treat alike
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
COLUMNS = (
    "cluster",
    "finishedAt",
    "check",
    "family",
    "title",
    "verdict",
    "severity",
    "resource",
    "reason",
    "message",
    "remedy",
    "paths",
    "exceptionReason",
    "exceptionOwner",
    "exceptionExpiry",
    "exceptionAccepted",
    "evidence",
    "sinceBaseline",
    "mcsb",
    "nist",
    "cisAks",
    "cause",
    "causeOrder",
)


def as_csv(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """A header row and a row for each finding; rows end in CRLF, several paths or requests are lines of one cell."""
    text = io.StringIO()
    rows = csv.DictWriter(text, COLUMNS, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    rows.writeheader()
    changes = () if report.comparison is None else report.comparison.changes
    since = {(change.check, change.resource.lower()): change.kind for change in changes}
    for finding, cause in by_cause(report.findings, pages):
        row = _row(finding, report, pages) | {
            "sinceBaseline": since.get((finding.check, finding.resource.lower()), ""),
            "cause": cause.id if cause else "",
            "causeOrder": str(cause.number) if cause else "",
        }
        rows.writerow({column: guarded(value) for column, value in row.items()})
    return text.getvalue()


def guarded(text: str) -> str:
    """The text, escaped so that no spreadsheet evaluates it as a formula."""
    visible = printable(text)
    is_formula = visible.lstrip().startswith(_FORMULA) or visible[:1] in {"\t", "\n"}
    return f"'{visible}" if is_formula else visible


def _row(finding: Finding, report: Report, pages: Mapping[str, CheckPage]) -> dict[str, str]:
    page, accepted = page_of(finding.check, pages), finding.exception
    return {
        "cluster": report.cluster,
        "finishedAt": timestamp(report.finished_at),
        "check": finding.check,
        "family": page.family,
        "title": page.title,
        "verdict": finding.verdict.value,
        "severity": finding.severity.value,
        "resource": finding.resource,
        "reason": finding.reason,
        "message": finding.message,
        "remedy": remedy_of(finding, pages).strip(),
        "paths": "\n".join(finding.path_texts),
        "exceptionReason": accepted.reason if accepted else "",
        "exceptionOwner": accepted.owner if accepted else "",
        "exceptionExpiry": accepted.expiry if accepted else "",
        "exceptionAccepted": accepted.accepted.value if accepted else "",
        "evidence": "\n".join(evidence_line(exchange) for exchange in finding.evidence),
        "mcsb": " ".join(page.controls.mcsb),
        "nist": " ".join(page.controls.nist),
        "cisAks": " ".join(page.controls.cis_aks),
    }
