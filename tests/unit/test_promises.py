"""Every guarantee names the test that verifies it, and every test that is named exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROMISES = REPOSITORY / "docs" / "promises.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROWS = [
    line
    for line in PROMISES.read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| guarantee |", "|---"))
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_every_promise_is_shown_by_tests_that_exist(row):
    named = NAMED.findall(row)
    assert named, "a guarantee that nothing verifies"
    for file, function in named:
        assert function in _tests_of(REPOSITORY / file), f"{file} has no {function}"


def test_every_name_on_the_page_is_read():
    assert len(NAMED.findall(PROMISES.read_text())) == PROMISES.read_text().count("::")


def _tests_of(file: Path) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, functions)}
