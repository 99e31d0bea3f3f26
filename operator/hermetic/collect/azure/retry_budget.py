"""Retry budget: seconds that one audit may wait before retries, in all."""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_SECONDS, LONGEST_SECONDS = 0.5, 30.0
SHORTEST_ASKED_SECONDS = 1.0
"""A shorter Retry-After is replaced by the back-off: waits of zero would never use up the budget."""


class RetryBudget:
    """Seconds of waiting before retries, in all. Overlapping waits count once: the budget bounds the run's duration."""

    def __init__(self, seconds: float, chance: Callable[[], float] = random.random) -> None:
        self._left = seconds
        self._covered_until = float("-inf")
        self._chance = chance

    def grants(self, now: float, seconds: float) -> bool:
        """Whether a wait of so many seconds from now is within the budget; if so it is deducted."""
        end = now + seconds
        cost = max(0.0, end - max(now, self._covered_until))
        if cost > self._left:
            return False
        self._left -= cost
        self._covered_until = max(self._covered_until, end)
        return True

    def before_the_next(self, tries: int, asked: float | None) -> float:
        """Seconds before attempt `tries` + 1; `asked` is the Retry-After of the last answer."""
        if asked is not None and asked >= SHORTEST_ASKED_SECONDS:
            return asked
        return max(asked or 0.0, self.backoff(tries))

    def backoff(self, tries: int) -> float:
        """Seconds before attempt `tries` + 1 without a Retry-After: doubling, with a jitter of half."""
        seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(tries - 1, 16))
        return seconds * (0.5 + self._chance())
