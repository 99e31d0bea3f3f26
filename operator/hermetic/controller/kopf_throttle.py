"""The pace at which kopf may ask, and when it starts over: its own loops have no brake and tell nobody.

A watch that breaks as soon as it opens would be opened again at once, for ever. And whenever kopf lists before it
watches (at its start, and when the API server has forgotten where a watch was, 410 Gone), it learns what exists, but
never what was deleted since we looked: we must compare, once its watch is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp

SECONDS_BETWEEN = 1.0

Look = tuple[str, bool]  # (path of the collection, whether it is watched)


class Pace:
    """One list and one watch per collection and second; `started_over(path)` is called for a watch after a list."""

    def __init__(self, started_over: Callable[[str], None]) -> None:
        self._started_over = started_over
        self._listed: set[str] = set()
        self._begun: dict[Look, float] = {}

    def trace(self) -> aiohttp.TraceConfig:
        """To be given to the session: it sees every request before it is sent."""
        config = aiohttp.TraceConfig()
        config.on_request_start.append(self._about_to_ask)
        return config

    async def _about_to_ask(self, _session: Any, _context: Any, request: aiohttp.TraceRequestStartParams) -> None:
        query = request.url.query
        if "continue" in query:
            return  # the next page of a list that has begun
        look, now = (request.url.path, "watch" in query), asyncio.get_running_loop().time()
        self._note(*look)
        begins = max(now, self._begun.get(look, -SECONDS_BETWEEN) + SECONDS_BETWEEN)
        self._begun[look] = begins
        await asyncio.sleep(begins - now)

    def _note(self, path: str, watched: bool) -> None:
        if not watched:
            self._listed.add(path)
        elif path in self._listed:
            self._listed.remove(path)
            self._started_over(path)
