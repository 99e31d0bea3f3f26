"""Units of the controller: no API server, no waiting."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, MutableMapping
from types import CodeType
from typing import Any

import pytest
import structlog

from tests.fakes.cluster_in_memory import LATE, ClusterInMemory

# Seconds after the answer to a write. Real watches deliver late; outside CI, the others are tried by a sample.
LATE_WATCHES = pytest.param(0.02, id="late")
AT_ONCE = pytest.param(0.0, id="at once", marks=pytest.mark.sampled(30, of="watches that deliver at once"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test with a cluster in memory runs with both kinds of watch, unless it names its own `late` and why."""
    is_named = any(mark.args[0] == "late" for mark in metafunc.definition.iter_markers("parametrize"))
    if not is_named and _has_a_cluster(metafunc.function, set()):
        metafunc.parametrize("late", [AT_ONCE, LATE_WATCHES], indirect=True)


def _has_a_cluster(function: Any, seen: set[str]) -> bool:
    """Whether a function, or one of the tests' own that it calls, names a cluster in memory."""
    function = inspect.unwrap(function)
    seen.add(function.__qualname__)
    names = [function.__globals__.get(name) for name in _names_in(function.__code__)]
    if any(isinstance(name_found, type) and issubclass(name_found, ClusterInMemory) for name_found in names):
        return True
    ours = [function for function in names if inspect.isfunction(function) and function.__module__.startswith("tests.")]
    return any(_has_a_cluster(function, seen) for function in ours if function.__qualname__ not in seen)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_in(inner)


@pytest.fixture(autouse=True)
def late(request: pytest.FixtureRequest) -> Iterator[None]:
    """How late the watches of this test's clusters are; a test that was not seen to have one may make none."""
    token = LATE.set(getattr(request, "param", None))
    yield
    LATE.reset(token)


@pytest.fixture(autouse=True)
def log() -> Iterator[list[MutableMapping[str, Any]]]:
    """What was logged, shown when a test fails; the default rendering of tracebacks takes longer than the tests."""
    with structlog.testing.capture_logs() as lines:
        yield lines
    for line in lines:
        sys.stdout.write(f"{line}\n")
