"""ClusterReport of OpenReports: words, counts and size. A real API server judges its shape in tests/controlplane."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermetic.audit.model.findings import AcceptedException, Severity, Verdict
from hermetic.audit.report.openreports import as_openreports, cluster_report
from tests.audit_reports import NODES, SCRIPT, a_failing_report, a_hostile_report, an_empty_report, pages


@pytest.mark.parametrize(
    ("verdict", "severity", "word"),
    [
        (Verdict.PASS, Severity.CRITICAL, "pass"),
        (Verdict.FAIL, Severity.CRITICAL, "fail"),
        (Verdict.FAIL, Severity.HIGH, "fail"),
        (Verdict.FAIL, Severity.MEDIUM, "warn"),
        (Verdict.FAIL, Severity.LOW, "warn"),
        (Verdict.FAIL, Severity.INFO, "warn"),
        (Verdict.UNKNOWN, Severity.CRITICAL, "error"),
        (Verdict.UNKNOWN, Severity.LOW, "error"),
        (Verdict.EXCEPTED, Severity.CRITICAL, "skip"),
        (Verdict.NOT_APPLICABLE, Severity.HIGH, "skip"),
    ],
)
def test_every_verdict_has_its_word_and_keeps_its_name(verdict, severity, word):
    finding = replace(a_failing_report().findings[0], verdict=verdict, severity=severity)
    shown = cluster_report(replace(a_failing_report(), findings=(finding,)), pages())
    (result,) = shown["results"]
    assert (result["result"], result["severity"], result["properties"]["verdict"]) == (word, severity, verdict)
    assert shown["summary"] == {
        result_word: int(result_word == word) for result_word in ("pass", "fail", "warn", "error", "skip")
    }


def test_a_result_names_the_azure_resource_the_path_and_the_evidence():
    results = cluster_report(a_failing_report(), pages())["results"]
    result = next(
        result_of_check for result_of_check in results if result_of_check["policy"] == "subnet-default-outbound"
    )
    assert result["rule"] == "DefaultOutboundNotDisabled"
    assert result["category"] == "A. Outbound methods"
    assert result["timestamp"] == {"seconds": 1795521674, "nanos": 0}
    properties = result["properties"]
    assert properties["armId"] == NODES
    assert properties["paths"] == "subnet snet-nodes -> default outbound -> internet"
    assert all(digest.startswith("sha256:") for digest in properties["evidence"].split())
    assert len(properties["evidence"].split()) == 2


@pytest.mark.parametrize(
    ("resource", "reference"),
    [
        (
            "apps/v1/Deployment inference/llama",
            {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "inference", "name": "llama"},
        ),
        ("v1/Node aks-gpu-0", {"apiVersion": "v1", "kind": "Node", "name": "aks-gpu-0"}),
        (NODES, None),
        ("pool gpu", None),
        (SCRIPT, None),
    ],
)
def test_an_object_of_the_cluster_is_referred_to_as_one(resource, reference):
    finding = replace(a_failing_report().findings[0], resource=resource)
    (result,) = cluster_report(replace(a_failing_report(), findings=(finding,)), pages())["results"]
    assert result.get("resources") == ([reference] if reference else None)


def test_an_accepted_unknown_says_so():
    accepted = AcceptedException("known gap", "Network team", "2027-03-31", accepted=Verdict.UNKNOWN)
    finding = replace(a_failing_report().findings[0], verdict=Verdict.EXCEPTED, exception=accepted)
    (result,) = cluster_report(replace(a_failing_report(), findings=(finding,)), pages())["results"]
    assert result["properties"]["exception"] == "Unknown accepted by Network team until 2027-03-31: known gap"


def test_properties_are_strings_whatever_the_estate_is_called():
    for result in json.loads(as_openreports(a_hostile_report(), pages()))["results"]:
        assert all(isinstance(value, str) for value in result["properties"].values())


def test_a_report_too_large_for_the_cluster_keeps_the_worst_and_counts_all():
    report = a_failing_report()
    passed = next(finding for finding in report.findings if finding.verdict is Verdict.PASS)
    many = tuple(replace(passed, resource=f"{NODES}-{number}") for number in range(4000))
    shown = cluster_report(replace(report, findings=(*many, *report.findings)), pages())
    assert len(json.dumps(shown)) < 1_048_576
    assert shown["configuration"]["limits"]["maxResults"] == len(shown["results"])
    assert shown["summary"] == {"pass": 4010, "fail": 3, "warn": 3, "error": 2, "skip": 2}
    # cause by cause, so in the order of fixing
    assert sorted(result["result"] for result in shown["results"][:8]) == ["error"] * 2 + ["fail"] * 3 + ["warn"] * 3


def test_no_limit_is_claimed_where_everything_fits():
    assert "configuration" not in cluster_report(a_failing_report(), pages())
    assert cluster_report(an_empty_report(), pages())["results"] == []
