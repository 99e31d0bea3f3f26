"""The clocks of tests. `ports.Clock` all of them; the real one is `hermetic.controller.clock.SystemClock`.

HandClock       changes only when a test sets it
SleepingClock   only sleeping moves it; sleeps that overlap pass together
SleepersClock   sleepers wake in order, when a test lets time pass
VirtualClock    the time of a loop that never waits: `fakes/virtual_loop.py`
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@dataclass
class HandClock:
    """Changes only when a test sets `seconds`; each reading of the monotonic time takes `step` seconds."""

    seconds: float = 0.0
    start: datetime = START
    step: float = 0.0

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        self.seconds += self.step
        return self.seconds


class SleepingClock:
    """Time passes only by sleeping. Sleeps that overlap pass together."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds - 1000.0)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        end = self.seconds + seconds
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.seconds = max(self.seconds, end)

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return self.seconds - 1000.0


class RealTime(SleepingClock):
    """Time passes as it does."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(seconds)

    @property
    def passed(self) -> float:
        return time.monotonic() - self._began


class SleepersClock:
    """A clock and a sleep: sleepers wake in order, and what they start comes to rest before the next one does."""

    def __init__(self, seconds: float = 0.0, wall_clock_error: float = 0.0) -> None:
        self.seconds = seconds
        self._wall_clock_error = wall_clock_error
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds + self._wall_clock_error)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.seconds + seconds, next(self._order), future))
        await future

    async def pass_by(self, seconds: float) -> None:
        """Wake every sleeper whose time comes within these seconds."""
        end = self.seconds + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._wake_the_first()
            await settle()
        self.seconds = end

    async def run(self, tasks: list[asyncio.Task[None]]) -> None:
        """Let time pass until the tasks, which only sleep, are done; raises what they raise."""
        await settle()
        while not all(task.done() for task in tasks):
            self._wake_the_first()
            await settle()
        await asyncio.gather(*tasks)

    def stand_still_for(self, seconds: float) -> None:
        """The process is paused: time passes, and none of its tasks runs."""
        self.seconds += seconds

    def _wake_the_first(self) -> None:
        at, _, future = heapq.heappop(self._sleepers)
        self.seconds = max(self.seconds, at)
        if not future.done():
            future.set_result(None)


async def settle() -> None:
    """Let every task that can run do so until it waits again."""
    for _ in range(50):
        await asyncio.sleep(0)
