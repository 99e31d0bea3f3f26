"""OSCAL assessment results against models made from NIST's schema, and what the schema cannot say."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from oscal_bindings import AssessmentResultsDocument

from hermetic.audit.model.findings import Verdict
from hermetic.audit.report.oscal import as_oscal, document
from tests.audit_reports import (
    HUB_PEERING,
    NODES,
    a_failing_report,
    a_hostile_report,
    a_sealed_report,
    an_empty_report,
    pages,
)

REPORTS = [a_failing_report(), a_sealed_report(), an_empty_report(), a_hostile_report()]


def result_of(report) -> dict[str, Any]:
    return document(report, pages())["assessment-results"]["results"][0]


def finding_of(report, check: str) -> dict[str, Any]:
    return next(finding for finding in result_of(report)["findings"] if finding["target"]["target-id"] == check)


def everything(value: Any, name: str = ""):
    """Every (key, text) of a document."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from everything(below, key)
    elif isinstance(value, list):
        for below in value:
            yield from everything(below, name)
    else:
        yield name, value


@pytest.mark.parametrize("report", REPORTS)
def test_the_document_is_valid(report):
    AssessmentResultsDocument.model_validate(json.loads(as_oscal(report, pages())))


@pytest.mark.parametrize("report", REPORTS)
def test_names_are_tokens_and_values_are_single_lines(report):
    for key, text in everything(document(report, pages())):
        if key in {"name", "target-id"}:
            assert re.fullmatch(r"[^\W\d][\w.\-]*", text)
        if key == "value":
            assert re.fullmatch(r"\S(.*\S)?", text)


@pytest.mark.parametrize("report", REPORTS)
def test_every_reference_leads_to_something(report):
    result = result_of(report)
    text_of = {
        kind: {oscal_object["uuid"] for oscal_object in group}
        for kind, group in {
            "subject-uuid": result.get("local-definitions", {}).get("inventory-items", []),
            "observation-uuid": result.get("observations", []),
            "risk-uuid": result.get("risks", []),
        }.items()
    }
    for key, text in everything(result):
        assert key not in text_of or text in text_of[key]


@pytest.mark.parametrize("report", REPORTS)
def test_uuids_are_of_version_5_and_used_once(report):
    named = [text for key, text in everything(document(report, pages())) if key == "uuid"]
    assert {UUID(text).version for text in named} == {5}
    assert len(named) == len(set(named))


def test_a_resource_keeps_its_uuid_from_audit_to_audit():
    before, after = a_failing_report(), a_sealed_report()
    items = [
        {item["uuid"]: item for item in result_of(report)["local-definitions"]["inventory-items"]}
        for report in (before, after)
    ]
    shared = items[0].keys() & items[1].keys()
    assert any(items[0][uuid]["props"][0]["value"] == NODES for uuid in shared)


def test_only_a_pass_everywhere_satisfies():
    assert finding_of(a_failing_report(), "nsg-internet-deny")["target"]["status"]["state"] == "satisfied"
    for check, reason in {"subnet-nat-gateway": "fail", "firewall-in-path": "other", "peering-any": "fail"}.items():
        status = finding_of(a_failing_report(), check)["target"]["status"]
        assert (status["state"], status["reason"]) == ("not-satisfied", reason)


def test_an_accepted_fail_is_an_approved_deviation_and_not_satisfied():
    report = a_failing_report()
    only = replace(report, findings=tuple(finding for finding in report.findings if finding.resource == HUB_PEERING))
    (risk,) = result_of(only)["risks"]
    assert risk["status"] == "deviation-approved"
    assert "accepted by Network team until 2027-03-31" in risk["statement"]
    assert finding_of(only, "peering-any")["target"]["status"]["state"] == "not-satisfied"


def test_a_check_that_applied_nowhere_claims_nothing():
    assert "effective-routes" not in json.dumps(result_of(a_failing_report())["findings"])
    assert "effective-routes" in json.dumps(result_of(a_failing_report())["observations"])


def test_of_two_findings_about_one_resource_the_worse_is_told():
    report = a_failing_report()
    fail = report.findings[0]
    better = replace(fail, verdict=Verdict.PASS, resource=fail.resource.upper())
    for both in ((fail, better), (better, fail)):
        result = result_of(replace(report, findings=both))
        assert [prop["value"] for prop in result["observations"][0]["props"] if prop["name"] == "verdict"] == ["Fail"]
        assert len(result["observations"]) == 1


def test_evidence_carries_its_digest():
    observation = next(
        observation
        for observation in result_of(a_failing_report())["observations"]
        if "natGateway" in observation["description"]
    )
    (evidence,) = observation["relevant-evidence"]
    assert evidence["description"].endswith("HTTP 200")
    assert re.fullmatch(r"[0-9a-f]{64}", evidence["props"][0]["value"])


def test_no_name_becomes_markup_where_prose_is_markdown():
    prose = [text for key, text in everything(document(a_hostile_report(), pages())) if key in {"title", "description"}]
    assert any("\\<script>" in text for text in prose)
    assert not any(re.search(r"(?<!\\)(\\\\)*[<\[]", text) for text in prose)
