"""How hard properties are tried, and the figures of those that count: summed, and told at the end of the run."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# Enough to find what is wrong, and no clock on a machine that others use as well. CI tries the same examples
# of the same commit every time; elsewhere each run tries new ones.
settings.register_profile(
    "steady",
    deadline=None,
    max_examples=60,
    print_blob=True,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


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
