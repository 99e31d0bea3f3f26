"""One exchange with the API server: the official client's HTTP layer, time limits, counting, and why one failed."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

from hermetic import __version__
from hermetic.errors import HermeticError, ServerError, Unreachable
from hermetic.kube.api_errors import refusal
from hermetic.kube.connection import Connection
from hermetic.kube.list_json import parsed_list
from hermetic.ports import Manifest

REQUESTS_IN_FLIGHT = 20
WATCH_SECONDS = 290
NO_ANSWER = 0
JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml; charset=utf-8"  # with the charset the client sends text as it is
_PRIVATE = "that of a private cluster has its name and address only inside its virtual network and what is linked to it"

RequestCounter = Callable[[str, str, int], None]
"""Called once per request with the RBAC verb, the resource ("deployments", "modeldeployments/status") and the HTTP
status (0 when no answer came)."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds: for a TLS connection, for a whole read, for a whole write, and between two lines of a watch
    (the API server sends a bookmark every minute).

    A write that is sent while the Lease is held must end before another process can take the Lease.
    """

    connect: float = 5.0
    request: float = 30.0
    write: float = 15.0
    silence: float = 75.0


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
        self._http = _official_client(connection)
        self._limit = limit or asyncio.Semaphore(REQUESTS_IN_FLIGHT)
        self._on_request = on_request or (lambda _verb, _resource, _status: None)
        self._before_writing: Callable[[], None] = lambda: None
        self._timeout = aiohttp.ClientTimeout(total=timeouts.request, connect=timeouts.connect)
        self._write_timeout = aiohttp.ClientTimeout(total=timeouts.write, connect=timeouts.connect)
        self._watch_timeout = aiohttp.ClientTimeout(
            total=WATCH_SECONDS + 10, connect=timeouts.connect, sock_read=timeouts.silence
        )

    def ask_before_writing(self, check: Callable[[], None]) -> None:
        """Call `check` before every write that is sent with `send`; if it raises, nothing is sent."""
        self._before_writing = check

    async def close(self) -> None:
        """Close the connections; requests in flight fail as Unreachable."""
        await self._http.close()

    async def send(self, request: Request, *, most: int | None = None) -> Manifest:
        """One request within the limit, and its whole answer; raises TooLarge beyond `most` bytes."""
        async with self._limit:
            if request.method != "GET":
                # After the wait: the Lease may have been lost meanwhile.
                self._before_writing()
            return await self.exchange(request, most=most)

    async def exchange(self, request: Request, *, most: int | None = None) -> Manifest:
        """One request at once, whatever the limit; raises TooLarge, without reading the rest, beyond `most` bytes."""
        within = self._timeout if request.method == "GET" else self._write_timeout
        answer = await self._ask(request, within=within)
        try:
            body = await answer.read() if most is None else await _read_at_most(answer.response, most)
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(request, self._connection.server, error) from error
        if request.verb == "list":
            return await _decoded_list(request, answer.status, body)
        return _decoded(request, answer.status, body)

    async def events(self, request: Request) -> AsyncGenerator[tuple[str, Manifest], None]:
        """(type, object) of every line of a watch; an ERROR is raised as what it says."""
        answer = await self._ask(request, within=self._watch_timeout)
        try:
            async for line in _lines(answer.response.content):
                what, manifest = _event(request, answer.status, line)
                if what == "ERROR":
                    words = json.dumps(manifest).encode()
                    raise refusal(str(request), manifest.get("code", 0), answer.headers, words)
                yield what, manifest
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(request, self._connection.server, error) from error
        finally:
            answer.response.close()

    async def _ask(self, request: Request, *, within: aiohttp.ClientTimeout) -> Any:
        """One request, counted also when it fails; returns the answer, whose body is still to be read."""
        status = NO_ANSWER
        try:
            answer = await self._http.call_api(
                request.method,
                self._url(request),
                header_params=await self._headers(request),
                body=_body(request),
                _request_timeout=within,
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


def _official_client(connection: Connection) -> Any:
    """The official client's HTTP layer, without its retries and its reading of proxy variables."""
    # Imported here: 20 MiB and 0.2 s, which only a process with a connection should pay.
    from kubernetes.aio.client import ApiClient, Configuration

    configuration = Configuration(
        host=connection.server,
        ssl_ca_cert=connection.ca_file,
        cert_file=connection.certificate_file,
        key_file=connection.key_file,
        verify_ssl=connection.verify,
        tls_server_name=connection.tls_server_name,
        proxy=connection.proxy,
        connection_pool_maxsize=0,  # unbounded: `limit` is the one bound; waiting for it is not connect time
        client_session_kwargs={"trust_env": False},
    )
    try:
        return ApiClient(configuration)
    except OSError as error:  # ssl.SSLError is one
        raise Unreachable(
            f"the certificates for {connection.server} cannot be used: {error}",
            fix="check the CA and the client certificate that the connection names",
        ) from error


def _body(request: Request) -> Manifest | str | None:
    """JSON that is YAML too: DEL only as an escape, and what is beyond U+FFFF only as it is, for YAML has no pairs."""
    if request.content_type != APPLY_PATCH:
        return request.body
    text = json.dumps(request.body, ensure_ascii=False)
    return re.sub("[\x7f-\uffff]", lambda one: f"\\u{ord(one[0]):04x}", text)


def _decoded(request: Request, status: int, body: bytes) -> Manifest:
    try:
        answer = json.loads(body)
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
    what, manifest = event.get("type"), event.get("object")
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    is_object = isinstance(metadata, dict) and isinstance(metadata.get("resourceVersion"), str)
    if not isinstance(what, str) or not isinstance(manifest, dict) or not (is_object or what == "ERROR"):
        raise ServerError(f"{request}: a line of the watch is not an event", status=status)
    return what, manifest


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines; bytes after the last line break are an incomplete line and are dropped."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
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
