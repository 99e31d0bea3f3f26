"""A steady load of chat requests, and what became of each: `python -m testbed.load URL --model NAME --seconds 60`.

One JSON object on stdout: {"sent": N, "answered": N, "lost": {"what happened": N}}. With `--keep-alive` every worker
keeps its connection for as long as the server lets it; without, each request opens its own. With `--streamed` every
second worker asks for a stream, which must come to its end.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import threading
import time
import urllib.parse
from pathlib import Path

TIMEOUT_SECONDS = 30.0


class Load:
    """Workers that each send a request, wait for the answer and pause, so that the rate stays bounded."""

    def __init__(self, url: str, model: str, *, keep_alive: bool, long_tokens: int, streamed: bool = False) -> None:
        self._address = urllib.parse.urlsplit(url)
        self._model = model
        self._keep_alive = keep_alive
        self._long_tokens = long_tokens
        self._streamed = streamed
        self._until: Path | None = None
        self._lock = threading.Lock()
        self.sent = 0
        self.outcomes: collections.Counter[str] = collections.Counter()

    def run(self, seconds: float, workers: int, rate: float, *, until: Path | None = None) -> None:
        """Send for `seconds`, or until there is a file at `until`, at about `rate` requests a second in all."""
        self._until = until
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=self._work, args=(number, end, workers / rate)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, number: int, end: float, period: float) -> None:
        connection: http.client.HTTPConnection | None = None
        due = time.monotonic() + period * number / 16
        while due < end and not (self._until is not None and self._until.exists()):
            time.sleep(max(0.0, due - time.monotonic()))
            due = max(due + period, time.monotonic())
            tokens = self._long_tokens if number % 4 == 0 else 4
            connection, outcome = self._ask(connection, tokens, is_streamed=self._streamed and number % 2 == 1)
            with self._lock:
                self.sent += 1
                self.outcomes[outcome] += 1

    def _ask(
        self, connection: http.client.HTTPConnection | None, tokens: int, *, is_streamed: bool
    ) -> tuple[http.client.HTTPConnection | None, str]:
        """One request; returns the connection to use next, and "200" or what went wrong."""
        host, port = self._address.hostname or "", self._address.port or 80
        connection = connection or http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        question = {"model": self._model, "messages": [{"role": "user", "content": "Are you there?"}]}
        body = json.dumps({**question, "max_tokens": tokens, **({"stream": True} if is_streamed else {})})
        headers = {"Content-Type": "application/json"} | ({} if self._keep_alive else {"Connection": "close"})
        try:
            connection.request("POST", f"{self._address.path}/chat/completions", body, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return None, type(error).__name__
        if answer.status != 200 or b"choices" not in text or (is_streamed and b"data: [DONE]" not in text):
            connection.close()
            return None, f"{answer.status}{' without its end' if answer.status == 200 else ''}"
        if self._keep_alive and not answer.will_close:
            return connection, "200"
        connection.close()
        return None, "200"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="base URL, up to and including /v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--until", type=Path, help="end once this file exists, if that is earlier")
    parser.add_argument("--rate", type=float, default=80.0, help="requests a second, in all")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--long-tokens", type=int, default=30, help="tokens of every fourth worker's answers")
    parser.add_argument("--keep-alive", action="store_true")
    parser.add_argument("--streamed", action="store_true")
    chosen = parser.parse_args()
    load = Load(
        chosen.url,
        chosen.model,
        keep_alive=chosen.keep_alive,
        long_tokens=chosen.long_tokens,
        streamed=chosen.streamed,
    )
    load.run(chosen.seconds, chosen.workers, chosen.rate, until=chosen.until)
    lost = {outcome: count for outcome, count in load.outcomes.items() if outcome != "200"}
    print(json.dumps({"sent": load.sent, "answered": load.outcomes["200"], "lost": lost}), flush=True)


if __name__ == "__main__":
    main()
