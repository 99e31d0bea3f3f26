"""Progress while an audit collects, on standard error: one changing line on a terminal, else a line now and then."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hermetic.api.text import printable
from hermetic.cli.output import note

if TYPE_CHECKING:
    from rich.status import Status

EVERY_SECONDS = 5.0
SLOW_SECONDS = 5.0
LONGEST = 100
CREDENTIALS_LOG = "azure"


class _Notes(logging.Handler):
    """Warnings of libraries as notes: standard error must stay readable for scripts."""

    def emit(self, record: logging.LogRecord) -> None:
        for line in record.getMessage().splitlines():
            note(line.strip())


class ProgressLine:
    """Implements `ports.AuditProgress`."""

    def __init__(self) -> None:
        self._requests = self._resources = 0
        self._slowest: tuple[float, str] = (0.0, "")
        self._shown_at = time.monotonic()
        self._status: Status | None = None
        self._notes = _Notes(logging.WARNING)

    def __enter__(self) -> Self:
        # the reason why each credential of this machine fails is useful
        logging.getLogger(CREDENTIALS_LOG).addHandler(self._notes)
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("audit: starting")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger(CREDENTIALS_LOG).removeHandler(self._notes)
        if self._status is not None:
            self._status.stop()
        if kind is None and self._requests:
            note(f"audit: {self._line()}")

    def asks(self, questions: int) -> None:
        """A round begins."""
        self._show(f"{questions} questions in this round")

    def answered(self, request: str, seconds: float) -> None:
        """One request came back."""
        self._requests += 1
        self._slowest = max(self._slowest, (seconds, request))
        self._show()

    def saw(self, resources: int) -> None:
        """More resources were read."""
        self._resources += resources

    def waits(self, why: str, seconds: float) -> None:
        """The audit is about to wait; a long wait gets a line."""
        if seconds >= SLOW_SECONDS:
            self.note(f"waiting {seconds:.0f} s: {why}")

    def note(self, sentence: str) -> None:
        note(f"audit: {sentence}")

    def _show(self, more: str = "") -> None:
        line = self._line() + (f"; {more}" if more else "")
        if self._status is not None:
            self._status.update(printable(f"audit: {line}"))
        elif time.monotonic() - self._shown_at >= EVERY_SECONDS:
            self._shown_at = time.monotonic()
            note(f"audit: {line}")

    def _line(self) -> str:
        seconds, request = self._slowest
        slow = f"; slowest {seconds:.1f} s: {request[:LONGEST]}" if seconds >= SLOW_SECONDS else ""
        return f"{self._requests} requests, {self._resources} resources{slow}"
