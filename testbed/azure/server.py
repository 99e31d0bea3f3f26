"""The stand-in as an HTTP server on loopback. See the package's docstring for how it is used."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from testbed.azure.answering import Answer, Desk
from testbed.azure.estate import Estate
from testbed.azure.faults import Fault, NotJson, Reset, Slow, Truncate
from testbed.azure.quota import Quota
from testbed.azure.requests import ArmRequest

# a query of a thousand subscriptions is still far below this
LARGEST_BODY = 4 * 1024 * 1024


class ArmStandIn:
    """Serves one estate from a thread of its own. Every method may be called from any thread.

    page_size: rows of an ARM list before its nextLink. latency: seconds that every answer takes. quota: none unless
    given. polls, retry_after: how often a long-running action says "not yet", and how many seconds it asks to wait.
    """

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
        self._faults = list(faults)
        self._latency = latency
        self._port = port
        self._desk = Desk(estate, page_size, quota, polls, retry_after)
        self._token_lasts: int | None = None
        self._began = time.monotonic()
        self._started = threading.Event()
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when it listens."""
        self._thread = threading.Thread(target=self._run, name="azure-stand-in", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Breaks what is open and returns when the thread has ended."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

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

    def inject(self, fault: Fault) -> Fault:
        """From now on; delays add up, and every fault that spoils the answer does."""
        self._faults = [*self._faults, fault]
        return fault

    def lift(self, *faults: Fault) -> None:
        """Takes faults away; all of them when none is named."""
        gone = {id(fault) for fault in faults or self._faults}
        self._faults = [fault for fault in self._faults if id(fault) not in gone]

    def expire_token_after(self, requests: int) -> None:
        """The token is good for so many more requests, then it has expired."""
        self._token_lasts = len(self.requests) + requests

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - the last wall of a thread: start() raises it
            self._failure = error
        finally:
            self._started.set()

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
        actions = [fault.action for fault in self._faults if fault.befalls(request.method, incoming.raw_path)]
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
    """Half of the body, then a reset; what is returned reaches nobody."""
    body = json.dumps(answer.body).encode()
    response = web.StreamResponse(status=answer.status, headers={"Content-Length": str(len(body))})
    await response.prepare(incoming)
    await response.write(body[: len(body) // 2])
    if incoming.transport is not None:
        incoming.transport.abort()
    return response
