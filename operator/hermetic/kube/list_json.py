"""Parses a list of objects; a large one item by item: it takes longer than the event loop may be blocked.

A parser holds the GIL until it returns, in a thread as well.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from hermetic.kube.json_text import parse

PARSED_WHOLE = 2**20
"""Bytes of the largest list that is parsed in one step: it takes some 5 ms. A page of a hundred models has 600 KiB."""
PARSED_AT_ONCE = 64 * 2**10
"""Characters parsed before control returns to the event loop."""

_decode = json.JSONDecoder().raw_decode
_blank = re.compile(r"[ \t\n\r]*")


async def parsed_list(body: bytes) -> Any:
    """Return what `parse` would. Raises ValueError for invalid JSON."""
    if len(body) <= PARSED_WHOLE:
        return parse(body)
    text = body.decode()
    at = _skipped(text, 0)
    if text[at : at + 1] != "{":
        return json.loads(text)
    document: dict[str, Any] = {}
    at = _skipped(text, at + 1)
    while text[at : at + 1] != "}":
        at = _after(text, at, ",") if document else at
        if text[at : at + 1] != '"':
            raise ValueError(f"no key at character {at}")
        key, at = _decode(text, at)
        at = _after(text, at, ":")
        document[key], at = await _items(text, at) if key == "items" and text[at : at + 1] == "[" else _decode(text, at)
        at = _skipped(text, at)
    if _skipped(text, at + 1) != len(text):
        raise ValueError(f"more than one document at character {at}")
    return document


async def _items(text: str, at: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    at = rested_at = _skipped(text, at + 1)
    while text[at : at + 1] != "]":
        item, at = _decode(text, _after(text, at, ",") if items else at)
        items.append(item)
        at = _skipped(text, at)
        if at - rested_at >= PARSED_AT_ONCE:
            await asyncio.sleep(0)
            rested_at = at
    return items, at + 1


def _skipped(text: str, at: int) -> int:
    match = _blank.match(text, at)
    return match.end() if match else at


def _after(text: str, at: int, expected: str) -> int:
    """Position of the token that follows this one. Raises ValueError if this one is missing."""
    at = _skipped(text, at)
    if text[at : at + 1] != expected:
        raise ValueError(f"no '{expected}' at character {at}")
    return _skipped(text, at + 1)
