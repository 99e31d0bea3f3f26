"""Progress while an audit collects, on standard error: one changing line on a terminal, else a line now and then."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType
from typing import Self

from hermetic.cli.terminal import note, show_in_place

EVERY_SECONDS = 5.0
SLOW_SECONDS = 5.0
LONGEST = 100
CREDENTIALS_LOG = "azure"


class _Notes(logging.Handler):
    """Warnings of libraries as notes: standard error must stay readable for scripts."""

    def emit(self, record: logging.LogRecord) -> None:
        for line in record.getMessage().splitlines():
            _note(line.strip())


class ProgressLine:
    """Implements `ports.AuditProgress`."""

    def __init__(self) -> None:
        self._requests = self._resources = 0
        self._slowest: tuple[float, str] = (0.0, "")
        self._shown_at = time.monotonic()
        self._notes = _Notes(logging.WARNING)

    def __enter__(self) -> Self:
        # the reason why each credential of this machine fails is useful
        logging.getLogger(CREDENTIALS_LOG).addHandler(self._notes)
        if sys.stderr.isatty():
            show_in_place("audit: starting")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger(CREDENTIALS_LOG).removeHandler(self._notes)
        if kind is None and self._requests:
            self.note(self._line())
        elif sys.stderr.isatty():
            show_in_place("")

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
        _note(f"audit: {sentence}")

    def _show(self, more: str = "") -> None:
        line = self._line() + (f"; {more}" if more else "")
        if sys.stderr.isatty():
            show_in_place(f"audit: {line}")
        elif time.monotonic() - self._shown_at >= EVERY_SECONDS:
            self._shown_at = time.monotonic()
            self.note(line)

    def _line(self) -> str:
        seconds, request = self._slowest
        slow = f"; slowest {seconds:.1f} s: {request[:LONGEST]}" if seconds >= SLOW_SECONDS else ""
        return f"{self._requests} requests, {self._resources} resources{slow}"


def _note(text: str) -> None:
    """A note, in the place of the changing line."""
    if sys.stderr.isatty():
        show_in_place("")
    note(text)
