"""How hard properties are tried: fewer examples outside CI, like every large enumeration (tests/sampling.py)."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.sampling import is_ci, is_full

EXAMPLES, SAMPLE = 60, 20


def has_every_example(config: pytest.Config) -> bool:
    """Whether this run tries each property with EXAMPLES: CI leaves out none of them."""
    return is_ci() or is_full(config)


def pytest_configure(config: pytest.Config) -> None:
    """Enough to find what is wrong, and no clock on a machine that others use as well.

    CI tries the same examples of the same commit every time; elsewhere each run tries new ones.
    """
    settings.register_profile(
        "steady",
        deadline=None,
        max_examples=EXAMPLES if has_every_example(config) else SAMPLE,
        print_blob=True,
        derandomize="CI" in os.environ,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("steady")


@pytest.hookimpl(trylast=True)  # below the figures
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not has_every_example(terminalreporter.config):
        line = f"examples of each property: sample of {SAMPLE} of {EXAMPLES}; one that fails prints how to repeat it"
        terminalreporter.write_line(line)
