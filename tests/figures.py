"""What tests counted (`record_property`), printed at the end of the run: numbers are added up, words are repeated."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import sampling


def show(terminalreporter: pytest.TerminalReporter) -> None:
    sums: Counter[str] = Counter()
    words: list[str] = []
    samples: list[sampling.Drawn] = []
    for name, value in _recorded(terminalreporter):
        if name == sampling.PROPERTY:
            samples.append(value)
        elif isinstance(value, int):
            sums[name] += value
        else:
            words.append(f"{name}: {value}")
    sampled = sampling.lines(samples, sampling.seed_of(terminalreporter.config))
    found = [*(f"{name}: {value}" for name, value in sums.items()), *words, *sampled]
    if found:
        terminalreporter.section("figures")
    for line in found:
        terminalreporter.write_line(line)


def _recorded(terminalreporter: pytest.TerminalReporter) -> list[tuple[str, object]]:
    return [
        each
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for each in report.user_properties
    ]
