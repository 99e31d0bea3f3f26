"""A small JSON client of the API server for the test bed's own needs: blocking, standard library only.

Paths are API paths (`/api/v1/namespaces/default/pods`); objects are plain dicts. Not a product client: it
understands client certificates and bearer tokens, raises ApiError for every answer that is not 2xx, and OSError
when there was no whole answer. Connections are kept from call to call: a handshake costs both sides more than most
answers do.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import select
import ssl
import tempfile
import urllib.parse
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.errors import ApiError, BedError

Json = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Access:
    """Where an API server is, how to trust it, and who we are to it."""

    server: str
    tls: ssl.SSLContext
    token: str | None

    @classmethod
    def of(cls, kubeconfig: Path) -> Access:
        """Reads the current context. Users that run a program to log in are refused by name."""
        config = yaml.safe_load(kubeconfig.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        if unknown := {"exec", "auth-provider"} & user.keys():
            raise BedError(
                f"{kubeconfig}: user {context['user']!r} logs in by {', '.join(unknown)}, which is not supported"
            )
        authority = _material(cluster, "certificate-authority")
        tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
        certificate, key = _material(user, "client-certificate"), _material(user, "client-key")
        if certificate and key:
            # the ssl module reads client certificates from files only
            with tempfile.NamedTemporaryFile() as pair:
                pair.write(certificate + b"\n" + key)
                pair.flush()
                tls.load_cert_chain(pair.name)
        return cls(cluster["server"], tls, user.get("token"))


class Api:
    """One API server. Every call has a connection to itself meanwhile, so it may be used from any thread."""

    def __init__(self, kubeconfig: Path, user_agent: str = "hermetic-testbed") -> None:
        self._access = Access.of(kubeconfig)
        self._user_agent = user_agent
        self._idle: list[http.client.HTTPSConnection] = []
        weakref.finalize(self, _close_all, self._idle)

    def get(self, path: str, **query: str) -> Json:
        return self._call("GET", _with_query(path, query))

    def create(self, path: str, manifest: Json) -> Json:
        return self._call("POST", path, manifest)

    def replace(self, path: str, manifest: Json) -> Json:
        return self._call("PUT", path, manifest)

    def merge(self, path: str, patch: Json) -> Json:
        """Merge-patches an object or, with a path that ends in /status, its status."""
        return self._call("PATCH", path, patch, MERGE)

    def apply(self, path: str, manifest: Json, field_manager: str = "testbed", **query: str) -> Json:
        """Server-side apply, taking over fields from others unless `force="false"`."""
        query = {"fieldManager": field_manager, "force": "true", **query}
        return self._call("PATCH", _with_query(path, query), manifest, APPLY)

    def delete(self, path: str) -> Json:
        return self._call("DELETE", path)

    def text(self, path: str) -> str:
        """A GET whose answer is not JSON, `/healthz` for one."""
        return self._asked("GET", path).decode()

    def watch(self, path: str, resource_version: str, seconds: int = 240) -> Iterator[Json]:
        """Events after `resource_version` until the server ends the watch; an ERROR event raises ApiError."""
        query = {"watch": "true", "resourceVersion": resource_version, "timeoutSeconds": str(seconds)}
        connection = self._connection(seconds + 10)
        with contextlib.closing(connection), self._answer(connection, "GET", _with_query(path, query)) as answer:
            if answer.status >= 300:
                raise _error(answer.status, answer.read())
            for line in _lines(answer):
                event: Json = json.loads(line)
                if event["type"] == "ERROR":
                    raise _error(event["object"].get("code", 0), json.dumps(event["object"]).encode())
                yield event

    def _call(self, method: str, path: str, body: Json | None = None, content: str = "application/json") -> Json:
        decoded: Json = json.loads(self._asked(method, path, body, content))
        return decoded

    def _asked(self, method: str, path: str, body: Json | None = None, content: str = "application/json") -> bytes:
        connection = self._kept() or self._connection()
        try:
            with self._answer(connection, method, path, body, content) as answer:
                text = answer.read()
        except http.client.HTTPException as error:
            connection.close()
            raise ConnectionError(f"the answer was cut off: {error!r}") from error
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if answer.status >= 300:
            raise _error(answer.status, text)
        return text

    def _kept(self) -> http.client.HTTPSConnection | None:
        """A connection that no call has and that the server has not ended."""
        with contextlib.suppress(IndexError):
            while connection := self._idle.pop():
                if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                    return connection
                connection.close()  # between two calls a server has nothing to say but that it ends
        return None

    def _connection(self, timeout: float = 30) -> http.client.HTTPSConnection:
        address = urllib.parse.urlsplit(self._access.server)
        return http.client.HTTPSConnection(
            address.hostname or "", address.port or 443, context=self._access.tls, timeout=timeout
        )

    def _answer(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: Json | None = None,
        content: str = "application/json",
    ) -> http.client.HTTPResponse:
        """The beginning of the answer, whatever its status."""
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if body is not None:
            headers["Content-Type"] = content
        if self._access.token:
            headers["Authorization"] = f"Bearer {self._access.token}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            return connection.getresponse()
        except http.client.HTTPException as error:
            raise ConnectionError(f"no answer: {error!r}") from error


def _close_all(connections: list[http.client.HTTPSConnection]) -> None:
    for connection in connections:
        connection.close()


def _lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Whole lines as they come. Iterating over the answer would take a broken stream for one that ended."""
    partial_line = b""
    while chunk := _read(answer):
        *lines, partial_line = (partial_line + chunk).split(b"\n")
        yield from lines


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read1(1 << 16)
    except http.client.HTTPException as error:
        raise ConnectionError(f"the answer was cut off: {error!r}") from error


def _error(status: int, body: bytes) -> ApiError:
    try:
        answer = json.loads(body)
        return ApiError(status, answer.get("reason", ""), answer.get("message", ""))
    except (ValueError, AttributeError):
        return ApiError(status, "", body.decode(errors="replace")[:500])


def _named(entries: list[Json], name: str) -> Json:
    return next(entry for entry in entries if entry["name"] == name)


def _material(holder: Json, field: str) -> bytes | None:
    """The inline data of a kubeconfig field, else the content of the file that it names."""
    if inline := holder.get(f"{field}-data"):
        return base64.b64decode(inline)
    return Path(holder[field]).read_bytes() if field in holder else None


def _with_query(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urllib.parse.urlencode(query)}" if query else path
