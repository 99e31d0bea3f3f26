"""What every format has: the cause of each finding in the order of fixing, and who ran the audit with which files."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from hermetic.audit.model.findings import Verdict
from hermetic.audit.report.causes import by_cause, causes_of
from hermetic.audit.report.csv_form import as_csv
from hermetic.audit.report.json_form import as_json
from hermetic.audit.report.junit import as_junit
from hermetic.audit.report.openreports import as_openreports
from hermetic.audit.report.oscal import as_oscal
from hermetic.audit.report.page import as_html
from hermetic.audit.report.sarif import as_sarif
from hermetic.audit.report.table import as_table
from hermetic.audit.result.report import Report, Run
from tests.audit_reports import a_failing_report, pages

RUN = Run("auditor@contoso.example on jump-01", f"sha256:{'1' * 64}", f"sha256:{'2' * 64}")
REPORT = replace(a_failing_report(), run=RUN)
Told = tuple[str, str]

FORMS: dict[str, Callable[[Report], str]] = {
    "table": lambda report: as_table(report, pages(), wide=True),
    "json": lambda report: as_json(report, pages()),
    "html": lambda report: as_html(report, pages()),
    "sarif": lambda report: as_sarif(report, pages()),
    "junit": lambda report: as_junit(report, pages()),
    "openreports": lambda report: as_openreports(report, pages()),
    "oscal": lambda report: as_oscal(report, pages()),
}


@pytest.mark.parametrize("form", FORMS)
def test_who_ran_it_and_with_which_files(form: str) -> None:
    text = " ".join(FORMS[form](REPORT).split())
    assert all(label in text for label in (RUN.by, RUN.policy, RUN.exceptions) if label)


@pytest.mark.parametrize("form", FORMS)
def test_a_report_that_does_not_say_who_ran_it_names_no_file(form: str) -> None:
    text = FORMS[form](replace(REPORT, run=None))
    assert not re.search(r'run[- ]by|"run"|policy-file|exceptions-file', text, re.IGNORECASE)


def wanted() -> list[Told]:
    """Check and resource of each open finding, cause by cause."""
    return [
        (finding.check, finding.resource) for finding, cause in by_cause(REPORT.findings, pages()) if cause is not None
    ]


def of_sarif() -> Iterator[Told]:
    for result in json.loads(as_sarif(REPORT, pages()))["runs"][0]["results"]:
        yield result["ruleId"], result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]


def of_openreports() -> Iterator[Told]:
    for result in json.loads(as_openreports(REPORT, pages()))["results"]:
        yield result["policy"], result["properties"].get("armId") or result["properties"]["resource"]


def of_csv() -> Iterator[Told]:
    for row in csv.DictReader(io.StringIO(as_csv(REPORT, pages()), newline="")):
        yield row["check"], row["resource"]


@pytest.mark.parametrize("read", [of_sarif, of_openreports, of_csv])
def test_lists_are_in_the_order_of_fixing(read: Callable[[], Iterable[Told]]) -> None:
    open_ = set(wanted())
    assert [key for key in read() if key in open_] == wanted()


def test_json_has_the_causes_in_the_order_of_fixing_each_by_check_and_resource() -> None:
    document = json.loads(as_json(REPORT, pages()))["causes"]
    assert [cause["id"] for cause in document] == [cause.id for cause in causes_of(REPORT.findings, pages())]
    for cause in document:
        settles = [(finding["check"], finding["resource"].lower()) for finding in cause["settles"]]
        assert settles == sorted(settles)


def test_cases_of_a_suite_are_in_the_order_of_fixing() -> None:
    for suite in Xml.fromstring(as_junit(REPORT, pages())).iter("testsuite"):
        keys = [
            (case.attrib["classname"].removeprefix("hermetic."), case.attrib["name"]) for case in suite.iter("testcase")
        ]
        open_ = [key for key in keys if key in set(wanted())]
        assert open_ == [key for key in wanted() if key in set(open_)]


@pytest.mark.parametrize("form", ["sarif", "junit", "openreports", "oscal"])
def test_tools_are_told_the_cause_of_each_finding(form: str) -> None:
    text: Any = FORMS[form](REPORT)
    causes = causes_of(REPORT.findings, pages())
    assert len(causes) > 3
    assert [cause for cause in causes if cause.id not in text and f"{cause.number} {cause.title}" not in text] == []


def test_what_is_kept_of_a_report_that_is_too_large_is_the_worst_in_the_order_of_fixing() -> None:
    plain = next(row for row in REPORT.findings if row.verdict is Verdict.PASS)
    fine = tuple(replace(plain, resource=f"/subscriptions/{number}", message="m" * 16_000) for number in range(120))
    shown = json.loads(as_openreports(replace(REPORT, findings=(*fine, *REPORT.findings)), pages()))
    rows = [(row["policy"], row["properties"].get("armId", "")) for row in shown["results"]]
    assert shown["configuration"]["limits"]["maxResults"] == len(rows) < len(fine)
    assert [row for row in rows if row in set(wanted())] == [row for row in wanted() if row[1].startswith("/")]
