"""OpenReports (openreports.io/v1alpha1 ClusterReport), for the dashboards that already read policy reports.

Its five result values are fewer than our verdicts, so the exact verdict is in `properties.verdict`. Azure resources are
not Kubernetes objects: their ids are in `properties.armId`, while objects of the cluster are referred to in
`resources`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.api.text import printable
from hermetic.audit.model.findings import CheckPage, Finding, Severity, Verdict, worst_first
from hermetic.audit.report.causes import Cause, by_cause
from hermetic.audit.report.resources import is_arm_id, object_reference
from hermetic.audit.report.sentences import acceptance, facts_of_the_run, page_of, remedy_of
from hermetic.audit.result.report import Report

API_VERSION = "openreports.io/v1alpha1"
NAME = "hermetic-egress"
WORDS = ("pass", "fail", "warn", "error", "skip")
# etcd limits an object to 1.5 MiB, managed fields and the apply annotation included.
MAX_RESULT_BYTES = 900_000
_WORDS = {Verdict.PASS: "pass", Verdict.UNKNOWN: "error", Verdict.EXCEPTED: "skip", Verdict.NOT_APPLICABLE: "skip"}


def as_openreports(report: Report, pages: Mapping[str, CheckPage]) -> str:
    """The object as JSON, for kubectl or Flux to apply."""
    return json.dumps(cluster_report(report, pages), indent=2) + "\n"


def cluster_report(report: Report, pages: Mapping[str, CheckPage], *, name: str = NAME) -> dict[str, Any]:
    """The object as a dict. `summary` counts every finding.

    The size of an object is limited in the cluster: where not all results fit, the worst are kept and
    `configuration.limits.maxResults` says how many.
    """
    finished = int(report.finished_at.timestamp())
    with_results = [
        (finding, _result(finding, cause, finished, pages)) for finding, cause in by_cause(report.findings, pages)
    ]
    results = {id(finding): result for finding, result in with_results}
    fitting = {id(result) for result in _fitting([results[id(finding)] for finding in worst_first(report.findings)])}
    remaining_results = [result for _, result in with_results if id(result) in fitting]
    counts = Counter(_word(finding) for finding in report.findings)
    cut = (
        {"configuration": {"limits": {"maxResults": len(remaining_results)}}}
        if len(remaining_results) < len(results)
        else {}
    )
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterReport",
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/managed-by": "hermetic"},
            "annotations": {
                "hermetic.dev/cluster": printable(report.cluster),
                "hermetic.dev/profile": printable(report.profile),
                "hermetic.dev/verdict": report.verdict.value,
                **{f"hermetic.dev/{name}": printable(value) for name, value in facts_of_the_run(report).items()},
            },
        },
        "source": "hermetic",
        **cut,
        "summary": {word: counts[word] for word in WORDS},
        "results": remaining_results,
    }


def _fitting(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many results from the front as fit in an object."""
    fitting, size = [], 0
    for result in results:
        size += len(json.dumps(result))
        if size > MAX_RESULT_BYTES:
            break
        fitting.append(result)
    return fitting


def _result(finding: Finding, cause: Cause | None, finished: int, pages: Mapping[str, CheckPage]) -> dict[str, Any]:
    page = page_of(finding.check, pages)
    about = object_reference(finding.resource)
    return {
        "source": "hermetic",
        "policy": printable(finding.check),
        "rule": printable(finding.reason or finding.check),
        "category": printable(page.family),
        "severity": finding.severity.value,
        "result": _word(finding),
        "scored": finding.severity.decides,
        "message": printable(finding.message or page.title),
        **({"resources": [about]} if about else {}),
        "timestamp": {"seconds": finished, "nanos": 0},
        "properties": {name: printable(value) for name, value in _properties(finding, cause, pages)},
    }


def _word(finding: Finding) -> str:
    if finding.verdict is Verdict.FAIL:
        return "fail" if finding.severity in {Severity.CRITICAL, Severity.HIGH} else "warn"
    return _WORDS[finding.verdict]


def _properties(finding: Finding, cause: Cause | None, pages: Mapping[str, CheckPage]) -> Iterator[tuple[str, str]]:
    yield "verdict", finding.verdict.value
    yield ("armId" if is_arm_id(finding.resource) else "resource"), finding.resource
    if cause is not None:
        yield "cause", f"{cause.number} {cause.id}"
    if finding.paths:
        yield "paths", "\n".join(finding.path_texts)
    if remedy := remedy_of(finding, pages):
        yield "remedy", remedy
    if accepted := acceptance(finding):
        yield "exception", accepted
    digests = dict.fromkeys(f"sha256:{exchange.sha256}" for exchange in finding.evidence if exchange.sha256)
    if digests:
        yield "evidence", " ".join(digests)
