"""The pace at which kopf may ask, and when it starts over: its own loops have no brake and tell nobody.

A watch that breaks as soon as it opens would be opened again at once, for ever. And when the API server has forgotten
where a watch was (410 Gone), kopf lists what exists, but never learns what was deleted meanwhile: we must compare.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp

SECONDS_BETWEEN = 1.0

Look = tuple[str, bool]  # (path of the collection, whether it is watched)


class Pace:
    """One list and one watch per collection and second; `listed_again(path)` is called for every list but the first."""

    def __init__(self, listed_again: Callable[[str], None]) -> None:
        self._listed_again = listed_again
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
        if look in self._begun and "watch" not in query:
            self._listed_again(request.url.path)
        begins = max(now, self._begun.get(look, -SECONDS_BETWEEN) + SECONDS_BETWEEN)
        self._begun[look] = begins
        await asyncio.sleep(begins - now)
