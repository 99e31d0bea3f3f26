"""Conditions as they are computed and as they are written, for every kind with a status of Hermetic's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import REASONS, Reason
from hermetic.api.text import one_line
from hermetic.api.times import timestamp
from hermetic.api.weights_reasons import WEIGHTS_REASONS, WeightsReason

CONDITION_REASONS: Mapping[str, Reason | WeightsReason] = {**REASONS, **WEIGHTS_REASONS}
"""Every reason that a condition may have, by its word."""


@dataclass(frozen=True, slots=True)
class ConditionUpdate:
    """One condition before it has times and generations: what, whether, why."""

    type: ConditionType
    status: str
    reason: Reason | WeightsReason
    message: str


def dated(update: ConditionUpdate, generation: int, before: Mapping[str, Any] | None, now: datetime) -> dict[str, Any]:
    """The condition as it is written. `before` is the present one: its transition time stays while its status does."""
    unchanged = before is not None and before.get("status") == update.status
    return {
        "type": update.type.value,
        "status": update.status,
        "reason": update.reason.value,
        "message": one_line(update.message),
        "lastTransitionTime": before["lastTransitionTime"] if unchanged and before is not None else timestamp(now),
        "observedGeneration": generation,
    }


def pointing_to_ready(reason: Reason | WeightsReason) -> str:
    """The message of Stalled or Reconciling: the cause; the details are in the message of Ready alone."""
    return f"{reason.meaning} See the condition Ready."
