"""Parses a list of objects item by item: a page of dense objects takes longer than the event loop may be blocked.

`json.loads` holds the GIL until it returns, in a thread as well.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

PARSED_AT_ONCE = 64 * 2**10
"""Characters parsed before control returns to the event loop."""

_decode = json.JSONDecoder().raw_decode
_blank = re.compile(r"[ \t\n\r]*")


async def parsed_list(body: bytes) -> Any:
    """Return what `json.loads` would. Raises ValueError for invalid JSON."""
    text = body.decode()
    at = _skipped(text, 0)
    if text[at : at + 1] != "{":
        return json.loads(text)
    found: dict[str, Any] = {}
    at = _skipped(text, at + 1)
    while text[at : at + 1] != "}":
        at = _after(text, at, ",") if found else at
        if text[at : at + 1] != '"':
            raise ValueError(f"no key at character {at}")
        key, at = _decode(text, at)
        at = _after(text, at, ":")
        found[key], at = await _items(text, at) if key == "items" and text[at : at + 1] == "[" else _decode(text, at)
        at = _skipped(text, at)
    if _skipped(text, at + 1) != len(text):
        raise ValueError(f"more than one document at character {at}")
    return found


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
    found = _blank.match(text, at)
    return found.end() if found else at


def _after(text: str, at: int, expected: str) -> int:
    """Position of the token that follows this one. Raises ValueError if this one is missing."""
    at = _skipped(text, at)
    if text[at : at + 1] != expected:
        raise ValueError(f"no '{expected}' at character {at}")
    return _skipped(text, at + 1)
