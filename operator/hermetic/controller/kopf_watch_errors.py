"""Translates answers of the API server that would end kopf into answers that it retries.

kopf ends when the watch or the list of a kind is answered with 404 (the CRD is being applied again), with 410 or with
another client error, and when an ERROR event has a code other than 410. All of these are transient. Such a watch is
begun again from a list, as kopf does for an ERROR event with 410; such a list is begun again, as after a truncated
answer. What kopf retries by itself (401, 403, 429, 5xx) is not changed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

import aiohttp

Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]

RETRIED_BY_KOPF = frozenset({401, 403, 429})
GONE = b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410}}\n'
ERROR = b'{"type":"ERROR"'
PAUSE_SECONDS = 3.0


class WatchAnswers:
    """A client middleware for the session that kopf uses. `paths` are those of the collections that it watches."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)

    async def __call__(self, request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
        """The answer as kopf may see it. Raises ClientPayloadError for a list that must be begun again."""
        response = await handler(request)
        if request.url.path not in self._paths or request.method != "GET":
            return response
        is_watch, is_fatal = "watch" in request.url.query, _is_fatal(response.status)
        if is_fatal:
            await response.read()
            await asyncio.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.0))  # noqa: S311 - nothing secret about it
        if is_fatal and not is_watch:
            raise aiohttp.ClientPayloadError(f"HTTP {response.status}: the list is begun again")
        if is_watch and (is_fatal or response.status == 200):
            chunks = _gone() if is_fatal else _with_errors_as_gone(response.content)
            lines = _Lines(response.content, chunks)
            response.status, response.content = 200, lines  # type: ignore[assignment]
        return response


class _Lines:
    """The content of a response with other chunks; aiohttp still closes the original stream."""

    def __init__(self, content: aiohttp.StreamReader, chunks: AsyncIterator[bytes]) -> None:
        self._content, self._chunks = content, chunks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    def iter_chunked(self, _size: int) -> AsyncIterator[bytes]:
        return self._chunks


def _is_fatal(status: int) -> bool:
    return 400 <= status < 500 and status not in RETRIED_BY_KOPF


async def _gone() -> AsyncIterator[bytes]:
    yield GONE


async def _with_errors_as_gone(content: Any) -> AsyncIterator[bytes]:
    """Whole lines, ERROR events replaced by GONE; bytes after the last line break are an incomplete line, dropped."""
    rest = b""
    async for chunk in content.iter_any():
        lines, newline, rest = (rest + chunk).rpartition(b"\n")
        if not newline:
            continue
        if ERROR in lines:
            yield b"".join(GONE if line.startswith(ERROR) else line + b"\n" for line in lines.split(b"\n"))
        else:
            yield lines + newline
