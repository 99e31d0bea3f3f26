"""One exchange with the API server: HTTP over TLS, time limits, counting, and why one failed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

from hermetic import __version__
from hermetic.errors import HermeticError, ServerError, Unreachable
from hermetic.kube.api_errors import refusal
from hermetic.kube.connection import Connection
from hermetic.kube.json_text import compact, parse
from hermetic.kube.keepalive import UNRESPONSIVE_SECONDS, socket_factory
from hermetic.kube.list_json import parsed_list
from hermetic.ports import Manifest

REQUESTS_IN_FLIGHT = 20
WATCH_SECONDS = 290
NO_ANSWER = 0
JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml; charset=utf-8"
LONGEST_LINE = 2**21
"""Bytes that are buffered of one answer: an event of a watch may be an object of a MiB and more."""
_PRIVATE = "that of a private cluster has its name and address only inside its virtual network and what is linked to it"

RequestCounter = Callable[[str, str, int], None]
"""Called once per request with the RBAC verb, the resource ("deployments", "modeldeployments/status") and the HTTP
status (0 when no answer came)."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds: for a TLS connection, for a whole read (of a watch: until it begins), for a whole write, for a
    whole watch, and without a sign of the other end of a connection.

    A write that is sent while the Lease is held must end before another process can take the Lease. A watch may be
    silent until the API server ends it: TCP keepalive shows whether the connection is alive. Behind a proxy, which
    answers the keepalive itself, the limit of the whole watch shows it.
    """

    connect: float = 5.0
    request: float = 30.0
    write: float = 15.0
    watch: float = WATCH_SECONDS + 10.0
    unresponsive: float = UNRESPONSIVE_SECONDS


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `verb` and `resource` are those of RBAC; of `query`, pairs with "" are left out."""

    method: str
    verb: str
    resource: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Manifest | None = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class TooLarge(Exception):
    """An answer exceeds the bytes that the caller takes."""


class Transport:
    """Sends requests to one API server, `limit` of them at once (20 by default). Raises the leaves of `errors`."""

    def __init__(
        self,
        connection: Connection,
        limit: asyncio.Semaphore | None,
        on_request: RequestCounter | None,
        timeouts: Timeouts | None,
    ) -> None:
        timeouts = timeouts or Timeouts()
        self._connection = connection
        self._tls = _tls_context(connection)
        self._opened: aiohttp.ClientSession | None = None
        self._limit = limit or asyncio.Semaphore(REQUESTS_IN_FLIGHT)
        self._on_request = on_request or (lambda _verb, _resource, _status: None)
        self._before_writing: Callable[[], None] = lambda: None
        self._timeout = aiohttp.ClientTimeout(total=timeouts.request, connect=timeouts.connect)
        self._write_timeout = aiohttp.ClientTimeout(total=timeouts.write, connect=timeouts.connect)
        self._unresponsive = timeouts.unresponsive
        self._watch_timeout = aiohttp.ClientTimeout(total=timeouts.watch, connect=timeouts.connect)

    def ask_before_writing(self, check: Callable[[], None]) -> None:
        """Call `check` before every write that is sent with `send`; if it raises, nothing is sent."""
        self._before_writing = check

    async def close(self) -> None:
        """Close the connections; requests in flight fail as Unreachable."""
        if self._opened is not None:
            await self._opened.close()

    async def send(self, request: Request) -> Manifest:
        """One request within the limit, and its whole answer."""
        async with self._limit:
            if request.method != "GET":
                # After the wait: the Lease may have been lost meanwhile.
                self._before_writing()
            return await self.exchange(request)

    async def exchange(self, request: Request) -> Manifest:
        """One request at once, whatever the limit."""
        return _decoded(request, *await self._whole_answer(request))

    async def page(self, request: Request, *, most: int | None) -> tuple[Manifest, int]:
        """One page of a list within the limit, and its bytes; raises TooLarge, without the rest, beyond `most`."""
        async with self._limit:
            status, body = await self._whole_answer(request, most)
        return await _decoded_list(request, status, body), len(body)

    async def text(self, request: Request, *, most: int) -> str:
        """One request within the limit, and its answer as text; raises TooLarge beyond `most` bytes."""
        async with self._limit:
            _, body = await self._whole_answer(request, most)
        return body.decode(errors="replace")

    async def _whole_answer(self, request: Request, most: int | None = None) -> tuple[int, bytes]:
        """The status and the body."""
        within = self._timeout if request.method == "GET" else self._write_timeout
        answer = await self._ask(request, within=within)
        try:
            body = await answer.read() if most is None else await _read_at_most(answer, most)
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(request, self._connection.server, error) from error
        return answer.status, body

    async def events(self, request: Request) -> AsyncGenerator[tuple[str, Manifest], None]:
        """(type, object) of every line of a watch; an ERROR is raised as what it says."""
        answer = await self._ask(request, within=self._watch_timeout)
        try:
            async for line in _lines(answer.content):
                event_type, manifest = _event(request, answer.status, line)
                if event_type == "ERROR":
                    message = compact(manifest)
                    raise refusal(str(request), manifest.get("code", 0), answer.headers, message)
                yield event_type, manifest
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(request, self._connection.server, error) from error
        finally:
            answer.close()

    async def _ask(self, request: Request, *, within: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """One request, counted also when it fails; returns the answer, whose body is still to be read."""
        status = NO_ANSWER
        try:
            headers = await self._headers(request)
            async with asyncio.timeout(self._timeout.total):  # a watch begins at once, however long it may last
                answer = await self._session().request(
                    request.method,
                    self._url(request),
                    headers=headers,
                    data=_body(request),
                    timeout=within,
                    server_hostname=self._connection.tls_server_name,
                )
                status = answer.status
                refused = None if 200 <= status < 300 else await answer.read()
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise _unreachable(request, self._connection.server, error) from error
        finally:
            self._on_request(request.verb, request.resource, status)
        if refused is not None:
            raise refusal(str(request), status, answer.headers, refused)
        return answer

    def _session(self) -> aiohttp.ClientSession:
        """Opened by the first request, since it belongs to the event loop that runs then."""
        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,  # unbounded: `limit` is the one bound; waiting for it is not connect time
                    ssl=self._tls,
                    socket_factory=socket_factory(self._unresponsive),
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=self._connection.proxy,
                trust_env=False,  # a proxy variable of the machine must not lead requests elsewhere
                read_bufsize=LONGEST_LINE,
            )
        return self._opened

    def _url(self, request: Request) -> str:
        query = urlencode([pair for pair in request.query if pair[1]], quote_via=quote)
        return f"{self._connection.server}{request.path}" + (f"?{query}" if query else "")

    async def _headers(self, request: Request) -> dict[str, str]:
        authorization = await self._connection.authorization()
        return {
            "Accept": request.accept,
            "Content-Type": request.content_type,
            "User-Agent": f"hermetic/{__version__}",
        } | ({"Authorization": authorization} if authorization else {})


def _tls_context(connection: Connection) -> ssl.SSLContext:
    """The CA and the client certificate of the connection; without a CA the certificates that the system trusts."""
    try:
        context = ssl.create_default_context(cafile=connection.ca_file)
        if connection.certificate_file:
            context.load_cert_chain(connection.certificate_file, connection.key_file)
    except OSError as error:  # ssl.SSLError is one
        raise Unreachable(
            f"the certificates for {connection.server} cannot be used: {error}",
            fix="check the CA and the client certificate that the connection names",
        ) from error
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _body(request: Request) -> bytes | None:
    """JSON; an apply is JSON that is YAML too: DEL only as an escape, and what is beyond U+FFFF as it is.

    YAML has no pairs of surrogates.
    """
    if request.body is None:
        return None
    if request.content_type != APPLY_PATCH:
        return json.dumps(request.body).encode()
    body = compact(request.body)
    if body.isascii() and b"\x7f" not in body:
        return body
    return re.sub("[\x7f-\uffff]", lambda character: f"\\u{ord(character[0]):04x}", body.decode()).encode()


def _decoded(request: Request, status: int, body: bytes) -> Manifest:
    try:
        answer = parse(body)
    except ValueError:
        answer = None
    return _object(request, status, answer)


async def _decoded_list(request: Request, status: int, body: bytes) -> Manifest:
    try:
        answer = await parsed_list(body)
    except ValueError:
        answer = None
    return _object(request, status, answer)


def _object(request: Request, status: int, answer: Any) -> Manifest:
    if not isinstance(answer, dict):
        raise ServerError(f"{request}: HTTP {status}, but the answer is not a JSON object", status=status)
    return answer


async def _read_at_most(response: aiohttp.ClientResponse, most: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            response.close()
            raise TooLarge
    return bytes(body)


def _event(request: Request, status: int, line: bytes) -> tuple[str, Manifest]:
    """Type and object of one line of a watch; ServerError where it is neither an event nor an error."""
    event = _decoded(request, status, line)
    event_type, manifest = event.get("type"), event.get("object")
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    is_object = isinstance(metadata, dict) and isinstance(metadata.get("resourceVersion"), str)
    if not isinstance(event_type, str) or not isinstance(manifest, dict) or not (is_object or event_type == "ERROR"):
        raise ServerError(f"{request}: a line of the watch is not an event", status=status)
    return event_type, manifest


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines; bytes after the last line break are an incomplete line and are dropped."""
    remainder = b""
    async for chunk in content.iter_any():
        *lines, remainder = (remainder + chunk).split(b"\n")
        for line in lines:
            yield line


def _unreachable(request: Request, server: str, error: Exception) -> HermeticError:
    if isinstance(error, TimeoutError):
        cause = "no answer in time"
        fix = f"check that the API server is healthy and that nothing drops its packets; {_PRIVATE}"
    elif isinstance(error, aiohttp.ClientSSLError):
        cause, fix = (
            f"TLS failed: {getattr(error, 'certificate_error', None) or error}",
            "check the CA and the server name of the kubeconfig against its certificate",
        )
    elif isinstance(error, aiohttp.ClientConnectorDNSError):
        cause, fix = f"the name {error.host} is not known here", f"check the name; {_PRIVATE}"
    elif isinstance(error, aiohttp.ClientConnectorError):
        code = error.os_error.errno
        cause = os.strerror(code).lower() if code else "no connection to any address of the name"
        fix = f"check that the API server is up and reachable from here; {_PRIVATE}"
    else:
        cause, fix = str(error) or type(error).__name__, "check that the API server is up and reachable from here"
    return Unreachable(f"{request} at {server}: {cause}", fix=fix)
