"""Watches of the client: whole events in any pieces, places that are forgotten, streams that break off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from hermetic.errors import ServerError, Unreachable
from hermetic.kinds import SERVICE
from hermetic.kube.client import KubernetesApi
from tests.fakes.local_api_server import A_SERVICE, WRITER, Handler, LocalServer, client_of, serving, status_body


@pytest.fixture
async def server() -> AsyncIterator[LocalServer]:
    async with serving() as local:
        yield local


def watch_event(name: str, what: str = "MODIFIED") -> bytes:
    manifest = {"metadata": {"name": name, "resourceVersion": "9", "managedFields": [{"manager": "kubectl"}]}}
    return json.dumps({"type": what, "object": manifest}).encode() + b"\n"


def streaming(*chunks: bytes, cut: bool = False, silent: bool = False) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.01)  # so that each arrives by itself
        if silent:
            await asyncio.sleep(0.5)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


async def watched(api: KubernetesApi, **selectors: Any) -> list[tuple[str, str]]:
    return [
        (event_type, manifest["metadata"]["name"])
        async for event_type, manifest in api.watch(SERVICE, since="7", **selectors)
    ]


async def test_a_watch_yields_whole_events_however_they_are_cut_into_pieces(server: LocalServer) -> None:
    both = watch_event("llama") + watch_event("phi", "DELETED")
    server.answers = [streaming(both[:10], both[10:50], both[50:], b'{"type": "MODI')]
    async with client_of(server) as api:
        assert await watched(api, namespace="models", label_selector="a=b") == [
            ("MODIFIED", "llama"),
            ("DELETED", "phi"),
        ]
    assert server.seen[0].path == "/api/v1/namespaces/models/services"
    assert server.seen[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "290",
        "resourceVersion": "7",
        "labelSelector": "a=b",
    }


async def test_what_is_watched_looks_like_what_is_listed(server: LocalServer) -> None:
    server.answers = [streaming(watch_event("llama"))]
    async with client_of(server) as api:
        manifests = [manifest async for _, manifest in api.watch(SERVICE, since="7")]
    assert manifests == [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "llama", "resourceVersion": "9", "managedFields": WRITER},
        },
    ]


async def test_a_forgotten_place_is_said_by_status_or_in_the_stream(server: LocalServer) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    event = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    server.answers = [status_body(410, "Expired"), streaming(watch_event("llama"), event)]
    async with client_of(server) as api:
        for _ in range(2):
            with pytest.raises(ServerError) as error:
                await watched(api)
            assert error.value.status == 410


async def test_a_watch_that_is_cut_says_so(server: LocalServer) -> None:
    server.answers = [streaming(watch_event("llama"), cut=True)]
    async with client_of(server) as api:
        with pytest.raises(Unreachable):
            await watched(api)


async def test_a_watch_takes_the_turn_of_no_other(server: LocalServer) -> None:
    server.answers = [streaming(watch_event("llama"), silent=True)]
    server.answers.append(web.json_response(A_SERVICE))
    async with client_of(server, limit=asyncio.Semaphore(1)) as api:
        watch = api.watch(SERVICE, since="7")
        await anext(watch)
        await asyncio.wait_for(api.apply(A_SERVICE), 2)
        await watch.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b'{"object": {"metadata": {"resourceVersion": "1"}}}',
        b'{"type": "ADDED", "object": null}',
        b'{"type": "ADDED", "object": {"metadata": {}}}',
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": 7}}}',
        b'{"type": 3, "object": {"metadata": {"resourceVersion": "1"}}}',
    ],
)
async def test_a_line_of_a_watch_that_is_no_event_is_trouble_of_the_server(server: LocalServer, line: bytes) -> None:
    server.answers = [web.Response(body=line + b"\n")]
    async with client_of(server) as api:
        events = api.watch(SERVICE, since="1")
        with pytest.raises(ServerError):
            await anext(events)
