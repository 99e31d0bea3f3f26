"""Keeps below the quotas of ARM and Resource Graph, so that no request is throttled.

Every request belongs to a lane: the reads or the actions of one subscription (a token bucket, ARM's method since 2024),
or the queries of this user (a window, as Resource Graph counts). The remaining quota in an answer is adopted when it is
lower than our own count: others may use the same quota.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from hermetic.collect.azure.replies import Lane
from hermetic.ports import Clock

Sleep = Callable[[float], Awaitable[None]]

READ_BURST, ACTION_BURST, ACTIONS_PER_SECOND = 250, 200, 10.0
SLACK = 0.995
"""Share of a refill that is used: two clocks never run at exactly the same rate."""
GRAPH_QUERIES, GRAPH_SECONDS = 15, 5.0
SHORTEST_SECONDS = 0.001
"""The shortest wait: a rest after rounding may be below the resolution of the clock."""
FIRST_SECONDS, LONGEST_SECONDS = 0.5, 30.0
SHORTEST_ASKED_SECONDS = 1.0
"""A shorter Retry-After is replaced by the back-off: waits of zero would never use up the budget."""


class Gauge(Protocol):
    """The state of one quota. Times are monotonic seconds."""

    def wait(self, now: float) -> float:
        """Seconds until one more may be sent; 0.0 when it may be now."""

    def sent(self, now: float) -> None:
        """Count a request that is sent."""

    def landed(self, now: float, headers: Mapping[str, str]) -> None:
        """Count an answer, and adopt the remaining quota in its headers."""

    def emptied(self, now: float) -> None:
        """Note that the server reports an exhausted quota."""


class Bucket:
    """Token bucket: starts full, refills evenly.

    `most_on_the_way` tokens are held in reserve: that many requests may be in flight and arrive closer together than
    they were sent, while the server's bucket was full and gained nothing.
    """

    def __init__(self, size: int, refill: float, header: str, *, most_on_the_way: int, now: float) -> None:
        self._size, self._refill, self._header = float(size - most_on_the_way), refill * SLACK, header
        self._level, self._at = self._size, now
        self._on_the_way = 0

    def wait(self, now: float) -> float:
        """Seconds until there is a whole token."""
        self._fill(now)
        return 0.0 if self._level >= 1 else (1 - self._level) / self._refill

    def sent(self, now: float) -> None:
        """Take one token."""
        self._fill(now)
        self._level -= 1
        self._on_the_way += 1

    def landed(self, now: float, headers: Mapping[str, str]) -> None:
        """Adopt the remaining quota of the answer, less the requests in flight, which it does not count yet."""
        self._fill(now)
        self._on_the_way -= 1
        left = headers.get(self._header, "")
        if left.isascii() and left.isdigit():
            self._level = min(self._level, float(left[:9]) - self._on_the_way)

    def emptied(self, now: float) -> None:
        self._fill(now)
        self._level = min(self._level, 0.0)

    def _fill(self, now: float) -> None:
        self._level = min(self._size, self._level + max(0.0, now - self._at) * self._refill)
        self._at = now


class Window:
    """At most `most` answers within any `seconds`, as the start of the server's window is unknown."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._landings: deque[float] = deque()
        self._on_the_way = 0
        self._not_before = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the oldest counted answer leaves the window."""
        while self._landings and now - self._landings[0] >= self._seconds:
            self._landings.popleft()
        if now < self._not_before:
            return self._not_before - now
        if len(self._landings) + self._on_the_way < self._most:
            return 0.0
        # all of them are in flight: check again when one may have been answered
        return self._seconds - (now - self._landings[0]) if self._landings else 0.05

    def sent(self, now: float) -> None:  # noqa: ARG002 - it counts from when it came back
        """Count a request in flight."""
        self._on_the_way += 1

    def landed(self, now: float, headers: Mapping[str, str]) -> None:
        """Count the answer from now on; if the server reports no quota left, wait for the end of its window."""
        self._on_the_way -= 1
        self._landings.append(now)
        if headers.get("x-ms-user-quota-remaining", "").strip() == "0":
            self._not_before = now + _span(headers.get("x-ms-user-quota-resets-after", ""), self._seconds)

    def emptied(self, now: float) -> None:
        """Wait for a whole window."""
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
    """The lanes, and the connections that they share. `waits` is called with every wait, in seconds."""

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
        """Wait for this request's turn; the sender puts the headers of the answer into the yielded dict."""
        gauge, headers = await self._taken(lane), dict[str, str]()
        try:
            yield headers
        finally:
            self._connections.release()
            gauge.landed(self._clock.monotonic(), headers)

    def close(self, lane: Lane, seconds: float) -> None:
        """Make all requests of this lane wait: the server throttled one."""
        now, closed = self._clock.monotonic(), self._lane(lane)
        closed.gauge.emptied(now)
        closed.closed_until = max(closed.closed_until, now + seconds)

    def bar(self, lane: Lane, seconds: float) -> None:
        """As `close`, but the budget does not cover the wait: until then no request is sent in this lane."""
        barred = self._lane(lane)
        barred.barred_until = max(barred.barred_until, self._clock.monotonic() + seconds)

    def is_barred(self, lane: Lane) -> bool:
        """Whether the lane is throttled beyond the retry budget."""
        return self._clock.monotonic() < self._lane(lane).barred_until

    async def _taken(self, lane: Lane) -> Gauge:
        """Wait in the lane, first come first served; take a connection only when the request may be sent at once."""
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
    """hh:mm:ss in seconds."""
    parts = text.strip().split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return otherwise
    hours, minutes, seconds = (int(part) for part in parts)
    return float(hours * 3600 + minutes * 60 + seconds)


class RetryBudget:
    """Seconds of waiting before retries, in all. Overlapping waits count once: the budget bounds the run's duration."""

    def __init__(self, seconds: float, chance: Callable[[], float] = random.random) -> None:
        self._seconds = self._left = seconds
        self._covered_until = float("-inf")
        self._chance = chance

    def renew(self) -> None:
        """Begin anew, with all of the seconds."""
        self._left = self._seconds

    def grants(self, now: float, seconds: float) -> bool:
        """Whether a wait of so many seconds from now is within the budget; if so it is deducted."""
        end = now + seconds
        cost = max(0.0, end - max(now, self._covered_until))
        if cost > self._left:
            return False
        self._left -= cost
        self._covered_until = max(self._covered_until, end)
        return True

    def before_the_next(self, tries: int, retry_after: float | None) -> float:
        """Seconds before attempt `tries` + 1; `retry_after` is the Retry-After of the last answer."""
        if retry_after is not None and retry_after >= SHORTEST_ASKED_SECONDS:
            return retry_after
        return max(retry_after or 0.0, self.backoff(tries))

    def backoff(self, tries: int) -> float:
        """Seconds before attempt `tries` + 1 without a Retry-After: doubling, with a jitter of half."""
        seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(tries - 1, 16))
        return seconds * (0.5 + self._chance())
