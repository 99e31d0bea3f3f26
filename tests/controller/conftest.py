"""Units of the controller: no API server, no waiting."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog


@pytest.fixture(autouse=True)
def log() -> Iterator[list[MutableMapping[str, Any]]]:
    """What was logged, shown when a test fails; the default rendering of tracebacks takes longer than the tests."""
    with structlog.testing.capture_logs() as lines:
        yield lines
    for line in lines:
        sys.stdout.write(f"{line}\n")
