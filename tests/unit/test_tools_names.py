"""The counter of untyped names and its ceilings."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.names import HEADER, SLACK, ceiling_errors, count_names, lowered


@pytest.mark.parametrize(
    "source",
    [
        "one = 1",
        "def f(one): pass",
        "def f(*, _one=1): pass",
        "def f(*one): pass",
        "lambda one: 1",
        "[1 for one in pods]",
        "for one, pod in pods: pass",
        "with lock as one: pass",
        "if (one := 1): pass",
        "try: pass\nexcept ValueError as one: pass",
        "match pod:\n    case [_, *one]: pass",
        "match pod:\n    case {'a': 1, **one}: pass",
        "match pod:\n    case Pod() as one: pass",
        "one: int",
    ],
)
def test_binding_of_an_untyped_word_is_counted_once(source: str) -> None:
    assert count_names([source]).untyped == Counter({"one": 1})


@pytest.mark.parametrize(
    "source", ["pod = one", "pod.one = 1", "import one", "def one(): pass", "f(one=1)", "ones = 1"]
)
def test_use_import_attribute_or_typed_name_is_not_counted(source: str) -> None:
    assert count_names([source]).total == 0


def test_share_is_in_percent_of_all_bindings() -> None:
    assert count_names(["one = pod = node = zone = 1"]).share == 25.0
    assert count_names([]).share == 0.0


@pytest.mark.parametrize(
    ("total", "ceiling", "message"),
    [
        (100, 100, None),
        (100, 100 + SLACK, None),
        (101, 100, "101 untyped names of variables, at most 100 are allowed"),
        (100, 101 + SLACK, "the ceiling of 111 is too high"),
        (100, None, "no ceiling"),
    ],
)
def test_count_above_or_far_below_its_ceiling_is_an_error(total: int, ceiling: int | None, message: str | None) -> None:
    errors = list(ceiling_errors({"operator": total}, {} if ceiling is None else {"operator": ceiling}))
    assert [message in error for error in errors if message] == ([True] if message else [])
    assert bool(errors) == (message is not None)


def test_lowered_ceilings_follow_improvements_and_never_rise() -> None:
    text = lowered({"operator": 90, "tests": 120, "bench": 5}, {"operator": 100, "tests": 110})
    assert text == HEADER + "operator = 90\ntests = 110\nbench = 5\n"
