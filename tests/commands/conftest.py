"""How many commands were parsed, told at the end of the run."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found = [
        f"{name}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
    ]
    if found:
        terminalreporter.section("figures")
    for line in found:
        terminalreporter.write_line(line)
