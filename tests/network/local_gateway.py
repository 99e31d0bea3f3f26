"""The real Envoy on loopback with the routes of a test, and backends that say what reached them."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testbed.gateway import envoy
from testbed.gateway.attachment import attachments
from testbed.gateway.controller import CONTROLLER
from testbed.gateway.discovery import DiscoveryServer, config_source
from testbed.gateway.snapshot import Manifest, key_of
from testbed.gateway.translation import resources
from testbed.processes import Component, free_port, wait_until
from tests.gateway_objects import a_gateway, a_listener, a_snapshot

REFRESH_SECONDS = 0.1


class Backend:
    """Answers every request with its own name, the path and the headers that came."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Echo", (_Echo,), {"backend": name}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    backend = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's signature
        """Tests look at answers."""

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.dumps({"backend": self.backend, "path": self.path, "headers": headers}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@dataclass
class LocalGateway:
    """Envoy for the Gateway `gateways/edge`; `port` is that of its listener."""

    folder: Path
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.gateway = a_gateway("edge", "gateways", a_listener(port=self.port))
        self._server = DiscoveryServer()
        server = ("127.0.0.1", self._server.port)
        arguments = envoy.arguments(key_of(self.gateway), "test", server, REFRESH_SECONDS, free_port())
        self.component = Component("envoy", [envoy.program(), *arguments], self.folder / "envoy.log")

    def start(self) -> None:
        self.publish()
        self.component.start()

    def stop(self) -> None:
        self.component.stop()
        self._server.close()

    def publish(self, *objects: Manifest) -> None:
        """Give Envoy the routes, Services and EndpointSlices of a moment in the place of those before."""
        gateway = next((manifest for manifest in objects if manifest["kind"] == "Gateway"), self.gateway)
        snapshot = a_snapshot(gateway, *objects)
        attached = list(attachments(snapshot, CONTROLLER))
        self._server.publish(key_of(gateway), resources(snapshot, gateway, attached, config_source(REFRESH_SECONDS)))

    def serve(self, *objects: Manifest) -> None:
        """Publish, and return when Envoy has taken it in."""
        self.publish(*objects)
        wait_until("routes in Envoy", lambda: self._server.is_settled(key_of(self.gateway)), [self.component])

    def ask(
        self, path: str, host: str = "localhost", method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """The status, and what the backend said where it is 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers={"Host": host, **named})
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, json.loads(body) if answer.status == 200 else {}
        finally:
            connection.close()
