"""SARIF 2.1.0, for code-scanning dashboards and the viewers of editors.

A Pass is a result of kind `pass`, an Unknown one of kind `open` (evaluated, not decided), an Excepted finding a
suppressed result: every finding is included. A level other than `none` is allowed for kind `fail` alone
(section 3.27.10 of the standard).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from hermetic.api.text import printable
from hermetic.api.times import timestamp
from hermetic.audit.model.findings import CheckPage, Finding, Severity, Verdict
from hermetic.audit.report.causes import Cause, by_cause
from hermetic.audit.report.resources import sort_of
from hermetic.audit.report.sentences import acceptance, facts_of_the_run, page_of, remedy_of
from hermetic.audit.result.report import Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.UNKNOWN: 3}
_KINDS = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.UNKNOWN: "open", Verdict.NOT_APPLICABLE: "notApplicable"}
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.INFO: "note",
}
_SCORES = {
    Severity.CRITICAL: "9.0",
    Severity.HIGH: "7.0",
    Severity.MEDIUM: "4.0",
    Severity.LOW: "2.0",
    Severity.INFO: "0.0",
}


def as_sarif(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """The whole log as JSON, cause by cause."""
    rules = {check: index for index, check in enumerate(sorted({finding.check for finding in report.findings}))}
    run = {
        "tool": {"driver": _driver(report, rules, pages)},
        "automationDetails": {"id": f"hermetic/audit/{report.cluster}"},
        "invocations": [_invocation(report)],
        "results": [_result(finding, cause, rules, pages) for finding, cause in by_cause(report.findings, pages)],
        "properties": {
            "verdict": report.verdict.value,
            "profile": report.profile,
            "sources": list(report.sources),
            "summary": {verdict.value: count for verdict, count in report.summary.items()},
            **facts_of_the_run(report),
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver(report: Report, rules: Mapping[str, int], pages: Mapping[str, CheckPage]) -> dict[str, Any]:
    version = {"version": report.tool_version} if report.tool_version else {}
    return {"name": "hermetic", **version, "rules": [_rule(page_of(check, pages)) for check in rules]}


def _rule(page: CheckPage) -> dict[str, Any]:
    return {
        "id": page.id,
        "name": "".join(word.capitalize() for word in page.id.split("-")),
        "shortDescription": {"text": _message(page.title)},
        "fullDescription": {"text": _message(page.why or page.title)},
        "help": {"text": _message(page.remedy or page.title), "markdown": _markdown(page)},
        "defaultConfiguration": {"level": _LEVELS[page.severity]},
        "properties": {
            "tags": ["security", "network-egress", page.family, *_controls(page)],
            "security-severity": _SCORES[page.severity],
            "reads": list(page.reads),
            "source": page.source,
        },
    }


def _controls(page: CheckPage) -> Iterator[str]:
    """Tags such as `nist/SC-7(5)`."""
    for framework, _, ids in page.controls.by_framework():
        yield from (f"{framework.replace('_', '-')}/{control_id}" for control_id in ids)


def _markdown(page: CheckPage) -> str:
    # four blanks make a code block, in which a command needs no escaping
    command = "\n".join(f"    {line}" for line in page.remedy.splitlines())
    return "\n\n".join(part for part in (page.why, command) if part) or page.title


def _invocation(report: Report) -> dict[str, Any]:
    return {
        "executionSuccessful": True,
        "startTimeUtc": timestamp(report.started_at),
        "endTimeUtc": timestamp(report.finished_at),
        "exitCode": EXIT_CODES[report.verdict],
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": _message(text)}} for level, text in _notifications(report)
        ],
    }


def _notifications(report: Report) -> Iterator[tuple[str, str]]:
    for note in report.notes:
        yield "warning", note
    for source, checks in sorted(report.not_asked.items()):
        yield "note", f"{source} was not asked, so these checks have no finding: {', '.join(sorted(checks))}"


def _result(
    finding: Finding, cause: Cause | None, rules: Mapping[str, int], pages: Mapping[str, CheckPage]
) -> dict[str, Any]:
    return {
        "ruleId": finding.check,
        "ruleIndex": rules[finding.check],
        **_kind_and_level(finding),
        "message": {"text": _message(_text_of(finding, pages))},
        "locations": [_location(finding.resource)],
        "partialFingerprints": _fingerprints(finding),
        "properties": {
            "verdict": finding.verdict.value,
            "severity": finding.severity.value,
            "security-severity": _SCORES[finding.severity],
            "reason": finding.reason,
            **({"cause": cause.id, "causeOrder": cause.number} if cause else {}),
            "paths": list(finding.path_texts),
            "evidence": [
                {"request": exchange.request, "status": exchange.status, "sha256": exchange.sha256}
                for exchange in finding.evidence
            ],
        },
    }


def _kind_and_level(finding: Finding) -> dict[str, Any]:
    verdict = finding.verdict
    suppressed = {}
    if finding.exception:
        verdict = finding.exception.accepted
        suppression = {"kind": "external", "status": "accepted", "justification": printable(acceptance(finding))}
        suppressed = {"suppressions": [suppression]}
    level = _LEVELS[finding.severity] if verdict is Verdict.FAIL else "none"
    return {"kind": _KINDS.get(verdict, "review"), "level": level, **suppressed}


def _text_of(finding: Finding, pages: Mapping[str, CheckPage]) -> str:
    remedy = remedy_of(finding, pages)
    parts = (
        finding.message or page_of(finding.check, pages).title,
        *(f"Path: {path}" for path in finding.path_texts),
        f"Remedy: {remedy}" if remedy else "",
    )
    return "\n".join(part for part in parts if part)


def _location(resource: str) -> dict[str, Any]:
    """A logical and a physical location: GitHub rejects a result without the latter, so it has the resource's id."""
    kind = sort_of(resource)
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(printable(resource).lstrip("/"), safe="/") or "-"},
            "region": {"startLine": 1},
        },
        "logicalLocations": [{"fullyQualifiedName": resource} | ({"kind": kind} if kind else {})],
    }


def _fingerprints(finding: Finding) -> dict[str, str]:
    """The same for the same check and resource in every audit, independent of verdict and message."""
    identity = f"{finding.check}\n{finding.resource.lower()}".encode(errors="backslashreplace")
    print_of_both = hashlib.sha256(identity).hexdigest()
    return {"hermeticFinding/v1": print_of_both, "primaryLocationLineHash": f"{print_of_both[:16]}:1"}


def _message(text: str) -> str:
    """Escaped text: `[name](target)` would be a link in every SARIF message (section 3.11.6)."""
    return re.sub(r"\](?=\()", r"\\]", printable(text)) or "-"
