"""Defects of the audit itself: unexpected exceptions. Reconciling goes on; the isolation gate stays closed.

Each is logged and counted. The condition AuditFaulty, and the Event of its change, name the newest one. The condition
stays for a while after the last fault, so that a part which fails at every other evaluation causes few writes.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from hermetic.api.condition_updates import ConditionUpdate
from hermetic.audit.verdict.fault_status import faulty
from hermetic.ports import Clock

STAYS_SECONDS = 600.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 300.0
LONGEST_WORDS = 300

log = structlog.get_logger(__name__)


class AuditFaults:
    """Recent faults. `count(part)` is called for each fault, `on_fault()` when the condition must be updated."""

    def __init__(
        self, clock: Clock, *, count: Callable[[str], None], on_fault: Callable[[], None] = lambda: None
    ) -> None:
        self._clock = clock
        self._count = count
        self._on_fault = on_fault
        self._newest: dict[str, tuple[str, float]] = {}
        self._breaks = 0

    def met(self, part: str, error: BaseException) -> None:
        """Record that a part of the audit failed with an unexpected error."""
        log.error("the audit failed", part=part, because=repr(error), exc_info=error)
        self._count(part)
        is_news = part not in self._current()
        self._newest[part] = (repr(error)[:LONGEST_WORDS], self._clock.monotonic())
        if is_news:
            self._on_fault()

    def pause(self) -> float:
        """Seconds until the next evaluation after a fault that left no verdict: longer each time."""
        seconds = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * (1 << min(self._breaks, 10)))
        self._breaks += 1
        return seconds

    def condition(self) -> ConditionUpdate | None:
        """The condition AuditFaulty; None without a recent fault."""
        current = self._current()
        if not current:
            self._breaks = 0
            return None
        return faulty(current)

    def ends_in(self) -> float | None:
        """Seconds until the next recorded fault expires."""
        now = self._clock.monotonic()
        return min(
            (at + STAYS_SECONDS - now for _, at in self._newest.values() if at + STAYS_SECONDS > now), default=None
        )

    def _current(self) -> dict[str, str]:
        now = self._clock.monotonic()
        return {part: words for part, (words, at) in self._newest.items() if at + STAYS_SECONDS > now}
