"""The test bed's client keeps its connections, and notices when a server has ended one between two calls."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.certificates import Authority, write_kubeconfig
from testbed.errors import ApiError
from tests.sampled_groups import TEST_BED

pytestmark = TEST_BED


class Server(http.server.ThreadingHTTPServer):
    """Answers every GET with the number of the connection that it came by; `/absent` with 404, `/last` ends it."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.connections = 0
        self.ended = threading.Event()
        self.meeting = threading.Barrier(2, timeout=10)
        authority = Authority("tests")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*authority.server("server", ["127.0.0.1"]).write(folder, "server"))
        self.socket = context.wrap_socket(self.socket, server_side=True)
        url = f"https://127.0.0.1:{self.server_port}"
        self.kubeconfig = write_kubeconfig(folder / "kubeconfig", url, authority.certificate, "token")

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.ended.set()


class Answering(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1
        self.number = self.server.connections

    def do_GET(self) -> None:
        if self.path == "/meet":
            self.server.meeting.wait()
        body = b'{"number": %d}' % self.number
        self.send_response(404 if self.path == "/absent" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.path == "/last"  # without a word before, as a server that is killed

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_calls_share_a_connection_also_after_one_that_was_refused(server: Server) -> None:
    api = Api(server.kubeconfig)

    with pytest.raises(ApiError):
        api.get("/absent")

    assert [api.get("/")["number"], api.get("/")["number"]] == [1, 1]


def test_a_call_after_the_server_ended_the_connection_has_a_new_one(server: Server) -> None:
    api = Api(server.kubeconfig)
    api.get("/last")
    assert server.ended.wait(10)

    assert [api.get("/")["number"] for _ in range(2)] == [2, 2]


def test_calls_at_the_same_time_have_a_connection_each(server: Server) -> None:
    api = Api(server.kubeconfig)

    with ThreadPoolExecutor(2) as threads:
        numbers = {answer["number"] for answer in threads.map(api.get, ["/meet", "/meet"])}

    assert numbers == {1, 2}
