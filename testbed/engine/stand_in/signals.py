"""Stop signals: blocked in every thread, and taken by the main thread where it waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
POLL_SECONDS = 0.05


def is_stopped(seconds: float) -> bool:
    """Whether a stop signal comes within so many seconds. It is taken: it is not reported again."""
    return signal.sigtimedwait(STOP_SIGNALS, seconds) is not None


def unless_stopped(work: Callable[[], None]) -> None:
    """Does the work in a thread and raises what it raised; KeyboardInterrupt where a stop signal comes before its end.

    The work then goes on until the process ends.
    """
    outcome: list[BaseException | None] = []

    def run() -> None:
        try:
            work()
            outcome.append(None)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
            outcome.append(error)

    threading.Thread(target=run, daemon=True).start()
    while not outcome:
        if is_stopped(POLL_SECONDS):
            raise KeyboardInterrupt
    if outcome[0] is not None:
        raise outcome[0]
