"""The output formats of `hermetic audit`, and which of them a file gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hermetic.audit.model.findings import CheckPage
from hermetic.audit.result.report import Report
from hermetic.errors import InputError

Form = Callable[[Report, Mapping[str, CheckPage]], str]

FORMS = ("table", "json", "sarif", "junit", "openreports", "html", "oscal", "csv")
# File endings of each format; without -o, the first format with the file's ending is used.
ENDINGS: Mapping[str, tuple[str, ...]] = {
    "table": (".txt", ".text", ".log"),
    "json": (".json",),
    "sarif": (".sarif", ".json"),
    "junit": (".xml",),
    "openreports": (".yaml", ".yml", ".json"),
    "html": (".html", ".htm"),
    "oscal": (".oscal", ".json"),
    "csv": (".csv",),
}


def rendered(form: str, report: Report, pages: Mapping[str, CheckPage]) -> str:
    """The report in one format; formats are imported on use."""
    return _form(form)(report, pages)


def form_of_file(file: Path, chosen: str | None) -> str:
    """The format of a file: the chosen one if the file's ending allows it, else the one of its ending.

    A name without an ending gets the chosen format, or the table. Raises InputError for any other ending: a text named
    report.pdf would be taken for what it is not.
    """
    ending = file.suffix.lower()
    if chosen is not None and ending in ENDINGS[chosen]:
        return chosen
    by_ending = next((form for form, endings in ENDINGS.items() if ending in endings), None)
    if by_ending is None and ending:
        known_endings = sorted({ending for endings in ENDINGS.values() for ending in endings})
        raise InputError(
            f"--out {file}: no format has the ending '{ending}'",
            fix=f"use one of {', '.join(known_endings)}; a browser prints the .html to PDF",
        )
    return by_ending or chosen or "table"


def _form(name: str) -> Form:  # noqa: PLR0911 - one line for each form
    if name == "json":
        from hermetic.audit.report.json_form import as_json

        return as_json
    if name == "sarif":
        from hermetic.audit.report.sarif import as_sarif

        return as_sarif
    if name == "junit":
        from hermetic.audit.report.junit import as_junit

        return as_junit
    if name == "openreports":
        from hermetic.audit.report.openreports import as_openreports

        return as_openreports
    if name == "html":
        from hermetic.audit.report.page import as_html

        return as_html
    if name == "oscal":
        from hermetic.audit.report.oscal import as_oscal

        return as_oscal
    if name == "csv":
        from hermetic.audit.report.csv_form import as_csv

        return as_csv
    from hermetic.audit.report.table import as_table

    return as_table
