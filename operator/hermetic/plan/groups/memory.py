"""What the operator remembers of a group: written into its object with each stop and start, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hermetic.api.pod_reasons import PodReason
from hermetic.api.text import cut_middle, one_line
from hermetic.api.times import timestamp, zoned
from hermetic.objects.names import MEMORY_ANNOTATION

LONGEST_MESSAGE = 400
_MOST = 1_000_000
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = timedelta(seconds=10), timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """The last stop and start of a group.

    `nodes`: how many pods it was started with, 0 if that is not known. `restarts`: incidents for which it was stopped;
    `failures`: those in a row, for the back-off. `reason`, `message`: why it was stopped last; None and "" where the
    operator meant it to stop.
    """

    nodes: int = 0
    restarts: int = 0
    failures: int = 0
    started_at: datetime | None = None
    stopped_at: datetime | None = None
    reason: PodReason | None = None
    message: str = ""

    @property
    def resumes_at(self) -> datetime | None:
        """When the back-off after the last failure ends; None without one."""
        if not self.failures or self.stopped_at is None:
            return None
        doublings: int = min(self.failures - 1, 10)
        pause: timedelta = min(_FIRST_BACK_OFF * (1 << doublings), _LONGEST_BACK_OFF)
        return self.stopped_at + pause

    @property
    def annotation(self) -> str:
        """The memory as JSON, shorter than what is kept of an annotation."""
        moments = {"startedAt": self.started_at, "stoppedAt": self.stopped_at}
        fields = {
            "nodes": self.nodes,
            "restarts": self.restarts,
            "failures": self.failures,
            **{name: timestamp(moment) for name, moment in moments.items() if moment is not None},
            **({"reason": str(self.reason)} if self.reason is not None else {}),
            **({"message": shown(self.message)} if self.message else {}),
        }
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def shown(message: str) -> str:
    """The message in one line, as long as an annotation keeps it."""
    return cut_middle(one_line(message), LONGEST_MESSAGE)


def memory_of(live: Mapping[str, Any], now: datetime) -> GroupMemory:
    """The memory in a live object. Others may have changed the annotation: what cannot be true is not believed."""
    try:
        fields = json.loads((live["metadata"].get("annotations") or {}).get(MEMORY_ANNOTATION) or "{}")
    except (ValueError, RecursionError):
        return GroupMemory()
    if not isinstance(fields, dict):
        return GroupMemory()
    word = fields.get("reason")
    return GroupMemory(
        nodes=_count(fields.get("nodes")),
        restarts=_count(fields.get("restarts")),
        failures=_count(fields.get("failures")),
        started_at=_past(fields.get("startedAt"), now),
        stopped_at=_past(fields.get("stoppedAt"), now),
        reason=next((reason for reason in PodReason if reason == word), None) if isinstance(word, str) else None,
        message=shown(str(fields.get("message") or "")),
    )


def remembering(manifest: Mapping[str, Any], memory: str) -> dict[str, Any]:
    """The manifest with a memory, which is no part of its intent: it says nothing about what the object should be."""
    own = manifest["metadata"]
    annotations = {**(own.get("annotations") or {}), **({MEMORY_ANNOTATION: memory} if memory else {})}
    return {**manifest, "metadata": {**own, "annotations": annotations}}


def _count(value: object) -> int:
    return min(max(value, 0), _MOST) if isinstance(value, int) and not isinstance(value, bool) else 0


def _past(text: object, now: datetime) -> datetime | None:
    moment = zoned(text)
    return moment if moment is not None and moment <= now else None
