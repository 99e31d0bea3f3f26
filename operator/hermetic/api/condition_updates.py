"""Conditions as they are computed and as they are written, for every kind with a status of Hermetic's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermetic.api.accelerator_reasons import AcceleratorReason
from hermetic.api.audit_reasons import AuditReason
from hermetic.api.conditions import LONGEST_MESSAGE, ConditionType
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.pod_reasons import PodReason
from hermetic.api.reasons import Reason
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.text import cut, one_line
from hermetic.api.times import timestamp
from hermetic.api.weights_reasons import WeightsReason

StatusReason = Reason | SpecReason | PodReason | EngineReason | AcceleratorReason | AuditReason | GatewayReason
"""What Hermetic concludes; a WeightsReason is what the program that verifies weights reports."""
ConditionReason = StatusReason | WeightsReason
STATUS_REASONS: tuple[StatusReason, ...] = (
    *Reason,
    *SpecReason,
    *PodReason,
    *EngineReason,
    *AcceleratorReason,
    *AuditReason,
    *GatewayReason,
)
CONDITION_REASONS: Mapping[str, ConditionReason] = {
    reason.value: reason for reason in (*STATUS_REASONS, *WeightsReason)
}
"""Every reason that a condition may have, by its word."""


@dataclass(frozen=True, slots=True)
class ConditionUpdate:
    """One condition before it has times and generations: what, whether, why."""

    type: ConditionType
    status: str
    reason: ConditionReason
    message: str


def condition_of(status: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """The condition of this type in a status of any kind; None without one."""
    return next((condition for condition in status.get("conditions") or () if condition.get("type") == kind), None)


def is_true(manifest: Mapping[str, Any], kind: str) -> bool:
    """Whether an object of any kind has the condition of this type with the status True."""
    condition = condition_of(manifest.get("status") or {}, kind)
    return condition is not None and condition.get("status") == "True"


def dated(update: ConditionUpdate, generation: int, status: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The condition as it is written: its message is one line of at most LONGEST_MESSAGE characters.

    In the present `status`: its transition time stays while it does not change.
    """
    before = condition_of(status, update.type)
    unchanged = before is not None and before.get("status") == update.status
    return {
        "type": update.type.value,
        "status": update.status,
        "reason": update.reason.value,
        "message": cut(one_line(update.message), LONGEST_MESSAGE),
        "lastTransitionTime": before["lastTransitionTime"] if unchanged and before is not None else timestamp(now),
        "observedGeneration": generation,
    }


def pointing_to_ready(reason: ConditionReason) -> str:
    """The message of Stalled or Reconciling: the cause; the details are in the message of Ready alone."""
    return f"{reason.meaning} See the condition Ready."
