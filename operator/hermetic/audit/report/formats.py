"""The formats by the names that `hermetic audit -o` knows them by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hermetic.audit.findings import CheckPage, Report
from hermetic.audit.report.junit import as_junit
from hermetic.audit.report.machine import as_json
from hermetic.audit.report.openreports import as_openreports
from hermetic.audit.report.oscal import as_oscal
from hermetic.audit.report.page import as_html
from hermetic.audit.report.sarif import as_sarif
from hermetic.audit.report.table import as_table

Format = Callable[[Report, Mapping[str, CheckPage]], str]


def _json(report: Report, _: Mapping[str, CheckPage]) -> str:
    return as_json(report)


FORMATS: Mapping[str, Format] = {
    "table": as_table,
    "json": _json,
    "sarif": as_sarif,
    "junit": as_junit,
    "openreports": as_openreports,
    "html": as_html,
    "oscal": as_oscal,
}
