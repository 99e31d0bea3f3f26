"""How much one caller may ask: ARM's token buckets per subscription, and Resource Graph's window per user."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from testbed.azure import refusals

Clock = Callable[[], float]


@dataclass(frozen=True)
class Quota:
    """Figures as Azure documents them. Reads and POST actions have buckets of their own, per subscription."""

    reads: int = 250
    reads_per_second: float = 25
    actions: int = 200
    actions_per_second: float = 10
    graph: int = 15
    graph_seconds: float = 5


@dataclass
class Bucket:
    """Starts full, refills evenly."""

    size: float
    refill: float
    clock: Clock
    level: float = field(init=False)
    at: float = field(init=False)

    def __post_init__(self) -> None:
        self.level, self.at = self.size, self.clock()

    def take(self) -> int | None:
        """What is left after taking one; None when there is none to take."""
        now = self.clock()
        self.level = min(self.size, self.level + (now - self.at) * self.refill)
        self.at = now
        if self.level < 1:
            return None
        self.level -= 1
        return int(self.level)

    def seconds_to_one(self) -> int:
        return max(1, math.ceil((1 - self.level) / self.refill))


class Meter:
    """Counts against a quota; without one nothing is ever refused, and the headers are those of full buckets."""

    def __init__(self, quota: Quota | None, clock: Clock = time.monotonic) -> None:
        self._quota = quota
        self._clock = clock
        self._reads: dict[str, Bucket] = defaultdict(lambda: self._bucket("reads"))
        self._actions: dict[str, Bucket] = defaultdict(lambda: self._bucket("actions"))
        self._window_began = -math.inf
        self._asked_in_window = 0

    def _bucket(self, kind: str) -> Bucket:
        quota = self._quota or Quota()
        if kind == "reads":
            return Bucket(quota.reads, quota.reads_per_second, self._clock)
        return Bucket(quota.actions, quota.actions_per_second, self._clock)

    def arm(self, method: str, subscription: str) -> dict[str, str]:
        """Headers for one request at ARM; raises the 429 when its bucket is empty."""
        kind = "reads" if method == "GET" else "writes"
        header = (
            f"x-ms-ratelimit-remaining-subscription-{kind}"
            if subscription
            else f"x-ms-ratelimit-remaining-tenant-{kind}"
        )
        if self._quota is None:
            return {header: str(Quota().reads if kind == "reads" else Quota().actions)}
        buckets = self._reads if kind == "reads" else self._actions
        bucket = buckets[subscription.lower()]
        left = bucket.take()
        if left is None:
            refusal = refusals.too_many(bucket.seconds_to_one(), subscription or "tenant")
            refusal.headers[header] = "0"
            raise refusal
        return {header: str(left)}

    def graph(self) -> dict[str, str]:
        """Headers for one query; raises the 429 when the window's share is used up."""
        quota = self._quota or Quota()
        now = self._clock()
        if now - self._window_began >= quota.graph_seconds:
            self._window_began, self._asked_in_window = now, 0
        resets = math.ceil(quota.graph_seconds - (now - self._window_began))
        if self._quota is not None and self._asked_in_window >= quota.graph:
            refusal = refusals.too_many(max(1, resets), "Resource Graph")
            refusal.code = "RateLimiting"
            refusal.headers |= _graph_headers(0, resets)
            raise refusal
        self._asked_in_window += 1
        left = quota.graph - self._asked_in_window if self._quota else quota.graph
        return _graph_headers(left, resets)


def _graph_headers(left: int, resets: int) -> dict[str, str]:
    return {"x-ms-user-quota-remaining": str(left), "x-ms-user-quota-resets-after": f"00:00:{resets:02d}"}
