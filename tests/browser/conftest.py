"""Everything in this folder needs a Chromium (`make packages` installs it); without one it skips, in CI it fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from testbed.packages import BROWSERS
from testbed.packages import browser as installed
from tests.browser.chromium import Tab, a_tab


@dataclass
class Site:
    """One page on loopback that records every request, from any client."""

    text: str = ""
    asked: list[str] = field(default_factory=list)
    address: str = ""


class _Answer(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *rest) -> None:
        self.site = site
        super().__init__(*rest)

    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        body = self.site.text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Nothing: requests are kept, not printed."""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Answer, site))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}/report.html"
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Tab]:
    path = installed()
    if path is None:
        pytest.skip(f"no Chromium on this machine: apt-get install {BROWSERS[0]}")
    with a_tab(path) as tab:
        yield tab


@pytest.fixture
def tab(browser: Tab) -> Tab:
    """The browser's page, with the media of a plain screen."""
    browser.media()
    return browser
