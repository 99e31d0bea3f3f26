"""Resource Graph: many rows per request, from an index that lags and leaves out what the caller may not read.

Its rows only add to ARM's own lists (see `discovery`). A result that is incomplete in any respect (truncated, fewer
rows than it counts, a row without an id) is not used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermetic.audit.estate.azure.graph import TABLES
from hermetic.audit.estate.azure.versions import RESOURCE_GRAPH as VERSION
from hermetic.audit.estate.questions import PackedBody, Problem, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.collect.azure.allowed_requests import RESOURCE_GRAPH as PATH
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.replies import ArmReply, Ask

ROWS_A_PAGE = 1_000
SUBSCRIPTIONS_A_QUERY = 200
MOST_PAGES = 2_000

_TARGET = f"{PATH}?api-version={VERSION}"
_PERMISSION = "Microsoft.ResourceGraph/resources/read"
# paging needs the column `id`, and the order keeps pages from overlapping
_COLUMNS = "project id, name, type, kind, location, sku, tags, properties | order by id asc"


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One row: its id as written, its type in lower case, and all of it."""

    id: str
    kind: str
    body: PackedBody


@dataclass(slots=True)
class Rows:
    """The rows of a query; with a problem, none of them may be used."""

    items: list[GraphRow] = field(default_factory=list)
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None


async def resources(client: ArmClient, kinds: Iterable[str], subscriptions: Iterable[str]) -> Rows:
    """All resources of these types in these subscriptions (bare ids) that Resource Graph has."""
    query = f"Resources | where type in~ ({_listed(kinds)}) | {_COLUMNS}"
    every = sorted(subscriptions)
    rows = Rows()
    for start in range(0, len(every), SUBSCRIPTIONS_A_QUERY):
        await _read(client, query, every[start : start + SUBSCRIPTIONS_A_QUERY], rows)
    return rows


async def rows_below(client: ArmClient, kind: str, scopes: Iterable[str], subscriptions: Iterable[str]) -> Rows:
    """All resources below these ids of one type that is asked of Resource Graph alone."""
    below = " or ".join(f"id startswith {_quoted(scope.rstrip('/') + '/')}" for scope in scopes)
    query = f"{TABLES[kind.lower()]} | where type =~ {_quoted(kind)} | where {below} | {_COLUMNS}"
    rows = Rows()
    await _read(client, query, sorted(subscriptions), rows)
    return rows


async def _read(client: ArmClient, query: str, subscriptions: list[str], rows: Rows) -> None:
    """Read every page of one query into the rows."""
    token, tokens, before = "", set[str](), len(rows.items)
    while rows.problem is None:
        reply = await client.ask(_page(query, subscriptions, token))
        rows.evidence += reply.evidence
        rows.problem = reply.problem or _not_whole(reply)
        if rows.problem is not None:
            return
        rows.items.extend(_row(row, reply) for row in reply.value["data"])
        client.progress.saw(len(reply.value["data"]))
        token = reply.value.get("$skipToken") or ""
        if not token:
            if len(rows.items) - before != reply.value["totalRecords"]:
                rows.problem = _cut(reply, f"{len(rows.items) - before} rows of {reply.value['totalRecords']}")
            return
        if not isinstance(token, str) or token in tokens or len(tokens) >= MOST_PAGES:
            rows.problem = _cut(reply, "the pages lead back to themselves, or have no end")
        tokens.add(str(token))


def _page(query: str, subscriptions: list[str], token: str) -> Ask:
    options: dict[str, Any] = {"$top": ROWS_A_PAGE, "resultFormat": "objectArray"}
    if token:
        options["$skipToken"] = token
    body = {"subscriptions": subscriptions, "query": query, "options": options}
    return Ask("POST", _TARGET, _PERMISSION, body)


def _not_whole(reply: ArmReply) -> Problem | None:
    """Why a page cannot be used; None when it can."""
    value, data = reply.value, reply.value.get("data") if isinstance(reply.value, Mapping) else None
    if not isinstance(data, list) or not all(_is_row(row) for row in data):
        return reply.but(UnreadReason.UNREADABLE, "the answer has no list `data` of rows with an id").problem
    if not _is_number(value.get("totalRecords")) or value.get("count", len(data)) != len(data):
        return _cut(reply, f"{len(data)} rows, and another count")
    if str(value.get("resultTruncated", "false")).lower() != "false":
        return _cut(reply, "resultTruncated")
    if reply.headers.get("x-ms-tenant-subscription-limit-hit", "").lower() == "true":
        return _cut(reply, "more subscriptions than Resource Graph searches")
    return None


def _is_row(row: Any) -> bool:
    return isinstance(row, Mapping) and isinstance(row.get("id"), str) and isinstance(row.get("type"), str)


def _row(row: Mapping[str, Any], reply: ArmReply) -> GraphRow:
    """The row without null columns: a table has every column in every row, null where the resource has none."""
    there = {column: value for column, value in row.items() if value is not None}
    return GraphRow(row["id"], sys.intern(row["type"].lower()), PackedBody(there, reply.evidence))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _cut(reply: ArmReply, why: str) -> Problem:
    return Problem(UnreadReason.TRUNCATED, f"{reply.ask.request_line}: {why}", _PERMISSION)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(_quoted(word.lower()) for word in sorted(texts))


def _quoted(text: str) -> str:
    """A string literal of the query language; it accepts JSON's escapes, so no quote in the text can end it."""
    return "'" + json.dumps(text, ensure_ascii=False)[1:-1].replace("'", "\\'") + "'"
