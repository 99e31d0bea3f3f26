"""What tests counted (`record_property`), printed at the end of the run: numbers are added up, words are repeated."""

from __future__ import annotations

from collections import Counter

import pytest

from testbed.programs import OLDEST_KUBERNETES_VERSION
from tests import sampling


def show(terminalreporter: pytest.TerminalReporter) -> None:
    sums: Counter[str] = Counter()
    figure_lines: list[str] = []
    samples: list[sampling.Drawn] = []
    for name, value in _recorded(terminalreporter):
        if name == sampling.PROPERTY:
            samples.append(value)
        elif isinstance(value, int):
            sums[name] += value
        else:
            figure_lines.append(f"{name}: {value}")
    sampled = sampling.lines(samples, sampling.seed_of(terminalreporter.config))
    lines = [*(f"{name}: {value}" for name, value in sums.items()), *_on_the_oldest_release(terminalreporter)]
    lines += [*figure_lines, *sampled]
    if lines:
        terminalreporter.section("figures")
    for line in lines:
        terminalreporter.write_line(line)


def _on_the_oldest_release(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """How many tests of the cluster passed, in a run on the oldest supported Kubernetes."""
    if not terminalreporter.config.getoption("--oldest-kubernetes"):
        return []
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", ()) if report.when == "call"]
    number = sum(nodeid.startswith("tests/controlplane/") for nodeid in passed)
    return [f"tests of the cluster passed on Kubernetes {OLDEST_KUBERNETES_VERSION}: {number}"]


def _recorded(terminalreporter: pytest.TerminalReporter) -> list[tuple[str, object]]:
    return [
        user_property
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for user_property in report.user_properties
    ]
