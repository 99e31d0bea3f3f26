"""A reverse proxy in front of the API server with faults on demand.

    with FaultProxy(plane) as proxy:
        kubeconfig = proxy.write_kubeconfig(folder / "operator.kubeconfig", token)
        proxy.inject(Fault(Answer(409), methods=("PATCH",), path="/deployments/", times=3))
        proxy.at_write(4, operator.kill)

It ends TLS with a certificate of the cluster's authority and passes the Authorization header on, so a client has
the account of its token; a client without one is the cluster's administrator. It runs in a thread of its own: a test
may block, or drive an event loop, as it likes. Every method may be called from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import ssl
import tempfile
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web
from yarl import URL

from testbed.certificates import Credential, write_kubeconfig
from testbed.console import say
from testbed.controlplane import ControlPlane
from testbed.faults import (
    Action,
    Answer,
    CutWatch,
    Delay,
    DropAfter,
    DropBefore,
    Fault,
    Request,
    WriteMark,
    error_event,
)
from testbed.faulty_server import FaultyServer
from testbed.processes import free_port

SEED_VARIABLE = "HERMETIC_FAULT_SEED"
# of the connection, not of the message (RFC 9110 7.6.1)
HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host"})
# whatever the client did not say, we do not say for it
SAID_BY_NOBODY = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
# leases and events are an operator's housekeeping; the rest is what it is for
NOT_HOUSEKEEPING = r"^(?!.*/(leases|events)(/|\?|$))"

Callback = Callable[[], object]


class FaultProxy(FaultyServer[Fault]):
    """One proxy for one control plane. `seed` (or HERMETIC_FAULT_SEED) repeats what chance did; it is printed.

    Of several faults, the first that answers or drops decides.
    """

    NAME = "fault-proxy"

    def __init__(self, plane: ControlPlane, seed: str | None = None) -> None:
        super().__init__([])
        self._plane = plane
        self._port = free_port()
        self.seed = seed or os.environ.get(SEED_VARIABLE) or secrets.token_hex(4)
        self.requests: list[Request] = []
        self._answered: list[tuple[Request, int]] = []
        self._marks: list[tuple[WriteMark, Callback]] = []
        self._watches: set[_Watch] = set()
        self._clients: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    def start(self) -> None:
        """Returns when it listens."""
        say(f"fault-proxy: seed {self.seed} (repeat with {SEED_VARIABLE}={self.seed})")
        super().start()

    # ------------------------------------------------------------------ what tests use

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def write_kubeconfig(self, path: Path, token: str | None = None) -> Path:
        """A kubeconfig that leads through the proxy, with a bearer token or as the administrator."""
        # kubectl asks for a password when it has nothing to show; the certificate ends at the proxy, which has its own
        credential = token or self._plane.client_credential("admin", "system:masters")
        return write_kubeconfig(path, self.server, self._plane.authority, credential)

    def at_write(
        self, number: int, callback: Callback, path: str = NOT_HOUSEKEEPING, *, after: bool = False
    ) -> WriteMark:
        """Calls back, once, at the n-th write from now (from one), and breaks that write's connection.

        Before: the API server has not seen the write and will not. After: it is done there, and the client gets
        no answer. Either is what a kill between two writes looks like from outside; the callback is what kills.
        """
        mark = WriteMark(number, path, after)
        self._marks = [*self._marks, (mark, callback)]
        return mark

    def cut_watches(self, path: str = "", *, expired: bool = False) -> int:
        """Breaks the open watches whose path matches, with `expired` after a 410 event; returns how many."""
        matching = [watch for watch in tuple(self._watches) if re.search(path, watch.request.target)]
        for watch in matching:
            self._loop.call_soon_threadsafe(watch.cut, 410 if expired else 0)
        return len(matching)

    @property
    def open_watches(self) -> tuple[Request, ...]:
        return tuple(watch.request for watch in tuple(self._watches))

    def counts(self) -> Counter[tuple[str, str]]:
        """How often which (kind, resource) was asked: `("PATCH", "deployments/status")`, `("WATCH", "pods")`."""
        return Counter((request.kind, request.resource) for request in tuple(self.requests))

    def writes(self, path: str = NOT_HOUSEKEEPING) -> list[Request]:
        """The writes so far in order of arrival, those that a fault befell included."""
        return [request for request in tuple(self.requests) if request.is_write and re.search(path, request.target)]

    def landed(self, path: str = NOT_HOUSEKEEPING) -> list[Request]:
        """Those of `writes` that the API server took."""
        taken = [request for request, status in tuple(self._answered) if status < HTTPStatus.MULTIPLE_CHOICES]
        return [request for request in taken if request.is_write and re.search(path, request.target)]

    # ------------------------------------------------------------------ the thread

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            administrator = self._plane.client_credential("admin", "system:masters")
            self._as_administrator = await stack.enter_async_context(self._upstream(administrator))
            self._as_client = await stack.enter_async_context(self._upstream(None))
            # cancel a handler when its client goes away, or watches of dead operators would stay open upstream
            runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True), shutdown_timeout=0)
            await runner.setup()
            stack.push_async_callback(self._drop_clients)
            stack.push_async_callback(runner.cleanup)
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            _load(context, self._plane.server_credential("fault-proxy", "127.0.0.1", "localhost"))
            await web.TCPSite(runner, "127.0.0.1", self._port, ssl_context=context).start()
            self._started.set()
            await self._end.wait()

    async def _drop_clients(self) -> None:
        """A client that keeps its connection for later would not answer that we close it."""
        for transport in tuple(self._clients):
            transport.abort()
        await asyncio.sleep(0)  # the loop closes them in its next round, and it would have none

    def _upstream(self, credential: Credential | None) -> aiohttp.ClientSession:
        context = ssl.create_default_context(cadata=self._plane.authority.decode())
        if credential is not None:
            _load(context, credential)
        return aiohttp.ClientSession(
            self._plane.server,
            connector=aiohttp.TCPConnector(ssl=context, limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
            auto_decompress=False,
            skip_auto_headers=SAID_BY_NOBODY,
        )

    # ------------------------------------------------------------------ one request

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        request = Request(incoming.method, incoming.raw_path, incoming.headers.get("User-Agent", ""))
        self.requests.append(request)
        if incoming.transport is not None:
            self._clients.add(incoming.transport)
        mark, callback = self._mark_reached(request)
        actions = [fault.action for fault in self._faults if fault.applies_to(request, self.seed)]
        if mark is not None and not mark.after:
            await asyncio.to_thread(callback)
            return _drop(incoming)
        for action in actions:
            match action:
                case Delay():
                    await asyncio.sleep(action.seconds)
                case Answer():
                    return _answer(action)
                case DropBefore():
                    return _drop(incoming)
        try:
            async with self._forwarded(incoming, request) as answer:
                self._answered.append((request, answer.status))
                if mark is None and DropAfter() not in actions:
                    return await self._relay(incoming, request, answer, actions)
                await answer.read()
        except aiohttp.ClientError:
            # the API server is away, or the client: either way a broken connection is what there is to see
            return _drop(incoming)
        if mark is not None:
            await asyncio.to_thread(callback)
        return _drop(incoming)

    def _mark_reached(self, request: Request) -> tuple[WriteMark | None, Callback]:
        reached = [(mark, callback) for mark, callback in self._marks if mark.reached(request)]
        return reached[0] if reached else (None, lambda: None)

    @contextlib.asynccontextmanager
    async def _forwarded(self, incoming: web.BaseRequest, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        session = self._as_client if "Authorization" in incoming.headers else self._as_administrator
        body = await incoming.content.read()
        async with session.request(
            request.method,
            URL(request.target, encoded=True),
            headers=_end_to_end(incoming.headers.items()),
            data=body or None,
            allow_redirects=False,
        ) as answer:
            yield answer

    async def _relay(
        self, incoming: web.BaseRequest, request: Request, answer: aiohttp.ClientResponse, actions: list[Action]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        response.headers.extend(_end_to_end(answer.headers.items()))
        await response.prepare(incoming)
        if not request.is_watch:
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response
        watch = _Watch(request)
        for cut in (action for action in actions if isinstance(action, CutWatch)):
            self._loop.call_later(cut.seconds, watch.cut, cut.error)
        self._watches.add(watch)
        try:
            whole = await watch.relay(answer, response)
        finally:
            self._watches.discard(watch)
        return response if whole else _drop(incoming, response)


class _Watch:
    """An open watch on its way through, until either side or a cut ends it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._cut: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def cut(self, error: int) -> None:
        """With an ERROR event of this status, or (0) without a word."""
        if not self._cut.done():
            self._cut.set_result(error)

    async def relay(self, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> bool:
        """True when the stream ended as a stream should; false when the connection is to break."""
        pump = asyncio.create_task(self._pump(answer, response))
        try:
            either: set[asyncio.Future[Any]] = {pump, self._cut}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._cut.done():
                await pump
            elif not self._cut.result():
                return False
        finally:
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError, aiohttp.ClientError):
                await pump
        if self._cut.done():
            await response.write(error_event(self._cut.result()))
        await response.write_eof()
        return True

    async def _pump(self, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        # whole events only: a 410 event may have to follow at any time
        partial_event = b""
        async for chunk in answer.content.iter_any():
            events, newline, partial_event = (partial_event + chunk).rpartition(b"\n")
            if newline:
                await response.write(events + newline)


def _answer(action: Answer) -> web.Response:
    headers = {"Content-Type": "application/json"}
    if action.retry_after is not None:
        headers["Retry-After"] = str(action.retry_after)
    return web.Response(status=action.status, body=action.body(), headers=headers)


def _drop(incoming: web.BaseRequest, response: web.StreamResponse | None = None) -> web.StreamResponse:
    """Breaks the connection; what is returned is never sent."""
    if incoming.transport is not None:
        incoming.transport.abort()
    return response or web.Response()


def _end_to_end(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP]


def _load(context: ssl.SSLContext, credential: Credential) -> None:
    # the ssl module reads certificates from files only
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(credential.certificate + b"\n" + credential.key)
        pair.flush()
        context.load_cert_chain(pair.name)
