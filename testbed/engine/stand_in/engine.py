"""The part that would compute: it admits requests, hands out tokens at a steady pace, drains, and can die."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NoReturn, Protocol

from .console import log
from .metrics import Metrics


class Phase(Enum):
    """The phase that the engine is in."""

    LOADING = "loading"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPED = "stopped"
    DEAD = "dead"


class Refused(Exception):
    """The engine does not take the request; carries the HTTP status and the type that vLLM names."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind

    @property
    def body(self) -> dict[str, object]:
        """The JSON of the answer."""
        return {"error": {"message": str(self), "type": self.kind, "param": None, "code": self.status}}


class Aborted(Exception):
    """The engine went away in the middle of a request."""


class Members(Protocol):
    """The other members of a group, without which no token is computed."""

    def step(self) -> bool:
        """Whether all of them took part; it waits for those that do not answer."""

    def lost(self) -> list[int]:
        """Ranks that are gone."""


class Engine:
    """Shared by all request threads. `members`: None where the engine is alone.

    Requests beyond `max_running` count as a queue, and are answered all the same.
    """

    def __init__(
        self,
        metrics: Metrics,
        seconds_per_token: float,
        max_requests: int | None,
        max_running: int | None = None,
        members: Members | None = None,
    ) -> None:
        self.metrics = metrics
        self._max_running = max_running
        self._members = members
        self._seconds_per_token = seconds_per_token
        self._max_requests = max_requests
        self._phase = Phase.LOADING
        self._running = 0
        self._changed = threading.Condition()
        self._gone = threading.Event()

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def running(self) -> int:
        return self._running

    def page(self) -> str:
        """The page of metrics."""
        admitted, limit = self._running, self._max_running
        waiting = 0 if limit is None else max(0, admitted - limit)
        return self.metrics.text(admitted - waiting, waiting)

    def serve(self) -> None:
        self._phase = Phase.SERVING

    def die(self) -> None:
        self._phase = Phase.DEAD
        self._gone.set()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Holds a place in the engine. Raises Refused where vLLM would not admit the request."""
        with self._changed:
            self._admit()
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _admit(self) -> None:
        if self._phase in {Phase.DRAINING, Phase.STOPPED}:
            raise Refused(500, "InternalServerError", "cannot schedule new futures after shutdown")
        if self._phase is Phase.DEAD:
            raise Refused(500, "InternalServerError", "The server had an error while processing your request.")
        if self._phase is Phase.LOADING:
            raise Refused(503, "ServiceUnavailableError", "The engine is not ready yet.")
        if self._max_requests is not None and self._running + 1 > self._max_requests:
            self.metrics.add("admission_rejections", label="max_num_queued_reqs")
            raise Refused(
                503,
                "Service Unavailable",
                "The engine is currently busy and cannot accept new requests. "
                "Please try again later or on a different instance.",
            )

    def paced(self, texts: list[str], idle: float = 0.0) -> Iterator[str | None]:
        """Every word after its time; None for each `idle` seconds (0: never) without one. Raises Aborted.

        Without all members it waits until the engine stops.
        """
        if self._members is not None and not self._members.step():
            self._wait_without_members()
        for word in texts:
            if self._members is not None and self._members.lost():
                self._wait_without_members()
            due = time.monotonic() + self._seconds_per_token
            while (left := due - time.monotonic()) > 0:
                if self._gone.wait(min(left, idle) if idle else left):
                    raise Aborted
                if idle and left > idle:
                    yield None
            if self._gone.is_set():
                raise Aborted
            yield word

    def _wait_without_members(self) -> NoReturn:
        log(f"a request waits for members that are gone: {self._members and self._members.lost()}", "ERROR")
        self._gone.wait()
        raise Aborted

    def stop(self, timeout: float) -> bool:
        """Takes no more requests, lets running ones finish for `timeout` seconds, then aborts; False if it had to."""
        with self._changed:
            self._phase = Phase.DRAINING if timeout else Phase.STOPPED
            finished = self._changed.wait_for(lambda: self._running == 0, timeout)
        self._phase = Phase.STOPPED
        self._gone.set()
        return finished
