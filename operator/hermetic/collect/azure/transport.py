"""HTTP transport to ARM: one function sends, to one host, and only requests that read."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx

from hermetic import __version__
from hermetic.collect.azure.allowed_requests import must_read
from hermetic.collect.azure.clouds import Cloud, origin_of
from hermetic.collect.azure.replies import Ask, RequestAttempt

CONNECTIONS = 8
"""More connections make httpx slower, and the quota is the limit anyway."""
CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0
LARGEST_BODY = 64 * 1024 * 1024
OPTIONAL = "sniffio"
"""The module that httpcore imports, if installed, to detect the event loop."""

_NO_CONNECTION = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


class ArmTransport:
    """Sends to one management endpoint."""

    def __init__(self, cloud: Cloud, client: httpx.AsyncClient) -> None:
        self._cloud = cloud
        self._client = client

    @property
    def endpoint(self) -> str:
        """The URL of the management endpoint."""
        return self._cloud.endpoint

    async def send(self, ask: Ask, token: str) -> RequestAttempt:
        """Send one request; returns an attempt, answered or not. First raises WriteAttempted unless it only reads."""
        must_read(ask.method, ask.target)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await self._exchange(ask, token)
        except TimeoutError:
            return RequestAttempt(error=f"no answer within {REQUEST_SECONDS:.0f} s")
        except httpx.InvalidURL as error:
            return RequestAttempt(error=f"no URL could be made of it: {error}", began=True)
        except httpx.RequestError as error:
            return RequestAttempt(error=_in_words(error), never_arrived=isinstance(error, _NO_CONNECTION))

    async def _exchange(self, ask: Ask, token: str) -> RequestAttempt:
        # always the configured host: `target` has no host, so a link to another one cannot be expressed
        url = self._cloud.endpoint + ask.target
        headers = {"Authorization": f"Bearer {token}"}
        async with self._client.stream(ask.method, url, headers=headers, json=ask.body) as response:
            content = bytearray()
            try:
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > LARGEST_BODY:
                        return RequestAttempt(error=f"the answer is larger than {LARGEST_BODY >> 20} MiB", began=True)
            except httpx.RequestError as error:
                return RequestAttempt(error=_in_words(error), began=True)
            return RequestAttempt(response.status_code, response.headers, bytes(content))

    def local(self, link: str) -> str:
        """Path and query of a link, unchanged; "" when it leads to another host or is invalid."""
        if not link.isprintable():
            return ""
        try:
            parts = urlsplit(link)
            if parts.netloc and (origin_of(link) != self._cloud.host or "@" in parts.netloc):
                return ""
        except ValueError:
            return ""
        if not parts.path.startswith("/") or (parts.scheme and not parts.netloc):
            return ""
        return parts.path + (f"?{parts.query}" if parts.query else "")


def _in_words(error: httpx.RequestError) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _remember_what_is_not_installed() -> None:
    """Record that `sniffio` is missing: httpcore tries to import it at each request, which searches the whole path.

    None in `sys.modules` makes the import fail at once.
    """
    if importlib.util.find_spec(OPTIONAL) is None:
        sys.modules[OPTIONAL] = None  # type: ignore[assignment]


@asynccontextmanager
async def opened(cloud: Cloud) -> AsyncIterator[ArmTransport]:
    """A transport to a cloud.

    A proxy and private certificate authorities of the environment (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE) are used: a
    jump box often has no other way to ARM, and TLS still ends at ARM. An endpoint on this machine is reached directly.
    Redirects are never followed.
    """
    _remember_what_is_not_installed()
    async with httpx.AsyncClient(
        headers={"Accept": "application/json", "User-Agent": f"hermetic/{__version__}"},
        timeout=httpx.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
        follow_redirects=False,
        trust_env=not cloud.is_on_this_machine,
    ) as client:
        yield ArmTransport(cloud, client)
