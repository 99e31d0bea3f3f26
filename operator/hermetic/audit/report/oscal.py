"""OSCAL assessment-results 1.2, for governance tools: observations, findings per check, and remaining risks.

    inventory-item   one per resource that was checked
    observation      one per finding: what was observed, with the digests of its evidence
    finding          one per check: satisfied only when every resource passed
    risk             one per Fail (open) and per accepted one (deviation-approved)

UUIDs are of version 5: the same resource, check and cluster have the same ones in every audit, and equal reports give
equal documents. A check that applied nowhere has observations and no finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from hermetic.api.text import one_line
from hermetic.api.times import timestamp
from hermetic.audit.model.findings import CheckPage, Finding, Verdict, by_check, worst_first
from hermetic.audit.report.causes import Cause, by_cause
from hermetic.audit.report.json_form import digest
from hermetic.audit.report.resources import readable
from hermetic.audit.report.sentences import acceptance, facts_of_the_run, headline, page_of, remedy_of
from hermetic.audit.result.report import Report

NAMESPACE = "https://hermetic.dev/ns/oscal"
_NOT_IN_TOKEN = re.compile(r"[^\w.\-]")
_MARKDOWN = re.compile(r"([\\<\[`])")


def prop(name: str, value: str) -> dict[str, str]:
    """One property in our namespace: `name` must be a token already, `value` becomes a single line, never empty."""
    return {"name": name, "ns": NAMESPACE, "value": one_line(value)}


def markup(text: str) -> str:
    """Text escaped so that Markdown renders it as plain text: no tag, no link, no code span."""
    return _MARKDOWN.sub(r"\\\1", one_line(text))


def token(text: str) -> str:
    """An XML token of the text: a letter or '_' first, then letters, digits, '.', '-' and '_'."""
    shown = _NOT_IN_TOKEN.sub("_", text)
    return shown if shown[:1].isalpha() or shown[:1] == "_" else f"_{shown}"


# 1.2.1 and not a later patch release: the structure is the same, and common Python tooling supports no later one.
OSCAL_VERSION = "1.2.1"


def as_oscal(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """The whole document as JSON."""
    return json.dumps(document(report, pages), indent=2) + "\n"


def document(report: Report, pages: Mapping[str, CheckPage]) -> dict[str, Any]:
    names = _Names(report)
    content = digest(report, pages)
    plan = names.uuid("plan")
    metadata = {
        "title": f"Egress audit of {markup(report.cluster)}",
        "last-modified": timestamp(report.finished_at),
        "version": timestamp(report.finished_at),
        "oscal-version": OSCAL_VERSION,
        "props": [prop("tool", "hermetic"), prop("tool-version", report.tool_version), prop("report-sha256", content)],
    }
    return {
        "assessment-results": {
            "uuid": names.uuid("document", content),
            "metadata": metadata,
            "import-ap": {"href": f"#{plan}"},
            "results": [_result(report, pages, names, content)],
            "back-matter": {"resources": [_plan(plan, report)]},
        }
    }


class _Names:
    """UUIDs of version 5 in the namespace of one cluster."""

    def __init__(self, report: Report) -> None:
        self._cluster = uuid5(uuid5(NAMESPACE_URL, NAMESPACE), one_line(report.cluster.lower()))

    def uuid(self, sort: str, *subject: str) -> str:
        return str(uuid5(self._cluster, one_line("\n".join((sort, *subject)))))

    def of(self, sort: str, finding: Finding) -> str:
        return self.uuid(sort, finding.check, finding.resource.lower())


def _plan(uuid: str, report: Report) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "title": "Built-in egress checks",
        "description": f"Every egress check of hermetic in the profile {markup(report.profile)}. A "
        "separate assessment plan does not exist.",
    }


def _result(report: Report, pages: Mapping[str, CheckPage], names: _Names, content: str) -> dict[str, Any]:
    findings = _one_per_subject(report)
    causes = {id(finding): cause for finding, cause in by_cause(report.findings, pages)}
    risks = [_risk(finding, pages, names) for finding in findings if _is_risk(finding)]
    results = [
        oscal_finding
        for check, group in _per_check(findings)
        if (oscal_finding := _finding(check, group, pages, names))
    ]
    result = {
        "uuid": names.uuid("result", content),
        "title": f"Verdict {report.verdict}",
        "description": markup(" ".join((headline(report), *report.notes))),
        "start": timestamp(report.started_at),
        "end": timestamp(report.finished_at),
        "props": [prop("verdict", report.verdict), prop("profile", report.profile)]
        + [prop("source", source) for source in report.sources]
        + [prop(name, value) for name, value in facts_of_the_run(report).items()],
        "reviewed-controls": _reviewed(report),
    }
    lists = {
        "observations": [_observation(finding, causes[id(finding)], report, pages, names) for finding in findings],
        "risks": risks,
        "findings": results,
    }
    inventory = {"local-definitions": {"inventory-items": _inventory(findings, names)}} if findings else {}
    # OSCAL does not allow an empty list
    return result | inventory | {name: items for name, items in lists.items() if items}


def _one_per_subject(report: Report) -> list[Finding]:
    """A UUID is made of (check, resource): of two findings with the same, only the worse one is reported."""
    by_subject: dict[tuple[str, str], Finding] = {}
    for finding in worst_first(report.findings):
        by_subject.setdefault((finding.check, finding.resource.lower()), finding)
    return by_check(by_subject.values())


def _per_check(findings: list[Finding]) -> list[tuple[str, list[Finding]]]:
    return [(check, list(group)) for check, group in groupby(findings, key=lambda finding: finding.check)]


def _reviewed(report: Report) -> dict[str, Any]:
    controls = [
        f"{source} was not asked: {', '.join(sorted(checks))}." for source, checks in sorted(report.not_asked.items())
    ]
    selection = {"description": "Every check that the sources asked can answer.", "include-all": {}}
    return {"control-selections": [selection]} | ({"remarks": markup(" ".join(controls))} if controls else {})


def _inventory(findings: list[Finding], names: _Names) -> list[dict[str, Any]]:
    resources = {finding.resource.lower(): finding.resource for finding in findings}
    return [
        {"uuid": names.uuid("resource", lower), "description": markup(resource), "props": [prop("asset-id", resource)]}
        for lower, resource in resources.items()
    ]


def _observation(
    finding: Finding, cause: Cause | None, report: Report, pages: Mapping[str, CheckPage], names: _Names
) -> dict[str, Any]:
    page = page_of(finding.check, pages)
    props = [prop("verdict", finding.verdict), prop("severity", finding.severity), prop("check", finding.check)]
    props += [prop("reason", finding.reason)] if finding.reason else []
    props += [prop("cause", cause.id)] if cause else []
    props += [prop("path", path) for path in finding.path_texts]
    description = " ".join(text for text in (finding.message or page.title, acceptance(finding)) if text)
    evidence = [_evidence(exchange.request, exchange.status, exchange.sha256) for exchange in finding.evidence]
    return {
        "uuid": names.of("observation", finding),
        "title": markup(page.title),
        "description": markup(description),
        "props": props,
        "methods": ["TEST" if "probe" in page.family.lower() else "EXAMINE"],
        "types": ["finding"],
        "subjects": [{"subject-uuid": names.uuid("resource", finding.resource.lower()), "type": "inventory-item"}],
        **({"relevant-evidence": evidence} if evidence else {}),
        "collected": timestamp(report.finished_at),
    }


def _evidence(request: str, status: int | None, sha256: str | None) -> dict[str, Any]:
    answer = "no answer" if status is None else f"HTTP {status}"
    digests = [prop("sha256", sha256)] if sha256 else []
    return {"description": f"{markup(request)}: {answer}"} | ({"props": digests} if digests else {})


def _is_risk(finding: Finding) -> bool:
    return finding.verdict in {Verdict.FAIL, Verdict.EXCEPTED}


def _risk(finding: Finding, pages: Mapping[str, CheckPage], names: _Names) -> dict[str, Any]:
    page = page_of(finding.check, pages)
    remedy = remedy_of(finding, pages)
    recommended = {
        "uuid": names.of("remedy", finding),
        "lifecycle": "recommendation",
        "title": "Remedy",
        "description": markup(remedy),
    }
    accepted = acceptance(finding)
    return {
        "uuid": names.of("risk", finding),
        "title": markup(f"{finding.reason or finding.check}: {readable(finding.resource)}"),
        "description": markup(finding.message or page.title),
        "statement": markup(accepted or page.why or page.title),
        "props": [prop("severity", finding.severity)],
        "status": "deviation-approved" if accepted else "open",
        **({"remediations": [recommended]} if remedy else {}),
    }


def _finding(
    check: str, findings: list[Finding], pages: Mapping[str, CheckPage], names: _Names
) -> dict[str, Any] | None:
    """The finding of a check: the worst verdict of its observations."""
    applicable = [finding for finding in findings if finding.verdict is not Verdict.NOT_APPLICABLE]
    if not applicable:
        return None
    worst = min((finding.verdict for finding in applicable), key=lambda verdict: verdict.rank)
    risks = [{"risk-uuid": names.of("risk", finding)} for finding in applicable if _is_risk(finding)]
    page = page_of(check, pages)
    return {
        "uuid": names.uuid("finding", check),
        "title": markup(page.title),
        "description": markup(page.why or page.title),
        "props": [prop("verdict", worst), prop("severity", page.severity), *_controls(page)],
        "target": {"type": "objective-id", "target-id": token(check), "status": _status(worst)},
        "related-observations": [{"observation-uuid": names.of("observation", finding)} for finding in applicable],
        **({"related-risks": risks} if risks else {}),
    }


def _controls(page: CheckPage) -> list[dict[str, str]]:
    """Controls that the check gives evidence for, as properties; they do not state that a control is met."""
    return [
        prop(f"control-{framework.replace('_', '-')}", control_id)
        for framework, _, ids in page.controls.by_framework()
        for control_id in ids
    ]


def _status(worst: Verdict) -> dict[str, str]:
    """Only Pass is `satisfied`: Unknown and Excepted are not."""
    match worst:
        case Verdict.PASS:
            return {"state": "satisfied", "reason": "pass"}
        case Verdict.FAIL:
            return {"state": "not-satisfied", "reason": "fail"}
        case _:
            return {"state": "not-satisfied", "reason": "other", "remarks": f"Worst verdict: {worst}."}
