"""Figures of the property tests, summed over all of them and told at the end of the run."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    sums: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                sums.update({name: value for name, value in report.user_properties if isinstance(value, int)})
    if sums:
        terminalreporter.section("figures")
        for name, value in sums.items():
            terminalreporter.write_line(f"{name}: {value}")
