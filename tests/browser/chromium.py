"""A headless Chromium, spoken to over its DevTools pipe: no port, no driver, no package.

Everything that a page asked for, wrote to its console, threw or was refused by its content security policy is kept.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

ARGUMENTS = (
    "--headless",
    "--no-sandbox",  # as root there is none; the page is ours, and its own policy is what is tested
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
)
PATIENCE = 15.0


@dataclass
class Seen:
    """What happened in a page since it was opened."""

    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Tab:
    """One page of one browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self._events: set[str] = set()
        self.seen = Seen()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "Audits"):
            self.call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Loads the page to its end."""
        self.seen = Seen()
        self._events.clear()
        self.call("Page.navigate", url=url)
        self._until(lambda: "Page.loadEventFired" in self._events)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page, through JSON."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def media(self, media: str = "", **features: str) -> None:
        """Emulates a medium ("print") and media features (prefers_color_scheme="dark")."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media=media, features=named)

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One DevTools command and its answer; events that come meanwhile are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message | session).encode() + b"\0")
        answer: dict[str, Any] = {}
        message_number = self._last
        self._until(lambda: answer.get("id") == message_number, answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _until(self, happened: Callable[[], bool], answer: dict[str, Any] | None = None) -> None:
        deadline = time.monotonic() + PATIENCE
        while not happened():
            message = self._next(deadline)
            if "id" in message:
                if answer is not None:
                    answer.update(message)
            else:
                self._keep(message["method"], message.get("params", {}))

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"Chromium said nothing for {PATIENCE:.0f} s"
            self._buffer += os.read(self._from, 1 << 20)
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _keep(self, event: str, params: dict[str, Any]) -> None:
        self._events.add(event)
        match event:
            case "Network.requestWillBeSent":
                self.seen.requests.append(params["request"]["url"])
            case "Runtime.consoleAPICalled":
                self.seen.console.append(json.dumps(params["args"]))
            case "Runtime.exceptionThrown" | "Audits.issueAdded" | "Log.entryAdded" | "Page.javascriptDialogOpening":
                self.seen.problems.append(json.dumps(params))


@contextmanager
def a_tab(path: str) -> Iterator[Tab]:
    """A browser with one empty page and a profile of its own, gone at the end."""
    down_read, down_write = os.pipe()
    up_read, up_write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="hermetic-chromium-", ignore_cleanup_errors=True) as profile:
        # the browser reads commands from its descriptor 3 and answers on 4; bash takes free ones in between
        shell = f'exec {{from}}<&{down_read} {{to}}>&{up_write} 3<&$from 4>&$to; exec "$@"'
        process = subprocess.Popen(
            ["bash", "-c", shell, "bash", path, *ARGUMENTS, f"--user-data-dir={profile}"],
            pass_fds=(down_read, up_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(down_read)
        os.close(up_write)
        try:
            yield Tab(down_write, up_read)
        finally:
            os.close(down_write)
            os.close(up_read)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
