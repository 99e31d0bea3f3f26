"""An HTTP stand-in of an engine with a clock of its own: it stamps tokens with dialled latencies and never sleeps."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class TimedEngine:
    """Latencies in milliseconds: every `slow_every`th request has the slow ones. `key`: the API key, "" for none."""

    ttft: float
    itl: float
    slow_ttft: float
    slow_itl: float
    slow_every: int
    key: str = ""
    refused: int = 0
    """The number of requests that it answers with 503 before it answers any other."""
    served: int = 0
    models: set[str] = field(default_factory=set)
    url: str = ""

    def stamps(self, begin: float, tokens: int) -> list[float]:
        """The clock at each token of the next answer."""
        is_slow = self.served % self.slow_every == 0
        self.served += 1
        ttft, itl = (self.slow_ttft, self.slow_itl) if is_slow else (self.ttft, self.itl)
        return [begin + ttft + itl * number for number in range(tokens)]

    @contextmanager
    def serving(self) -> Iterator[TimedEngine]:
        """Serve on a free port of the loopback interface."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"engine": self}))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    engine: TimedEngine

    def do_POST(self) -> None:
        engine = self.engine
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if engine.key and self.headers["Authorization"] != f"Bearer {engine.key}":
            self.send_error(401)
            return
        if engine.refused:
            engine.refused -= 1
            self.send_error(503)
            return
        engine.models.add(body["model"])
        self.send_response(200)
        self.end_headers()
        for stamp in engine.stamps(float(self.headers["X-Clock"]), body["max_tokens"]):
            self.wfile.write(f"data: {json.dumps({'choices': [{'text': 'x'}], 'clock': stamp})}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""
