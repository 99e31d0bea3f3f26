"""Requests to the engine from inside its network: plain HTTP or HTTPS, whole answers or streams."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
from dataclasses import dataclass
from typing import Any

from testbed.real_engine.network import POD, PodNetwork
from testbed.real_engine.pod import Pod

MODEL = "meta/llama-3.1-8b-instruct"
START_SECONDS = 1200


@dataclass(frozen=True)
class Client:
    network: PodNetwork
    https: bool = False
    key: str = ""

    def ask(self, path: str, body: Any = None, method: str = "") -> tuple[int, bytes]:
        """Status and body of one answer."""
        return self.network.inside(lambda: self.exchange(path, body, method))

    def chat(self, **more: Any) -> tuple[int, bytes]:
        return self.ask("/v1/chat/completions", chat(**more))

    def exchange(self, path: str, body: Any, method: str) -> tuple[int, bytes]:
        with contextlib.closing(self._connection()) as connection:
            return self._exchanged(connection, path, body, method)

    def _exchanged(
        self, connection: http.client.HTTPConnection, path: str, body: Any, method: str
    ) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        payload = None if body is None else json.dumps(body)
        connection.request(method or ("GET" if body is None else "POST"), path, payload, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _connection(self) -> http.client.HTTPConnection:
        if not self.https:
            return http.client.HTTPConnection(POD, 8000, timeout=300)
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(POD, 8000, timeout=300, context=trusting)

    def until_ready(self, pod: Pod) -> float:
        """Seconds until the readiness path answers 200; an engine that ends before fails with its log."""
        began = time.monotonic()
        while time.monotonic() - began < START_SECONDS:
            if pod.process.poll() is not None:
                raise AssertionError(pod.log.read_text(errors="replace")[-4000:])
            try:
                if self.ask("/health")[0] == 200:
                    return time.monotonic() - began
            except OSError:
                pass
            time.sleep(1)
        raise AssertionError(f"not ready after {START_SECONDS} s\n{pod.log.read_text(errors='replace')[-4000:]}")


def chat(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, **more}


def chunks(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream; the last one must be its end."""
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: ")]
    assert lines[-1] == b"[DONE]"
    return [json.loads(line) for line in lines[:-1]]
