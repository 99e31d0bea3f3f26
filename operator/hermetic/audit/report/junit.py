"""JUnit XML, for pipelines: a suite per family of checks, a case per check and resource.

Every Fail is a `failure`, warnings of medium and low severity too (their severity is the failure's type); Unknown is
an `error`, Excepted and NotApplicable are `skipped`. The exit code of the command, not the count of failures, is the
verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from xml.etree import ElementTree as Xml

from hermetic.api.text import printable
from hermetic.api.times import timestamp
from hermetic.audit.model.findings import CheckPage, Finding, Verdict
from hermetic.audit.report.causes import Cause, by_cause
from hermetic.audit.report.sentences import acceptance, evidence_line, facts_of_the_run, page_of, remedy_of
from hermetic.audit.result.report import Report

ShownFinding = tuple[Finding, Cause | None]
_TAGS = {
    Verdict.FAIL: "failure",
    Verdict.UNKNOWN: "error",
    Verdict.EXCEPTED: "skipped",
    Verdict.NOT_APPLICABLE: "skipped",
}


def as_junit(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """The whole document; characters that XML does not allow are replaced, the rest is escaped."""
    root = Xml.Element("testsuites", {"name": "hermetic audit", **_counts(list(report.findings))})

    def family(shown: ShownFinding) -> str:
        return page_of(shown[0].check, pages).family

    for name, group in groupby(sorted(by_cause(report.findings, pages), key=family), key=family):
        root.append(_suite(name, list(group), report, pages))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(family: str, shown: list[ShownFinding], report: Report, pages: Mapping[str, CheckPage]) -> Xml.Element:
    # the JUnit schema has no zone in its timestamps: this is UTC
    started = timestamp(report.started_at).removesuffix("Z")
    suite = Xml.Element(
        "testsuite", {"name": printable(family), "timestamp": started, **_counts([finding for finding, _ in shown])}
    )
    properties = Xml.SubElement(suite, "properties")
    for name, value in _properties(report):
        Xml.SubElement(properties, "property", {"name": printable(name), "value": printable(value)})
    suite.extend(_case(finding, cause, pages) for finding, cause in shown)
    return suite


def _counts(findings: list[Finding]) -> dict[str, str]:
    tags = [_TAGS.get(finding.verdict) for finding in findings]
    return {
        "tests": str(len(findings)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "skipped": str(tags.count("skipped")),
        "time": "0",
    }


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    yield "cluster", report.cluster
    yield "profile", report.profile
    yield "sources", " ".join(report.sources)
    yield "verdict", report.verdict
    yield from facts_of_the_run(report).items()
    for source, checks in sorted(report.not_asked.items()):
        yield f"notAsked.{source}", " ".join(sorted(checks))
    for note in report.notes:
        yield "note", note


def _case(finding: Finding, cause: Cause | None, pages: Mapping[str, CheckPage]) -> Xml.Element:
    name = {"classname": printable(f"hermetic.{finding.check}"), "name": printable(finding.resource)}
    case = Xml.Element("testcase", {**name, "time": "0"})
    if (tag := _TAGS.get(finding.verdict)) is None:
        return case
    message = acceptance(finding) or finding.message or finding.reason
    attributes = {"message": printable(message)}
    if tag != "skipped":
        attributes["type"] = finding.severity.value
    outcome = Xml.SubElement(case, tag, attributes)
    outcome.text = printable("\n".join(_details(finding, cause, pages))) or None
    return case


def _details(finding: Finding, cause: Cause | None, pages: Mapping[str, CheckPage]) -> Iterator[str]:
    if finding.reason:
        yield f"reason: {finding.reason}"
    if cause is not None:
        yield f"cause: {cause.number} {cause.title}"
    for path in finding.path_texts:
        yield f"path: {path}"
    if remedy := remedy_of(finding, pages):
        yield f"remedy: {remedy}"
    for exchange in finding.evidence:
        yield f"evidence: {evidence_line(exchange)}"
