"""Rate-limits kopf's list and watch requests and reports relists, as kopf itself has neither.

Without it a watch that ends as soon as it opens would be reopened at once, without end. When kopf lists before it
watches (at its start, and after 410 Gone), it learns what exists, but not what was deleted since our last list:
the operator must list the kind itself once kopf's watch is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp

SECONDS_BETWEEN = 1.0

Query = tuple[str, bool]  # (path of the collection, whether it is watched)


class Pace:
    """One list and one watch per collection and second; `started_over(path)` is called for a watch after a list."""

    def __init__(self, started_over: Callable[[str], None]) -> None:
        self._started_over = started_over
        self._listed: set[str] = set()
        self._begun: dict[Query, float] = {}

    def trace(self) -> aiohttp.TraceConfig:
        """The trace configuration for kopf's session; it delays each request before it is sent."""
        config = aiohttp.TraceConfig()
        config.on_request_start.append(self._about_to_ask)
        return config

    async def _about_to_ask(self, _session: Any, _context: Any, request: aiohttp.TraceRequestStartParams) -> None:
        query = request.url.query
        if "continue" in query:
            return  # the next page of a list that has begun
        query_key, now = (request.url.path, "watch" in query), asyncio.get_running_loop().time()
        self._note(*query_key)
        begins = max(now, self._begun.get(query_key, -SECONDS_BETWEEN) + SECONDS_BETWEEN)
        self._begun[query_key] = begins
        await asyncio.sleep(begins - now)

    def _note(self, path: str, watched: bool) -> None:
        if not watched:
            self._listed.add(path)
        elif path in self._listed:
            self._listed.remove(path)
            self._started_over(path)
