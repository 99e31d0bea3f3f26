"""Run `hermetic` with a wall clock that tests move: `python -m testbed.moved_clock FILE run --config ...`.

FILE holds the seconds by which the clock is ahead (negative: behind), and may change while the process runs. Only
`hermetic.controller.clock.SystemClock` is replaced, the one clock of the operator: the time of TLS and of the monotonic
clock stays that of the machine, as on a node whose wall clock is wrong for less than a certificate lasts.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import patch

from hermetic.cli import main
from hermetic.controller.clock import SystemClock


class MovedClock(SystemClock):
    """The machine's time, moved by the seconds in a file."""

    file: Path

    def now(self) -> datetime:
        """Now, in UTC, as this clock shows it."""
        return super().now() + timedelta(seconds=float(self.file.read_text()))


def move(file: Path, seconds: float) -> None:
    """Set by how much the clock is ahead; a process that reads meanwhile sees the former value or this one."""
    partial = file.with_suffix(".partial")
    partial.write_text(str(seconds))
    partial.replace(file)


if __name__ == "__main__":
    MovedClock.file = Path(sys.argv.pop(1))
    with patch("hermetic.controller.composition.SystemClock", MovedClock):
        main()
