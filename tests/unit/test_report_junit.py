"""JUnit XML as pipelines read it."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from hermetic.audit.model.findings import Verdict
from hermetic.audit.report.junit import as_junit
from tests.audit_reports import NODES, a_failing_report, a_hostile_report, a_sealed_report, an_empty_report, pages

REPORTS = [a_failing_report(), a_sealed_report(), an_empty_report(), a_hostile_report()]


@pytest.mark.parametrize("report", REPORTS)
def test_a_reader_of_junit_counts_what_the_report_counts(report):
    cases = [case for suite in JUnitXml.fromstring(as_junit(report, pages()).encode()) for case in suite]
    kinds = [type(outcome) for case in cases for outcome in case.result]
    summary = report.summary
    assert len(cases) == len(report.findings)
    assert kinds.count(Failure) == summary[Verdict.FAIL]
    assert kinds.count(Error) == summary[Verdict.UNKNOWN]
    assert kinds.count(Skipped) == summary[Verdict.EXCEPTED] + summary[Verdict.NOT_APPLICABLE]


@pytest.mark.parametrize("report", REPORTS)
def test_the_totals_of_a_suite_are_those_of_its_cases(report):
    root = Xml.fromstring(as_junit(report, pages()))
    for suite in [root, *root]:
        for attribute, tag in {
            "tests": "testcase",
            "failures": "failure",
            "errors": "error",
            "skipped": "skipped",
        }.items():
            assert int(suite.attrib[attribute]) == len(list(suite.iter(tag)))


def test_a_failure_says_severity_path_remedy_and_evidence():
    root = Xml.fromstring(as_junit(a_failing_report(), pages()))
    case = next(
        case for case in root.iter("testcase") if case.attrib["classname"] == "hermetic.subnet-default-outbound"
    )
    (failure,) = case
    assert case.attrib["name"] == NODES
    assert failure.attrib["type"] == "critical"
    assert failure.attrib["message"].startswith("defaultOutboundAccess is not set")
    text = failure.text or ""
    assert "path: subnet snet-nodes -> default outbound -> internet" in text
    assert "remedy: az network vnet subnet update" in text
    assert re.search(r"evidence: GET .*: 200 sha256:[0-9a-f]{64}", text)


def test_a_suite_is_a_family_and_says_what_was_asked():
    suites = Xml.fromstring(as_junit(a_failing_report(), pages())).findall("testsuite")
    assert [suite.attrib["name"][:2] for suite in suites] == ["A.", "B.", "C.", "D.", "E.", "F.", "H."]
    properties = {
        property_element.attrib["name"]: property_element.attrib["value"]
        for property_element in suites[0].iter("property")
    }
    assert properties["verdict"] == "Fail"
    assert properties["notAsked.kube"] == "k8s-externalips k8s-public-lb"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suites[0].attrib["timestamp"])


def test_control_characters_cannot_break_the_document():
    text = as_junit(a_hostile_report(), pages())
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", text)
    names = [case.attrib["name"] for case in Xml.fromstring(text.encode()).iter("testcase")]
    assert "</script><script>alert(1)</script>" in names
    assert "]]>\ufffd\ufffd[31m\ufffd\ufffd\ufffd" in names
