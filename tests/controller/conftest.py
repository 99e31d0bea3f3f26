"""Units of the controller: no API server, no waiting."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from tests.fakes.cluster_in_memory import LATE


@pytest.fixture(autouse=True, params=[0.0, 0.02], ids=["at once", "late"])
def late(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test with watches that deliver before the answer to a write, and with watches that deliver after it."""
    token = LATE.set(request.param)
    yield
    LATE.reset(token)


@pytest.fixture(autouse=True)
def log() -> Iterator[list[MutableMapping[str, Any]]]:
    """What was logged, shown when a test fails; the default rendering of tracebacks takes longer than the tests."""
    with structlog.testing.capture_logs() as lines:
        yield lines
    for line in lines:
        sys.stdout.write(f"{line}\n")
