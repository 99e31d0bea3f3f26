"""A local HTTP server in place of an API server: it answers what a test tells it to, and remembers what was asked."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from hermetic.kinds import SERVICE
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import Connection

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
A_SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "models", "name": "llama"}}
WRITER = [{"manager": "kubectl"}]
"""The managedFields that are kept of a Service: who wrote it, and no fields."""


@dataclass
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class LocalServer:
    """Answers with what the test put in `answers`, in order, then with `otherwise`; remembers what was asked."""

    answers: list[web.StreamResponse | Handler] = field(default_factory=list)
    otherwise: Handler | None = None
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        body = json.loads(text) if text else None
        self.seen.append(Seen(request.method, request.path, dict(request.query), dict(request.headers), body))
        answer = self.answers.pop(0) if self.answers else self.otherwise
        assert answer is not None, f"the test has no answer for {request.method} {request.path}"
        return answer if isinstance(answer, web.StreamResponse) else await answer(request)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[LocalServer]:
    local = LocalServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", local.handle)
    async with TestServer(app) as running:
        local.url = str(running.make_url("")).rstrip("/")
        yield local


async def without_a_token() -> str:
    return ""


def client_of(server: LocalServer, **options: Any) -> KubernetesApi:
    return KubernetesApi(Connection(server.url, without_a_token), **options)


def status_body(code: int, reason: str = "", message: str = "no") -> web.Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code)


def page(*names: str, version: str, carry_on: str = "") -> web.Response:
    items = [{"metadata": {"name": name, "managedFields": [{**WRITER[0], "fieldsV1": {}}]}} for name in names]
    metadata = {"resourceVersion": version} | ({"continue": carry_on} if carry_on else {})
    return web.json_response({"kind": "ServiceList", "apiVersion": "v1", "metadata": metadata, "items": items})


async def listed(api: KubernetesApi, **selectors: Any) -> list[tuple[list[str], str]]:
    return [
        ([item["metadata"]["name"] for item in items], version)
        async for items, version in api.pages(SERVICE, **selectors)
    ]
