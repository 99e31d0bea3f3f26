"""The JSON report, as the contract spells it: what scripts read and what an attestation signs.

The fields of the contract are always there, in its order. `exception` stands only in an Excepted finding and `notes`
only where there are any: a script that knows the contract alone misses neither verdict nor count.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hermetic.api.times import timestamp
from hermetic.audit.findings import Evidence, Finding, Report, by_check

SCHEMA = "hermetic.dev/audit/v1"


def as_json(report: Report) -> str:
    """UTF-8 safe text ending in a newline; equal reports give equal bytes, whatever order their findings came in."""
    return json.dumps(document(report), indent=2) + "\n"


def digest(report: Report) -> str:
    """SHA-256 of the JSON report in hexadecimal: other formats carry it, so that they can be held against it."""
    return hashlib.sha256(as_json(report).encode()).hexdigest()


def document(report: Report) -> dict[str, Any]:
    """The report as a dict that looks like the JSON."""
    shown: dict[str, Any] = {
        "schema": SCHEMA,
        "cluster": report.cluster,
        "sources": list(report.sources),
        "profile": report.profile,
        "startedAt": timestamp(report.started_at),
        "finishedAt": timestamp(report.finished_at),
        "verdict": report.verdict.value,
        "notAsked": {source: sorted(checks) for source, checks in sorted(report.not_asked.items())},
        "summary": {verdict.value: count for verdict, count in report.summary.items()},
        "findings": [_finding(finding) for finding in by_check(report.findings)],
    }
    return shown | ({"notes": list(report.notes)} if report.notes else {})


def _finding(finding: Finding) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "severity": finding.severity.value,
        "resource": finding.resource,
        "reason": finding.reason,
        "message": finding.message,
        "remedy": finding.remedy,
        "paths": list(finding.paths),
        "evidence": [_evidence(seen) for seen in finding.evidence],
    }
    if (accepted := finding.exception) is None:
        return shown
    text = {"reason": accepted.reason, "owner": accepted.owner, "expiry": accepted.expiry}
    return shown | {"exception": text | {"accepted": accepted.accepted.value}}


def _evidence(seen: Evidence) -> dict[str, Any]:
    return {"request": seen.request, "status": seen.status, "sha256": seen.sha256}
