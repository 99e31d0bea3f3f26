"""Runs many attempts concurrently in one thread."""

from __future__ import annotations

import selectors
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator, Sequence
    from typing import Any

    Steps = Generator[tuple[socket.socket, int, float], None, str]
    """An attempt: yields the socket, event and seconds that it waits for, and returns its answer."""

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class NothingCame(Exception):
    """Thrown into an attempt whose time is over."""


class Attempt:
    """One running attempt, and until when it waits for its socket."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.started = time.monotonic()
        self.deadline = 0.0
        self.answer = ""

    def advance(self, selector: selectors.BaseSelector, resume: Callable[[Steps], Any] = next) -> None:
        """Run to the next wait, or to the answer."""
        try:
            waits_for, event, seconds = resume(self.steps)
        except StopIteration as end:
            self.answer = f"{end.value}/{1000 * (time.monotonic() - self.started):.0f}"
        except NothingCame:
            self.answer = "t"
        except OSError as error:
            self.answer = f"e{error.errno or 0}"
        except Exception as trouble:  # noqa: BLE001 - one malformed question must not end the others
            self.answer = f"x{type(trouble).__name__}"
        else:
            self.deadline = time.monotonic() + seconds
            selector.register(waits_for, event, self)


def race(attempts: Sequence[Steps]) -> list[str]:
    """The answers of all attempts, made side by side.

    An attempt is only given up after a poll of its socket that began when its time was already over: a process that
    got no CPU for a while must not mistake an answer that is there for silence.
    """
    running = [Attempt(steps) for steps in attempts]
    with selectors.DefaultSelector() as selector:
        for attempt in running:
            attempt.advance(selector)
        while selector.get_map():
            polled = time.monotonic()
            first = min(key.data.deadline for key in selector.get_map().values())
            ready = {key.fd for key, _ in selector.select(max(0.0, first - polled))}
            for key in list(selector.get_map().values()):
                if key.fd in ready:
                    selector.unregister(key.fileobj)
                    key.data.advance(selector)
                elif key.data.deadline <= polled:
                    selector.unregister(key.fileobj)
                    key.data.advance(selector, lambda steps: steps.throw(NothingCame()))
    return [attempt.answer for attempt in running]
