"""Shows other threads that the event loop runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from hermetic.kube.lease import LeaseTiming

BEAT_SECONDS = 1.0
SILENT_SECONDS = LeaseTiming().duration
"""Seconds without a beat after which the loop counts as stuck: 40, those for which the Lease is granted. A loop that is
silent for longer has lost the Lease for certain, so a restart interrupts no work. A loop that is only slow, for want of
processor time, is left alone until then."""


@dataclass(frozen=True, slots=True)
class _Beat:
    at: float
    failure: str


class Heartbeat:
    """Written by the event loop, read by any thread. Times are seconds of `monotonic`.

    `failure` says why the process should be restarted, "" if healthy. The loop calls it with every beat: it reads
    state that only the loop may read.
    """

    def __init__(self, failure: Callable[[], str], monotonic: Callable[[], float]) -> None:
        self._failure = failure
        self._monotonic = monotonic
        self._last = _Beat(monotonic(), "")

    def beat(self) -> None:
        """Record that the loop runs, and its state."""
        self._last = _Beat(self._monotonic(), self._failure())

    async def run(self, every: float = BEAT_SECONDS) -> NoReturn:
        """Beat until cancelled. A defect ends it, and the process then counts as stuck."""
        while True:
            self.beat()
            await asyncio.sleep(every)

    def failure(self) -> str:
        """Why the process should be restarted, "" if healthy; callable from any thread."""
        last = self._last
        silent = self._monotonic() - last.at
        if silent > SILENT_SECONDS:
            return f"the event loop has not run for {silent:.0f} s (tolerated: {SILENT_SECONDS:.0f} s)"
        return last.failure
