"""Who else writes our fields: a child that is changed back again and again is left alone for a while.

Correcting drift at the pace of a rival (a mutating policy, another controller) would be a write storm without end.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from hermetic.kube.store import Key
from hermetic.plan.world import ChildKey

WINDOW_SECONDS = 60.0
CORRECTIONS = 3
LONGEST_TRUCE_SECONDS = 600.0


@dataclass(slots=True)
class _Contest:
    corrections: deque[float] = field(default_factory=deque)
    until: float = 0.0
    truces: int = 0


class Contests:
    """Counts corrections per child. Three within a minute: a truce of a minute, then of two, four, up to ten."""

    def __init__(self) -> None:
        self._contests: dict[Key, dict[ChildKey, _Contest]] = defaultdict(dict)

    def corrected(self, key: Key, child: ChildKey, now: float) -> None:
        """A drifted child is about to be corrected."""
        contest = self._contests[key].setdefault(child, _Contest())
        contest.corrections.append(now)
        while contest.corrections and contest.corrections[0] < now - WINDOW_SECONDS:
            contest.corrections.popleft()
        if len(contest.corrections) >= CORRECTIONS:
            contest.corrections.clear()
            contest.until = now + min(LONGEST_TRUCE_SECONDS, WINDOW_SECONDS * 2**contest.truces)
            contest.truces += 1

    def contested(self, key: Key, now: float) -> frozenset[ChildKey]:
        """The children of this deployment that are left alone at present."""
        found = self._contests.get(key) or {}
        return frozenset(child for child, contest in found.items() if contest.until > now)

    def next_look(self, key: Key, now: float) -> float | None:
        """Seconds until the first truce ends; None without one."""
        found = self._contests.get(key) or {}
        return min((c.until - now for c in found.values() if c.until > now), default=None)

    def forget(self, key: Key) -> None:
        """The deployment is gone."""
        self._contests.pop(key, None)
