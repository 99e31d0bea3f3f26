"""The stand-in as an HTTP server on loopback. See the package's docstring for how it is used."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import Iterable
from typing import Any

from aiohttp import web

from testbed.azure.answering import Answer, Desk
from testbed.azure.estate import Estate
from testbed.azure.faults import Fault, NotJson, Reset, Slow, Truncate
from testbed.azure.quota import Quota
from testbed.azure.requests import ArmRequest
from testbed.faulty_server import FaultyServer

# a query of a thousand subscriptions is still far below this
LARGEST_BODY = 4 * 1024 * 1024


class ArmStandIn(FaultyServer[Fault]):
    """Serves one estate from a thread of its own. Every method may be called from any thread.

    page_size: rows of an ARM list before its nextLink. latency: seconds that every answer takes. quota: none unless
    given. polls, retry_after: how often a long-running action says "not yet", and how many seconds it asks to wait.
    Of several faults, each that spoils the answer does.
    """

    NAME = "azure-stand-in"

    def __init__(  # noqa: PLR0913 - each is something that a test turns, by its name
        self,
        estate: Estate,
        *,
        page_size: int = 100,
        latency: float = 0.0,
        quota: Quota | None = None,
        faults: Iterable[Fault] = (),
        polls: int = 1,
        retry_after: int = 0,
        port: int = 0,
    ) -> None:
        self.token = secrets.token_urlsafe(24)
        self.requests: list[ArmRequest] = []
        super().__init__(list(faults))
        self._latency = latency
        self._port = port
        self._desk = Desk(estate, page_size, quota, polls, retry_after)
        self._token_lasts: int | None = None
        self._began = time.monotonic()

    # ------------------------------------------------------------------ what tests use

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def estate(self) -> Estate:
        return self._desk.estate

    @property
    def forbidden_requests(self) -> list[ArmRequest]:
        """What a reader must never send: writes, and actions that do more than read. All were refused."""
        return [request for request in tuple(self.requests) if not request.is_allowed]

    @property
    def actions(self) -> set[str]:
        """The permissions that the requests so far needed."""
        return {request.action for request in tuple(self.requests)} - {""}

    def serve(self, estate: Estate) -> None:
        """Another estate from now on, at the same address and with the same token."""
        self._desk.estate = estate

    def expire_token_after(self, requests: int) -> None:
        """The token is good for so many more requests, then it has expired."""
        self._token_lasts = len(self.requests) + requests

    # ------------------------------------------------------------------ the thread

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self._port, backlog=1024)
            await site.start()
            self._port = runner.addresses[0][1]
            self._desk.listen_at(self.url)
            self._started.set()
            await self._end.wait()
        finally:
            await runner.cleanup()

    # ------------------------------------------------------------------ one request

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        number, request = len(self.requests), await self._recorded(incoming)
        actions = [fault.action for fault in self._faults if fault.applies_to(request.method, incoming.raw_path)]
        slow = sum(action.seconds for action in actions if isinstance(action, Slow))
        if self._latency or slow:
            await asyncio.sleep(self._latency + slow)
        expired = self._token_lasts is not None and number >= self._token_lasts
        answer = self._desk.answer(request, actions, None if expired else self.token)
        for action in actions:
            if isinstance(action, Reset):
                return await _cut(incoming, answer)
        request.status = answer.status
        body, content_type = _on_the_wire(answer, actions)
        headers = {**answer.headers, "Content-Type": content_type, "x-ms-correlation-request-id": secrets.token_hex(16)}
        return web.Response(status=answer.status, body=body, headers=headers)

    async def _recorded(self, incoming: web.BaseRequest) -> ArmRequest:
        at = time.monotonic() - self._began
        path = re.sub("//+", "/", incoming.url.path)
        request = ArmRequest(incoming.method, path, dict(incoming.query), dict(incoming.headers), at=at)
        self.requests.append(request)
        request.body = await incoming.content.read(LARGEST_BODY)
        return request


def _on_the_wire(answer: Answer, actions: list[Any]) -> tuple[bytes, str]:
    body = b"" if answer.body is None else json.dumps(answer.body).encode()
    for action in actions:
        if isinstance(action, NotJson):
            return action.text.encode(), "text/html"
        if isinstance(action, Truncate):
            return body[: int(len(body) * action.keep)], "application/json"
    return body, "application/json; charset=utf-8"


async def _cut(incoming: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """Half of the body, then a reset; what is returned is never sent."""
    body = json.dumps(answer.body).encode()
    response = web.StreamResponse(status=answer.status, headers={"Content-Length": str(len(body))})
    await response.prepare(incoming)
    await response.write(body[: len(body) // 2])
    if incoming.transport is not None:
        incoming.transport.abort()
    return response
