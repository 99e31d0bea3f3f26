"""The JSON report against the contract."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from hermetic.audit.report.json_form import as_json, digest
from tests.audit_reports import NODES, a_failing_report, a_hostile_report, a_sealed_report, pages


def test_fields_are_those_of_the_contract_in_its_order():
    report = json.loads(as_json(a_sealed_report(), pages()))
    assert list(report) == [
        "schema", "cluster", "sources", "profile", "startedAt", "finishedAt",
        "verdict", "notAsked", "summary", "findings",
    ]  # fmt: skip
    assert report["schema"] == "hermetic.dev/audit/v1"
    assert (report["startedAt"], report["finishedAt"]) == ("2026-11-24T12:00:03Z", "2026-11-24T12:01:14Z")
    assert list(report["summary"]) == ["Pass", "Fail", "Unknown", "Excepted", "NotApplicable"]
    assert report["notAsked"] == {
        "kube": ["k8s-externalips", "k8s-public-lb"],
        "probe": ["dns-recursion", "probe-tcp"],
    }


def test_a_finding_has_the_fields_of_the_contract_in_its_order():
    findings = json.loads(as_json(a_failing_report(), pages()))["findings"]
    finding = next(row for row in findings if row["check"] == "subnet-default-outbound")
    assert list(finding) == [
        "check", "verdict", "severity", "resource", "reason", "message", "remedy", "paths", "evidence",
    ]  # fmt: skip
    assert finding["resource"] == NODES
    assert finding["paths"] == ["subnet snet-nodes -> default outbound -> internet"]
    assert list(finding["evidence"][0]) == ["request", "status", "sha256"]
    assert finding["evidence"][0]["status"] == 200


def test_an_exception_is_shown_with_its_text():
    findings = json.loads(as_json(a_failing_report(), pages()))["findings"]
    (excepted,) = [finding for finding in findings if finding["verdict"] == "Excepted"]
    assert excepted["exception"] == {
        "reason": "The hub holds the registry's private endpoint.",
        "owner": "Network team",
        "expiry": "2027-03-31",
        "accepted": "Fail",
    }


def test_notes_about_the_audit_itself_are_shown():
    assert json.loads(as_json(a_failing_report(), pages()))["notes"] == list(a_failing_report().notes)


def test_the_order_in_which_checks_ran_changes_no_byte():
    report = a_failing_report()
    turned = replace(report, findings=report.findings[::-1], not_asked=dict(reversed(report.not_asked.items())))
    assert as_json(turned, pages()) == as_json(report, pages())


def test_digest_is_of_the_file_that_the_command_writes():
    assert (
        digest(a_failing_report(), pages()) == hashlib.sha256(as_json(a_failing_report(), pages()).encode()).hexdigest()
    )


def test_every_name_comes_back_as_it_was():
    findings = json.loads(as_json(a_hostile_report(), pages()))["findings"]
    assert {row["resource"] for row in findings} == {row.resource for row in a_hostile_report().findings}
