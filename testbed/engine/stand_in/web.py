"""The HTTP side: one thread per connection, routes by method and path, TLS where asked, and a clean shutdown."""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import NAME
from .console import access
from .metrics import Metrics
from .settings import Settings, Tls

Route = Callable[["Exchange"], None]
Routes = Mapping[tuple[str, str], Route]
FINISHING_SECONDS = 5.0


class Server(ThreadingHTTPServer):
    """Bound when made, so that a port in use is known early; it answers no request before `open`."""

    daemon_threads = True
    request_queue_size = 2048

    def __init__(self, settings: Settings, routes: Routes, guard: Route | None, metrics: Metrics) -> None:
        super().__init__((settings.host, settings.port), Exchange, bind_and_activate=False)
        self.settings = settings
        self.routes = routes
        self.guard = guard
        self.metrics = metrics
        self.tls = _tls_context(settings.tls) if settings.tls else None
        self._busy = 0
        self._quiet = threading.Condition()
        self.server_bind()

    def server_bind(self) -> None:
        # HTTPServer looks its own name up, which asks a name server that a sealed pod does not have.
        self.allow_reuse_address = True
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def open(self) -> None:
        self.server_activate()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        """Stops listening, lets answers that are being written out, and drops connections that are idle."""
        self.shutdown()
        self.server_close()
        with self._quiet:
            self._quiet.wait_for(lambda: self._busy == 0, FINISHING_SECONDS)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self.tls is not None:
            # The handshake is left to the connection's own thread: a silent client must not keep others out.
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def begins(self) -> None:
        with self._quiet:
            self._busy += 1

    def ends(self) -> None:
        with self._quiet:
            self._busy -= 1
            self._quiet.notify_all()


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate, tls.key)
    if tls.authorities:
        context.load_verify_locations(tls.authorities)
    context.verify_mode = ssl.VerifyMode(tls.client_certificates)
    return context


class Exchange(BaseHTTPRequestHandler):
    """One connection, and the request on it that is being answered."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.settings.idle_connection_seconds)

    def version_string(self) -> str:
        return NAME

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's signature
        """Access is logged by `_answer`, as vLLM does."""

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_GET  # noqa: N815

    @property
    def route(self) -> str:
        return self.path.split("?", 1)[0]

    def _answer(self) -> None:
        began, self.status, self.body = time.monotonic(), 0, b""
        self.server.begins()
        try:
            self.body = self._read_body()
            if self.server.guard is not None:
                self.server.guard(self)
            if not self.status:
                self._find_route()(self)
        finally:
            self.server.ends()
            self.server.metrics.observe_request(self.route, self.command, self.status, time.monotonic() - began)
            if self.route not in self.server.settings.quiet_paths:
                client = ":".join(map(str, self.client_address[:2]))
                access(client, self.command, self.path, f"{self.status} {_phrase(self.status)}")

    def _find_route(self) -> Route:
        found = self.server.routes.get((self.command, self.route))
        if found is not None:
            return found
        known = any(path == self.route for _, path in self.server.routes)
        status, detail = (405, "Method Not Allowed") if known else (404, "Not Found")
        return lambda exchange: exchange.send_json(status, {"detail": detail})

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue
        return body

    def send_json(self, status: int, body: Any) -> None:
        self.send_bytes(status, json.dumps(body).encode(), "application/json")

    def send_bytes(self, status: int, body: bytes = b"", kind: str = "text/plain; charset=utf-8") -> None:
        self.status = status
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_events(self, events: Iterable[bytes]) -> None:
        """A stream of server-sent events, each one chunk; what `events` raises cuts the stream off."""
        self.status = 200
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        for event in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = False


def _phrase(status: int) -> str:
    with suppress(ValueError):
        return HTTPStatus(status).phrase
    return ""
