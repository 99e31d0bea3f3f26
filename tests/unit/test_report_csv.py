"""The findings as CSV: RFC 4180, one row each, and no cell that a spreadsheet computes."""

from __future__ import annotations

import csv
import io

import pytest

from hermetic.audit.report.causes import by_cause
from hermetic.audit.report.csv_form import COLUMNS, as_csv, guarded
from tests.audit_reports import a_failing_report, a_hostile_report, an_empty_report, pages


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_there_is_a_row_for_each_finding_cause_by_cause():
    report = a_failing_report()
    rows_of_causes = [(row["causeOrder"], row["check"], row["resource"]) for row in rows(as_csv(report, pages()))]
    assert rows_of_causes == [
        (str(cause.number) if cause else "", finding.check, finding.resource)
        for finding, cause in by_cause(report.findings, pages())
    ]


def test_rows_end_in_crlf_and_the_header_names_every_column():
    text = as_csv(a_failing_report(), pages())
    assert text.split("\r\n")[0] == ",".join(f'"{column}"' for column in COLUMNS)
    assert text.endswith('"\r\n')
    assert as_csv(an_empty_report(), pages()).count("\r\n") == 1


def test_an_exception_is_in_columns_of_its_own():
    (row,) = [row for row in rows(as_csv(a_failing_report(), pages())) if row["verdict"] == "Excepted"]
    assert (row["exceptionOwner"], row["exceptionExpiry"], row["exceptionAccepted"]) == (
        "Network team",
        "2027-03-31",
        "Fail",
    )


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "  =1+1", "\t=1", "\n=1", "\r=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201"],
)
def test_a_formula_gets_an_apostrophe(text):
    assert guarded(text)[:1] in {"'", "\ufffd"}
    assert not guarded(text).lstrip().startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("text", ["", "/subscriptions/1", "0.0.0.0/0", "a=b", "snet-nodes"])
def test_any_other_text_stays_as_it_is(text):
    assert guarded(text) == text


def test_no_cell_of_hostile_names_is_a_formula_or_holds_what_is_not_visible():
    for row in rows(as_csv(a_hostile_report(), pages())):
        assert set(row) == set(COLUMNS)
        for value in row.values():
            assert not value.startswith(("=", "+", "-", "@", "\t"))
            assert "\x1b" not in value
    as_csv(a_hostile_report(), pages()).encode()
