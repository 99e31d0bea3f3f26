"""Keeps below the quotas of ARM and Resource Graph, so that nothing is ever refused for asking too fast.

Every request passes a lane: the reads or the actions of one subscription (a token bucket, as ARM counts since 2024), or
the queries of this user (a window, as Resource Graph counts). What the answers say of the quota is believed when it is
less than we thought: somebody else may be using it too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from hermetic.collect.azure.messages import Lane
from hermetic.ports import Clock

Sleep = Callable[[float], Awaitable[None]]

READ_BURST, ACTION_BURST, ACTIONS_PER_SECOND = 250, 200, 10.0
SLACK = 0.995
"""Of a refill we use so much: two clocks never run quite alike."""
GRAPH_QUERIES, GRAPH_SECONDS = 15, 5.0
SHORTEST_SECONDS = 0.001
"""What is left of a wait after rounding may be too short for any clock to notice."""


class Gauge(Protocol):
    """How much may be asked now."""

    def wait(self, now: float) -> float:
        """Seconds until one more may be sent; 0.0 when it may be now."""

    def sent(self, now: float) -> None:
        """One leaves."""

    def landed(self, now: float, headers: Mapping[str, str]) -> None:
        """One came back, with what it says of the quota."""

    def emptied(self, now: float) -> None:
        """The other side says that nothing is left."""


class Bucket:
    """Starts full, refills evenly.

    `most_on_the_way` is kept back: so many requests at most are held up on their way and may arrive closer together
    than they left, when the other side's bucket has long been full and gained nothing meanwhile.
    """

    def __init__(self, size: int, refill: float, header: str, *, most_on_the_way: int, now: float) -> None:
        self._size, self._refill, self._header = float(size - most_on_the_way), refill * SLACK, header
        self._level, self._at = self._size, now
        self._on_the_way = 0

    def wait(self, now: float) -> float:
        """Until there is a whole token."""
        self._fill(now)
        return 0.0 if self._level >= 1 else (1 - self._level) / self._refill

    def sent(self, now: float) -> None:
        """One token less."""
        self._fill(now)
        self._level -= 1
        self._on_the_way += 1

    def landed(self, now: float, headers: Mapping[str, str]) -> None:
        """Those on the way are not yet counted in what the answer says is left."""
        self._fill(now)
        self._on_the_way -= 1
        left = headers.get(self._header, "")
        if left.isascii() and left.isdigit():
            self._level = min(self._level, float(left[:9]) - self._on_the_way)

    def emptied(self, now: float) -> None:
        """Nothing is left."""
        self._fill(now)
        self._level = min(self._level, 0.0)

    def _fill(self, now: float) -> None:
        self._level = min(self._size, self._level + max(0.0, now - self._at) * self._refill)
        self._at = now


class Window:
    """No more than so many answers within any so many seconds, whenever the other side's window begins."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._landings: deque[float] = deque()
        self._on_the_way = 0
        self._not_before = 0.0

    def wait(self, now: float) -> float:
        """Until the oldest answer that counts is old enough."""
        while self._landings and now - self._landings[0] >= self._seconds:
            self._landings.popleft()
        if now < self._not_before:
            return self._not_before - now
        if len(self._landings) + self._on_the_way < self._most:
            return 0.0
        # all of them are on the way: look again when one may have landed
        return self._seconds - (now - self._landings[0]) if self._landings else 0.05

    def sent(self, now: float) -> None:  # noqa: ARG002 - it counts from when it came back
        """One is on the way."""
        self._on_the_way += 1

    def landed(self, now: float, headers: Mapping[str, str]) -> None:
        """Counted from now on; when the other side says that none is left, nothing goes before its window ends."""
        self._on_the_way -= 1
        self._landings.append(now)
        if headers.get("x-ms-user-quota-remaining", "").strip() == "0":
            self._not_before = now + _span(headers.get("x-ms-user-quota-resets-after", ""), self._seconds)

    def emptied(self, now: float) -> None:
        """Nothing before a whole window has passed."""
        self._not_before = max(self._not_before, now + self._seconds)


class _Lane:
    def __init__(self, gauge: Gauge) -> None:
        self.gauge = gauge
        self.queue = asyncio.Lock()
        self.closed_until = 0.0
        self.barred_until = 0.0

    def wait(self, now: float) -> float:
        return max(self.gauge.wait(now), self.closed_until - now)


class Pacing:
    """The lanes, and the few connections that they share. `waits` is told of every wait, in seconds."""

    def __init__(
        self, clock: Clock, sleep: Sleep, *, connections: int, reads_per_second: float, waits: Callable[[float], None]
    ) -> None:
        self._clock, self._sleep, self._waits = clock, sleep, waits
        self._reads_per_second = reads_per_second
        self._most = connections
        self._connections = asyncio.Semaphore(connections)
        self._lanes: dict[Lane, _Lane] = {}

    @asynccontextmanager
    async def turn(self, lane: Lane) -> AsyncIterator[dict[str, str]]:
        """Wait for this request's turn; whoever sends puts the headers of the answer into what is given."""
        gauge, headers = await self._taken(lane), dict[str, str]()
        try:
            yield headers
        finally:
            self._connections.release()
            gauge.landed(self._clock.monotonic(), headers)

    def close(self, lane: Lane, seconds: float) -> None:
        """The other side has had enough of this lane: all that would use it wait."""
        now, closed = self._clock.monotonic(), self._lane(lane)
        closed.gauge.emptied(now)
        closed.closed_until = max(closed.closed_until, now + seconds)

    def bar(self, lane: Lane, seconds: float) -> None:
        """As `close`, but nobody is willing to wait: until then, nothing goes there."""
        barred = self._lane(lane)
        barred.barred_until = max(barred.barred_until, self._clock.monotonic() + seconds)

    def is_barred(self, lane: Lane) -> bool:
        """Whether asking there would only be refused, with no patience left."""
        return self._clock.monotonic() < self._lane(lane).barred_until

    async def _taken(self, lane: Lane) -> Gauge:
        """One at a time stands first in a lane: it takes a connection only when it may go, and goes at once."""
        entered = self._lane(lane)
        async with entered.queue:
            while True:
                while (seconds := entered.wait(self._clock.monotonic())) > 0:
                    self._waits(seconds)
                    await self._sleep(max(seconds, SHORTEST_SECONDS))
                await self._connections.acquire()
                if entered.wait(self._clock.monotonic()) <= 0:
                    entered.gauge.sent(self._clock.monotonic())
                    return entered.gauge
                self._connections.release()

    def _lane(self, lane: Lane) -> _Lane:
        if lane not in self._lanes:
            self._lanes[lane] = _Lane(self._gauge(lane))
        return self._lanes[lane]

    def _gauge(self, lane: Lane) -> Gauge:
        sort, subscription = lane
        if sort == "graph":
            return Window(GRAPH_QUERIES, GRAPH_SECONDS)
        whose = "subscription" if subscription else "tenant"
        size, refill = (READ_BURST, self._reads_per_second) if sort == "reads" else (ACTION_BURST, ACTIONS_PER_SECOND)
        header = f"x-ms-ratelimit-remaining-{whose}-{'reads' if sort == 'reads' else 'writes'}"
        return Bucket(size, refill, header, most_on_the_way=self._most, now=self._clock.monotonic())


def _span(text: str, otherwise: float) -> float:
    """Seconds of hh:mm:ss."""
    parts = text.strip().split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return otherwise
    hours, minutes, seconds = (int(part) for part in parts)
    return float(hours * 3600 + minutes * 60 + seconds)
