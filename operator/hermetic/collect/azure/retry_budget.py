"""How long an audit waits before it tries again: one budget for the whole run."""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_SECONDS, LONGEST_SECONDS = 0.5, 30.0
SHORTEST_ASKED_SECONDS = 1.0
"""Asked to wait for less, it waits as if nobody had asked: waits of nothing would never use up a budget."""


class RetryBudget:
    """Seconds of waiting before retries, in all. Waits that overlap count once: it is the run that must not drag on."""

    def __init__(self, seconds: float, chance: Callable[[], float] = random.random) -> None:
        self._left = seconds
        self._covered_until = float("-inf")
        self._chance = chance

    def grants(self, now: float, seconds: float) -> bool:
        """Whether so long a wait from now on is still within the budget; if so it is taken from it."""
        end = now + seconds
        cost = max(0.0, end - max(now, self._covered_until))
        if cost > self._left:
            return False
        self._left -= cost
        self._covered_until = max(self._covered_until, end)
        return True

    def before_the_next(self, tries: int, asked: float | None) -> float:
        """Seconds before try number `tries` + 1, where the answer asked for so many."""
        if asked is not None and asked >= SHORTEST_ASKED_SECONDS:
            return asked
        return max(asked or 0.0, self.backoff(tries))

    def backoff(self, tries: int) -> float:
        """Seconds before try number `tries` + 1 where nobody said how long: doubling, jittered by half."""
        seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(tries - 1, 16))
        return seconds * (0.5 + self._chance())
