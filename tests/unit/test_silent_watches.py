"""Watches over which an API server rightly says nothing: releases 1.30 to 1.32 send no bookmark for a kind that rests.

"Clients should not assume bookmarks are returned at any specific interval, nor may they assume the server will send any
BOOKMARK event" (https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks). A connection that is
dead is met in tests/network/test_dead_connections.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter

import pytest
from aiohttp import web

from hermetic.collect.kube.cache import LIST_REQUESTS, ClusterObservations
from hermetic.collect.kube.cache_watches import RELIST_SECONDS, CacheWatches
from hermetic.errors import Unreachable
from hermetic.kube.keepalive import UNRESPONSIVE_SECONDS, socket_factory
from hermetic.kube.transport import WATCH_SECONDS, Timeouts
from tests.fakes.local_api_server import Handler, LocalServer, client_of, page, serving
from tests.fakes.virtual_loop import virtually
from tests.unit.test_kube_client_watches import watch_event, watched

LISTED = page("llama", version="7").body


def answering(silent_for: float, *events: bytes) -> Handler:
    """Lists, and watches that say nothing for that long, bring the events, and end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=LISTED, content_type="application/json")
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(silent_for)
        for event in events:
            await response.write(event)
        return response

    return answer


@pytest.mark.parametrize("seconds", [76, 150, WATCH_SECONDS])
def test_an_event_after_a_long_silence_arrives(seconds: float) -> None:
    async def scenario() -> None:
        async with serving() as server, client_of(server) as api:
            server.otherwise = answering(seconds, watch_event("llama"))
            assert await watched(api) == [("MODIFIED", "llama")]

    virtually(scenario)


def test_a_watch_that_outlasts_its_own_limit_is_broken() -> None:
    """A proxy in between answers the keepalive for an API server that is gone."""

    async def scenario() -> None:
        async with serving() as server, client_of(server) as api:
            server.otherwise = answering(3600, watch_event("llama"))
            began = asyncio.get_running_loop().time()
            with pytest.raises(Unreachable, match="no answer in time"):
                await watched(api)
            assert WATCH_SECONDS < asyncio.get_running_loop().time() - began < WATCH_SECONDS + 15

    virtually(scenario)


def test_a_watch_that_does_not_begin_is_broken_as_soon_as_a_read() -> None:
    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async def scenario() -> None:
        async with serving() as server, client_of(server) as api:
            server.otherwise = never
            began = asyncio.get_running_loop().time()
            with pytest.raises(Unreachable, match="no answer in time"):
                await watched(api)
            assert asyncio.get_running_loop().time() - began < Timeouts().request + 1

    virtually(scenario)


def test_an_idle_server_is_listed_only_where_a_list_is_due() -> None:
    """Every kind of the audit, without one event or bookmark."""

    async def scenario() -> Counter[str]:
        async with serving() as server, client_of(server) as api:
            server.otherwise = answering(WATCH_SECONDS)
            observing = asyncio.create_task(CacheWatches(api, ClusterObservations()).run())
            await asyncio.sleep(RELIST_SECONDS * 1.2)
            observing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await observing
            return _lists(server)

    lists = virtually(scenario)
    assert len(lists) > len(LIST_REQUESTS) / 2
    assert set(lists.values()) == {2}, lists.most_common(3)


def _lists(server: LocalServer) -> Counter[str]:
    """How often each collection was read from its beginning; discovery is none."""
    return Counter(
        f"{request.path} {request.query.get('labelSelector')} {request.query.get('fieldSelector')}"
        for request in server.seen
        if "limit" in request.query and "continue" not in request.query
    )


def test_sockets_probe_a_silent_connection_within_their_limit() -> None:
    """Idle time and probes together, as tcp(7) counts them: the limit, and not more."""
    for seconds in (UNRESPONSIVE_SECONDS, 5.0):
        with socket_factory(seconds)((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as opened:
            assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            idle, interval, count = (
                opened.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            assert idle + interval * count == seconds
