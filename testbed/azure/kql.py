"""The part of KQL that the stand-in's Resource Graph understands.

    Resources | where type in~ ('a', 'b') and id contains '/x/' | extend n = properties.name
              | mv-expand s = properties.subnets | project id, s | order by id asc | limit 10
              | summarize n = count() by type | distinct type | count

Everything else is refused as a query that cannot be parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.azure.kql_expressions import Expression, Row, expression
from testbed.azure.kql_tokens import KqlError, Reader, tokens_of

Rows = list[Row]
Step = Callable[[Rows], Rows]
# rows that one record may expand into unless the query says otherwise; the rest is dropped without a word
MV_EXPAND_ROWS = 128
MV_EXPAND_MOST = 2000


@dataclass(frozen=True)
class Query:
    """table: folded. types: the only ones whose rows can pass the first filters, None: all. steps: in order.

    limited: the query itself says how many rows, so there is nothing to page.
    """

    table: str
    types: frozenset[str] | None
    steps: tuple[Step, ...]
    limited: bool

    def run(self, rows: Rows) -> Rows:
        for step in self.steps:
            rows = step(rows)
        return rows


def parse(query: str) -> Query:
    reader = Reader(tokens_of(query))
    table, steps = reader.name().lower(), []
    types: frozenset[str] | None = None
    only_filters, limited = True, False
    while reader.take("|"):
        operator = reader.take(*OPERATORS)
        if operator is None:
            raise KqlError(f"unknown operator {reader.now.text!r}")
        if operator == "where":
            condition = expression(reader)
            if only_filters and condition.types is not None:
                types = condition.types if types is None else types & condition.types
            steps.append(_where(condition))
            continue
        only_filters, limited = False, limited or operator in {"limit", "take", "count"}
        steps.append(OPERATORS[operator](reader))
    if not reader.is_at_end:
        raise KqlError(f"unexpected {reader.now.text!r}")
    return Query(table, types, tuple(steps), limited)


def _where(condition: Expression) -> Step:
    return lambda rows: [row for row in rows if condition.value(row)]


def _columns(reader: Reader) -> list[tuple[str, Expression]]:
    columns = []
    while True:
        read = expression(reader)
        if reader.take("="):
            name, read = read.name, expression(reader)
            columns.append((name, read))
        else:
            columns.append((read.name, read))
        if not reader.take(","):
            return columns


def _project(reader: Reader) -> Step:
    columns = _columns(reader)
    return lambda rows: [{name: read.value(row) for name, read in columns} for row in rows]


def _extend(reader: Reader) -> Step:
    columns = _columns(reader)
    return lambda rows: [{**row, **{name: read.value(row) for name, read in columns}} for row in rows]


def _project_away(reader: Reader) -> Step:
    names = {name for name, _ in _columns(reader)}
    return lambda rows: [{name: value for name, value in row.items() if name not in names} for row in rows]


def _mv_expand(reader: Reader) -> Step:
    (name, read), most = _columns(reader)[0], MV_EXPAND_ROWS
    if reader.take("limit"):
        most = min(reader.number(), MV_EXPAND_MOST)

    def expand(rows: Rows) -> Rows:
        expanded = []
        for row in rows:
            value = read.value(row)
            items: list[Any] = value if isinstance(value, list) and value else [None if value == [] else value]
            expanded += [{**row, name: item} for item in items[:most]]
        return expanded

    return expand


def _order(reader: Reader) -> Step:
    reader.expect("by")
    keys = []
    while True:
        read = expression(reader)
        keys.append((read, reader.take("asc", "desc") != "asc"))
        if not reader.take(","):
            break

    def ordered(rows: Rows) -> Rows:
        for read, descending in reversed(keys):
            rows = sorted(rows, key=lambda row, read=read: str(read.value(row) or "").casefold(), reverse=descending)  # type: ignore[misc]
        return rows

    return ordered


def _limit(reader: Reader) -> Step:
    most = reader.number()
    return lambda rows: rows[:most]


def _count(_: Reader) -> Step:
    return lambda rows: [{"Count": len(rows)}]


def _distinct(reader: Reader) -> Step:
    columns = _columns(reader)

    def distinct(rows: Rows) -> Rows:
        seen: dict[str, Row] = {}
        for row in rows:
            kept = {name: read.value(row) for name, read in columns}
            seen.setdefault(repr(kept), kept)
        return list(seen.values())

    return distinct


def _summarize(reader: Reader) -> Step:
    """Only `[name =] count() [by columns]`."""
    name = reader.name()
    if reader.take("="):
        word = reader.name()
    else:
        name, word = "count_", name
    if word.lower() != "count":
        raise KqlError(f"unknown aggregation {word!r}")
    reader.expect("(")
    reader.expect(")")
    columns = _columns(reader) if reader.take("by") else []

    def summarize(rows: Rows) -> Rows:
        groups: dict[str, Row] = {}
        for row in rows:
            key = {column: read.value(row) for column, read in columns}
            group = groups.setdefault(repr(key), {**key, name: 0})
            group[name] += 1
        return list(groups.values())

    return summarize


OPERATORS: dict[str, Callable[[Reader], Step]] = {
    "where": _limit,  # handled by parse: its condition also narrows the types
    "project": _project,
    "extend": _extend,
    "project-away": _project_away,
    "mv-expand": _mv_expand,
    "order": _order,
    "sort": _order,
    "limit": _limit,
    "take": _limit,
    "count": _count,
    "distinct": _distinct,
    "summarize": _summarize,
}
