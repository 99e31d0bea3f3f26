"""Back-off for drift that another writer keeps restoring.

Correcting drift at the rate of another writer (a mutating policy, another controller) would cause unbounded writes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from hermetic.kube.owners import Key
from hermetic.plan.snapshot import ChildKey
from hermetic.plan.tampering.drift import intent
from hermetic.plan.writes import Change

WINDOW_SECONDS = 60.0
CORRECTIONS = 3
LONGEST_BACKOFF_SECONDS = 600.0


@dataclass(slots=True)
class _ChildBackoff:
    """Recent corrections of one intent of one child, and until when none is made. Times are monotonic seconds."""

    applied_at: float = float("-inf")
    corrections: deque[float] = field(default_factory=deque)
    until: float = 0.0
    backed_off: int = 0

    def corrected(self, now: float) -> None:
        self.corrections.append(now)
        while self.corrections[0] < now - WINDOW_SECONDS:
            self.corrections.popleft()
        if len(self.corrections) >= CORRECTIONS:
            self.corrections.clear()
            self.until = now + min(LONGEST_BACKOFF_SECONDS, WINDOW_SECONDS * 2**self.backed_off)
            self.backed_off += 1

    def is_forgotten(self, now: float) -> bool:
        return now > max(self.until, self.applied_at) + LONGEST_BACKOFF_SECONDS


class DriftBackoff:
    """Counts corrections per child and intent. Three within a minute start a back-off: 1 min, 2, 4, up to 10.

    An intent is the digest of the wanted manifest: another intent is applied at once, even during a back-off.
    """

    def __init__(self) -> None:
        self._backoff: dict[Key, dict[tuple[ChildKey, str], _ChildBackoff]] = defaultdict(dict)

    def applied(self, key: Key, change: Change, now: float) -> None:
        """Record a write: a correction if the child had drifted or this intent was written within a minute."""
        contests = self._backoff[key]
        for forgotten in [child for child, contest in contests.items() if contest.is_forgotten(now)]:
            del contests[forgotten]
        child = (change.manifest["kind"], change.manifest["metadata"]["name"])
        contest = contests.setdefault((child, intent(change.manifest)), _ChildBackoff())
        if change.why == "drifted" or contest.applied_at >= now - WINDOW_SECONDS:
            contest.corrected(now)
        contest.applied_at = now

    def backed_off(self, key: Key, now: float) -> dict[ChildKey, frozenset[str]]:
        """The intents of each child that are in back-off and not applied."""
        found: dict[ChildKey, frozenset[str]] = {}
        for (child, wanted), contest in self._backoff.get(key, {}).items():
            if contest.until > now:
                found[child] = found.get(child, frozenset()) | {wanted}
        return found

    def next_retry(self, key: Key, now: float) -> float | None:
        """Seconds until the first back-off ends; None without one."""
        return min((c.until - now for c in self._backoff.get(key, {}).values() if c.until > now), default=None)

    def forget(self, key: Key) -> None:
        """Drop the counts of a deleted ModelDeployment."""
        self._backoff.pop(key, None)
