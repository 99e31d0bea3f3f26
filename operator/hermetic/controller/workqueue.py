"""Deduplicating work queue: a key is processed by one worker at a time; changes by people come before routine.

Reconciling is level-triggered: the state is in the store, and the queue holds only keys.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

BASE_DELAY = 0.5
LONGEST_DELAY = 300.0


@dataclass(order=True, slots=True)
class _Later(Generic[K]):
    due: float
    order: int
    key: K = field(compare=False)
    routine: bool = field(compare=False)


class WorkQueue(Generic[K]):
    """Deduplicating, with delays, back-off per key and two lanes. Times are seconds of `monotonic`."""

    def __init__(self, monotonic: Callable[[], float], jitter: Callable[[], float] = random.random) -> None:
        self._monotonic = monotonic
        self._jitter = jitter
        # Per lane: waiting keys, and the time since when they wait.
        self._urgent: OrderedDict[K, float] = OrderedDict()
        self._routine: OrderedDict[K, float] = OrderedDict()
        self._working: dict[K, float] = {}
        self._dirty: dict[K, bool] = {}
        self._later: list[_Later[K]] = []
        self._due: dict[K, float] = {}
        self._gathering: set[K] = set()
        self._failures: dict[K, int] = {}
        self._parked: dict[K, float] = {}
        self._count = itertools.count()
        self._changed = asyncio.Event()
        self._hands_free = asyncio.Event()
        self._hands_free.set()
        self._paused_until = 0.0

    def __len__(self) -> int:
        return len(self._urgent) + len(self._routine)

    @property
    def in_progress(self) -> int:
        """Number of keys being worked on."""
        return len(self._working)

    def oldest_age(self) -> float:
        """Seconds that the oldest key has waited or been worked on; 0 when there is none."""
        began = min(
            itertools.chain(self._urgent.values(), self._routine.values(), self._working.values()), default=None
        )
        return 0.0 if began is None else float(self._monotonic() - began)

    def add(self, key: K, *, routine: bool = False) -> None:
        """Queue the key; `routine` puts it behind all others. A key in progress is queued again when it is done."""
        if self._monotonic() < self._parked.get(key, 0.0):
            return  # queued already for the end of that time
        if key in self._working:
            self._dirty[key] = routine and self._dirty.get(key, True)
        elif key not in self._urgent and not (routine and key in self._routine):
            waiting_since = self._routine.pop(key, self._monotonic())
            (self._routine if routine else self._urgent)[key] = waiting_since
            self._changed.set()

    def add_all(self, keys: Iterable[K]) -> None:
        for key in keys:
            self.add(key)

    def add_after(self, key: K, seconds: float, *, routine: bool = False) -> None:
        """Queue the key after so many seconds; the earliest of several requests counts, and none ends a parking."""
        # Not before the parking ends: `add` ignores a parked key, so an earlier deadline would be lost.
        due = max(self._monotonic() + seconds, self._parked.get(key, 0.0))
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        self._gathering.discard(key)
        heapq.heappush(self._later, _Later(due, next(self._count), key, routine))
        if len(self._later) > 2 * len(self._due):
            # An earlier deadline supersedes a later one; drop stale heap entries, which may be due only in a day.
            self._later = [later for later in self._later if self._due.get(later.key) == later.due]
            heapq.heapify(self._later)
        self._changed.set()

    def gather(self, key: K, seconds: float, *, routine: bool = False) -> None:
        """Queue the key after so many seconds for a change that any work on it sees that begins from now on."""
        due = self._due.get(key)
        self.add_after(key, seconds, routine=routine)
        if self._due[key] != due:
            self._gathering.add(key)

    def add_failed(self, key: K, *, longest: float = LONGEST_DELAY) -> float:
        """Queue a failed key again, later each time; returns the delay in seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        ceiling = min(longest, BASE_DELAY * 2 ** min(failures - 1, 20))
        delay = float(ceiling * (0.5 + 0.5 * self._jitter()))
        self.add_after(key, delay)
        return delay

    def forget_failures(self, key: K) -> None:
        """Reset the back-off of a key that succeeded."""
        self._failures.pop(key, None)

    def park(self, key: K, seconds: float) -> None:
        """Queue the key after so many seconds and not earlier, whatever changes: the server asked to retry then."""
        self._parked = {other: until for other, until in self._parked.items() if until > self._monotonic()}
        self._parked[key] = self._monotonic() + seconds
        self._dirty.pop(key, None)
        self._due.pop(key, None)
        self._gathering.discard(key)
        self.add_after(key, seconds)

    def pause(self, seconds: float) -> None:
        """Release no key for so many seconds: the API server is busy."""
        self._paused_until = max(self._paused_until, self._monotonic() + seconds)

    async def get(self) -> K:
        """Wait for the next key; it is in progress until `done` is called."""
        while True:
            self._release_due()
            key = self._next() if self._monotonic() >= self._paused_until else None
            if key is not None:
                if key in self._gathering:
                    # The changes that were gathered are seen by the work that begins now.
                    self._gathering.discard(key)
                    del self._due[key]
                self._working[key] = self._monotonic()
                self._hands_free.clear()
                return key
            self._changed.clear()
            await self._sleep_until_something_changes()

    def done(self, key: K) -> None:
        """End the work on a key; queue it again if it was added meanwhile."""
        self._working.pop(key, None)
        if not self._working:
            self._hands_free.set()
        routine = self._dirty.pop(key, None)
        if routine is not None:
            self.add(key, routine=routine)
        else:
            self._changed.set()

    async def all_done(self) -> None:
        """Wait until no key is in progress."""
        await self._hands_free.wait()

    def _next(self) -> K | None:
        for lane in (self._urgent, self._routine):
            if lane:
                return lane.popitem(last=False)[0]
        return None

    def _release_due(self) -> None:
        now = self._monotonic()
        while self._later and self._later[0].due <= now:
            later = heapq.heappop(self._later)
            if self._due.get(later.key) == later.due:
                del self._due[later.key]
                self._gathering.discard(later.key)
                self.add(later.key, routine=later.routine)

    async def _sleep_until_something_changes(self) -> None:
        wakes = [later.due for later in self._later[:1]]
        if len(self):
            wakes.append(self._paused_until)
        timeout = max(0.0, min(wakes) - self._monotonic()) if wakes else None
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return
