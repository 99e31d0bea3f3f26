"""Expressions of a Resource Graph query, compiled to functions of a row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.azure.kql_tokens import KqlError, Reader

Row = dict[str, Any]


@dataclass(frozen=True)
class Expression:
    """value: of a row. name: what a column of it is called. types: resource types it admits at most; None: any."""

    value: Callable[[Row], Any]
    name: str = ""
    types: frozenset[str] | None = None


def expression(reader: Reader) -> Expression:
    left = _conjunction(reader)
    while reader.take("or"):
        left = _either(left, _conjunction(reader))
    return left


def _conjunction(reader: Reader) -> Expression:
    left = _comparison(reader)
    while reader.take("and"):
        left = _both(left, _comparison(reader))
    return left


def _either(left: Expression, right: Expression) -> Expression:
    types = None if left.types is None or right.types is None else left.types | right.types
    return Expression(lambda row: bool(left.value(row)) or bool(right.value(row)), types=types)


def _both(left: Expression, right: Expression) -> Expression:
    type_sets = [side.types for side in (left, right) if side.types is not None]
    types = frozenset.intersection(*type_sets) if type_sets else None
    return Expression(lambda row: bool(left.value(row)) and bool(right.value(row)), types=types)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def _folded(value: Any) -> str:
    return _text(value).casefold()


def _words(value: Any) -> set[str]:
    return set(re.findall(r"\w+", _folded(value)))


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return _text(left) == _text(right)
    return left is not None and right is not None and bool(left == right)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _same,
    "!=": lambda left, right: not _same(left, right),
    "=~": lambda left, right: _folded(left) == _folded(right),
    "!~": lambda left, right: _folded(left) != _folded(right),
    "contains": lambda left, right: _folded(right) in _folded(left),
    "!contains": lambda left, right: _folded(right) not in _folded(left),
    "startswith": lambda left, right: _folded(left).startswith(_folded(right)),
    "!startswith": lambda left, right: not _folded(left).startswith(_folded(right)),
    "endswith": lambda left, right: _folded(left).endswith(_folded(right)),
    "!endswith": lambda left, right: not _folded(left).endswith(_folded(right)),
    "has": lambda left, right: _words(right) <= _words(left),
    "!has": lambda left, right: not _words(right) <= _words(left),
    "<": lambda left, right: left is not None and bool(left < right),
    ">": lambda left, right: left is not None and bool(left > right),
    "<=": lambda left, right: left is not None and bool(left <= right),
    ">=": lambda left, right: left is not None and bool(left >= right),
}
MEMBERSHIP = ("in", "in~", "!in", "!in~")


def _comparison(reader: Reader) -> Expression:
    left = _primary(reader)
    if word := reader.take(*MEMBERSHIP):
        return _member(reader, left, word)
    if word := reader.take(*COMPARISONS):
        right, compare = _primary(reader), COMPARISONS[word]
        types = None
        if left.name == "type" and word in {"==", "=~"}:
            types = frozenset({_folded(right.value({}))})
        return Expression(lambda row: compare(left.value(row), right.value(row)), types=types)
    return left


def _member(reader: Reader, left: Expression, word: str) -> Expression:
    reader.expect("(")
    choices = [_primary(reader)]
    while reader.take(","):
        choices.append(_primary(reader))
    reader.expect(")")
    fold = _folded if word.endswith("~") else _text
    folded_choices = frozenset(fold(choice.value({})) for choice in choices)
    if word.startswith("!"):
        return Expression(lambda row: fold(left.value(row)) not in folded_choices)
    types = frozenset(choice.casefold() for choice in folded_choices) if left.name == "type" else None
    return Expression(lambda row: fold(left.value(row)) in folded_choices, types=types)


def _primary(reader: Reader) -> Expression:
    if reader.take("("):
        inside = expression(reader)
        reader.expect(")")
        return inside
    if reader.now.kind in {"string", "number"}:
        token = reader.next()
        literal = token.text if token.kind == "string" else json.loads(token.text)
        return Expression(lambda _: literal)
    if word := reader.take("true", "false"):
        return Expression(lambda _: word == "true")
    name = reader.name()
    base = _call(reader, name) if reader.take("(") else _column(name)
    return _path(reader, base)


def _column(name: str) -> Expression:
    def value(row: Row) -> Any:
        if name not in row:
            raise KqlError(f"no column is called {name!r}")
        return row[name]

    return Expression(value, name)


def _path(reader: Reader, base: Expression) -> Expression:
    while True:
        if reader.take("."):
            base = _member_of(base, reader.name())
        elif reader.take("["):
            step = reader.next()
            base = _member_of(base, int(step.text) if step.kind == "number" else step.text)
            reader.expect("]")
        else:
            return base


def _member_of(base: Expression, step: str | int) -> Expression:
    def value(row: Row) -> Any:
        row_value = base.value(row)
        if isinstance(step, int):
            return row_value[step] if isinstance(row_value, list) and step < len(row_value) else None
        return row_value.get(step) if isinstance(row_value, dict) else None

    return Expression(value, f"{base.name}_{step}")


def _empty(value: Any) -> bool:
    return value is None or value == ""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tostring": _text,
    "tolower": lambda value: _text(value).lower(),
    "toupper": lambda value: _text(value).upper(),
    "tobool": lambda value: {"true": True, "false": False}.get(_folded(value)),
    "toint": lambda value: int(value) if str(value).lstrip("-").isdigit() else None,
    "isempty": _empty,
    "isnotempty": lambda value: not _empty(value),
    "isnull": lambda value: value is None,
    "isnotnull": lambda value: value is not None,
    "not": lambda value: not value,
    "array_length": lambda value: len(value) if isinstance(value, list) else None,
    "strcat": lambda *values: "".join(map(_text, values)),
    "split": lambda value, by: _text(value).split(by),
    "strlen": lambda value: len(_text(value)),
    "coalesce": lambda *values: next((value for value in values if not _empty(value)), None),
    "iff": lambda condition, one, other: one if condition else other,
}


def _call(reader: Reader, name: str) -> Expression:
    function = FUNCTIONS.get(name.lower())
    if function is None:
        raise KqlError(f"unknown function {name!r}")
    arguments = []
    while not reader.take(")"):
        arguments.append(expression(reader))
        if not reader.take(","):
            reader.expect(")")
            break
    named = arguments[0].name if arguments else name
    return Expression(lambda row: function(*(argument.value(row) for argument in arguments)), named)
