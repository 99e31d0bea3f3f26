"""Progress of reading weights, on standard error: one changing line on a terminal, else a line now and then."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Self

from hermetic.cli.terminal import note, show_in_place, write
from hermetic.weights.workers import Progress

EVERY_SECONDS = 10.0
DRAW_EVERY_SECONDS = 0.2
GIB = 2**30
_WIDTH = 24


class ProgressEvents:
    """Shows a `Progress` as lines of JSON on standard output, for pipelines."""

    def __init__(self) -> None:
        self._shown_at = 0.0

    def __call__(self, progress: Progress) -> None:
        """One line a second at most."""
        now = time.monotonic()
        if now - self._shown_at >= 1.0:
            self._shown_at = now
            write(json.dumps({"event": "progress", **facts_of(progress, now)}) + "\n")


class TransferProgress:
    """Shows a `Progress`; `what` is the verb of the line."""

    def __init__(self, subject: str) -> None:
        self._what = subject
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            show_in_place("")

    def __call__(self, progress: Progress) -> None:
        """Shows it if the interval has passed."""
        now = time.monotonic()
        if now - self._shown_at < (DRAW_EVERY_SECONDS if self._is_terminal else EVERY_SECONDS):
            return
        self._shown_at = now
        line = line_of(self._what, progress, now)
        if self._is_terminal:
            self._drawn = True
            show_in_place(line)
        else:
            note(line)


def line_of(subject: str, progress: Progress, now: float) -> str:
    """Bar, bytes, rate and remaining time; the last two once they are known."""
    facts = facts_of(progress, now)
    done = f"{facts['bytes'] / GIB:.1f}"
    if progress.bytes_total:
        full = round(_WIDTH * min(1.0, facts["bytes"] / progress.bytes_total))
        done = f"[{'#' * full}{'.' * (_WIDTH - full)}] {done} of {progress.bytes_total / GIB:.1f}"
    seconds_left = facts["secondsLeft"]
    left = "" if seconds_left is None else f", {int(seconds_left) // 60}:{int(seconds_left) % 60:02d} left"
    return f"{subject} {done} GiB, {facts['files']} files, {facts['bytesPerSecond'] / 2**20:.0f} MiB/s{left}"


def facts_of(progress: Progress, now: float) -> dict[str, Any]:
    """The same for programs: bytes, files, bytes per second since the start, and seconds left or None."""
    took = max(now - progress.started, 1e-3)
    rate = progress.bytes_done / took
    has_rate = progress.bytes_total and rate
    return {
        "bytes": progress.bytes_done,
        "bytesTotal": progress.bytes_total,
        "files": progress.files_done,
        "bytesPerSecond": round(rate),
        "secondsLeft": round(max(0, progress.bytes_total - progress.bytes_done) / rate, 1) if has_rate else None,
    }
