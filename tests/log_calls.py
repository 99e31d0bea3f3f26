"""What the product's own code logs, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hermetic

PACKAGE = Path(hermetic.__file__).parent
LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}


@dataclass(frozen=True)
class LogCall:
    """One call of structlog: the event, its level, and the keys beside those that every line has.

    `open`: more keys come with `**`.
    """

    event: str
    level: str
    keys: frozenset[str]
    open: bool


def log_calls() -> Iterator[LogCall]:
    """Every call `log.LEVEL("event", key=...)` of the package."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_log(node.func):
                (event,) = node.args
                assert isinstance(event, ast.Constant), f"{file}: an event has a fixed name"
                assert isinstance(event.value, str)
                named = frozenset(keyword.arg for keyword in node.keywords if keyword.arg is not None) - {"exc_info"}
                traced = node.func.attr == "exception" or any(keyword.arg == "exc_info" for keyword in node.keywords)
                keys = named | ({"exception"} if traced else set())
                yield LogCall(
                    event.value, LEVELS[node.func.attr], keys, any(keyword.arg is None for keyword in node.keywords)
                )


def _is_log(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == "log" and function.attr in LEVELS
