"""A registry in memory that fails where a test says so, by the distribution specification 1.1.

    with RegistryStandIn() as registry:
        registry.fail("PATCH", Answer(503), times=2)
        registry.drop("PATCH", after=1000)

https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md. `requests` are those that came, with their
headers; `blobs` and `manifests` are what it holds.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Answer:
    """An answer in place of the registry's own."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class _Fault:
    method: str
    pattern: str
    answer: Answer | None
    kept: int
    does_work: bool


class RegistryStandIn:
    """One registry on the loopback."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[str, bytes]] = {}
        self.uploads: dict[str, bytearray] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self._faults: deque[_Fault] = deque()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fail(self, method: str, answer: Answer, *, times: int = 1, path: str = "", does_work: bool = False) -> None:
        """Answer so to the next requests of this method whose path has the pattern; after the work if `does_work`."""
        self._faults.extend(_Fault(method, path, answer, 0, does_work) for _ in range(times))

    def drop(self, method: str, *, after: int = 0, path: str = "", does_work: bool = False) -> None:
        """Close the connection of the next such request without an answer; `after` bytes of a chunk have arrived."""
        self._faults.append(_Fault(method, path, None, after, does_work))

    def answer_or_fail(
        self, method: str, path: str, query: Mapping[str, list[str]], headers: Mapping[str, str], body: bytes
    ) -> Answer | None:
        """The registry's own answer or that of a fault; None where the connection is to be closed."""
        fault = next(
            (fault for fault in self._faults if fault.method == method and re.search(fault.pattern, path)), None
        )
        if fault is None:
            return self.answer(method, path, query, headers, body)
        self._faults.remove(fault)
        if fault.does_work:
            self.answer(method, path, query, headers, body)
        elif fault.answer is None and (session := path.rpartition("/")[2]) in self.uploads:
            self.uploads[session] += body[: fault.kept]
        return fault.answer

    def answer(
        self, method: str, path: str, query: Mapping[str, list[str]], headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """What a registry answers."""
        if matched := re.fullmatch(r"/v2/(?P<name>.+)/blobs/uploads/", path):
            session = f"{len(self.uploads)}"
            self.uploads[session] = bytearray()
            return self._accepted(matched["name"], session)
        if matched := re.fullmatch(r"/v2/(?P<name>.+)/blobs/uploads/(?P<session>[^/]+)", path):
            return self._upload(method, matched["name"], matched["session"], query, headers, body)
        if matched := re.fullmatch(r"/v2/.+/blobs/(?P<digest>sha256:[0-9a-f]{64})", path):
            blob = self.blobs.get(matched["digest"])
            return Answer(404) if blob is None else Answer(200, {"Content-Length": str(len(blob))})
        if matched := re.fullmatch(r"/v2/(?P<name>.+)/manifests/(?P<reference>[^/]+)", path):
            return self._manifest(method, f"{matched['name']}:{matched['reference']}", headers, body)
        return Answer(404)

    def _upload(
        self,
        method: str,
        name: str,
        session: str,
        query: Mapping[str, list[str]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Answer:
        if session not in self.uploads:
            return _error(404, "BLOB_UPLOAD_UNKNOWN")
        received = self.uploads[session]
        if method == "GET":
            return Answer(204, {**self._accepted(name, session).headers})
        if method == "PATCH":
            if headers["Content-Range"].partition("-")[0] != str(len(received)):
                return Answer(416, self._accepted(name, session).headers)
            received += body
            return self._accepted(name, session)
        content, (digest,) = bytes(received) + body, query["digest"]
        if _digest(content) != digest:
            return _error(400, "DIGEST_INVALID")
        self.blobs[digest] = content
        del self.uploads[session]
        return Answer(201)

    def _manifest(self, method: str, key: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if method == "PUT":
            self.manifests[key] = headers["Content-Type"], body
            return Answer(201, {"Docker-Content-Digest": _digest(body)})
        if key not in self.manifests:
            return _error(404, "MANIFEST_UNKNOWN")
        media_type, content = self.manifests[key]
        answer_headers = {"Content-Type": media_type, "Docker-Content-Digest": _digest(content)}
        return Answer(200, answer_headers, b"" if method == "HEAD" else content)

    def _accepted(self, name: str, session: str) -> Answer:
        last = max(len(self.uploads[session]) - 1, 0)
        return Answer(202, {"Location": f"/v2/{name}/blobs/uploads/{session}", "Range": f"0-{last}"})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    self.raw_requestline = self.rfile.readline()
                    if not self.raw_requestline or not self.parse_request():
                        self.close_connection = True
                        return
                    self._answer()
                except ConnectionError:
                    self.close_connection = True

            def _answer(self) -> None:
                url = urlsplit(self.path)
                registry.requests.append((self.command, self.path, dict(self.headers)))
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = registry.answer_or_fail(self.command, url.path, parse_qs(url.query), dict(self.headers), body)
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, text in answer.headers.items():
                    self.send_header(name, text)
                if "Content-Length" not in answer.headers and answer.status != 204:
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _error(status: int, code: str) -> Answer:
    return Answer(
        status, {}, f'{{"errors": [{{"code": "{code}", "message": "as the specification names it"}}]}}'.encode()
    )
