"""A plugin of pytest for bench/mutants.py: names the running test to coverage, and reports for each layer what failed.

HERMETIC_MUTANT_TESTS is a JSON file with the ids of tests by layer. After the first failure of a layer its other tests
are skipped. The answer, `{"failed": {layer: test}, "collected": N}`, goes to the file HERMETIC_MUTANT_ANSWER.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lines that a test reaches are recorded under its id."""
    recorder = coverage.Coverage.current()
    if recorder is not None:
        recorder.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        if recorder is not None:
            recorder.switch_context("")


class LayerReport:
    """Which layers have a test that failed."""

    def __init__(self, layers: dict[str, list[str]], answer: Path) -> None:
        self._layer_of = {test: layer for layer, tests in layers.items() for test in tests}
        self._answer = answer
        self._failed: dict[str, str] = {}
        self._collected = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected = len(session.items)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self._layer_of.get(item.nodeid) in self._failed:
            pytest.skip("another test of its layer failed")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.setdefault(self._layer_of[report.nodeid], report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._answer.write_text(json.dumps({"failed": self._failed, "collected": self._collected}))


def pytest_configure(config: pytest.Config) -> None:
    tests = os.environ.get("HERMETIC_MUTANT_TESTS")
    if tests:
        layers = json.loads(Path(tests).read_text())
        config.pluginmanager.register(LayerReport(layers, Path(os.environ["HERMETIC_MUTANT_ANSWER"])))
