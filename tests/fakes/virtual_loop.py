"""An event loop whose clock jumps: hours of back-off and resyncs pass in no time, in their true order."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tests.fakes.clocks import START

TICK = 1e-6

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting it moves the clock to the moment at which waiting would have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if timeout is None and not ready:
            raise RuntimeError("every task waits, and no timer is set")
        # even a busy loop must get older, or a timer that is due in a nanosecond never is
        self.seconds += TICK if ready or not timeout else max(timeout, TICK)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop without waiting."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.seconds


class VirtualClock:
    """The running loop's time as `ports.Clock`."""

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def virtually(scenario: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs the scenario to its end in a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario())
