"""Kubernetes Events for changes of conditions: at most one per condition change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hermetic.api.condition_updates import CONDITION_REASONS, condition_of
from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import WARNED_OF

ANNOUNCED = (
    ConditionType.READY,
    ConditionType.WEIGHTS_VERIFIED,
    ConditionType.MODEL_FITS,
    ConditionType.CACHES_USED,
    ConditionType.ACCELERATORS_HEALTHY,
    ConditionType.ISOLATION_VERIFIED,
    ConditionType.ENDPOINT_PRIVATE,
    ConditionType.EVIDENCE_FRESH,
    ConditionType.NODES_ATTESTED,
    ConditionType.EXCEPTIONS_CURRENT,
    ConditionType.AUDIT_FAULTY,
)
ANNOUNCED_AT_ONCE = frozenset(
    (
        ConditionType.READY,
        ConditionType.MODEL_FITS,
        ConditionType.CACHES_USED,
        ConditionType.EXCEPTIONS_CURRENT,
        ConditionType.AUDIT_FAULTY,
    )
)
ANNOUNCED_AS_FALSE = frozenset(
    (ConditionType.WEIGHTS_VERIFIED, ConditionType.ACCELERATORS_HEALTHY, ConditionType.ENDPOINT_PRIVATE)
)
ACTIONS = {
    ConditionType.READY: "Reconcile",
    ConditionType.WEIGHTS_VERIFIED: "VerifyWeights",
    ConditionType.MODEL_FITS: "ComputeMemory",
    ConditionType.CACHES_USED: "ChooseCaches",
    ConditionType.ACCELERATORS_HEALTHY: "CheckAccelerators",
    ConditionType.ISOLATION_VERIFIED: "JudgeIsolation",
    ConditionType.ENDPOINT_PRIVATE: "CheckEndpoint",
    ConditionType.ATTESTATION_ACCEPTED: "JudgeIsolation",
    ConditionType.EVIDENCE_FRESH: "JudgeIsolation",
    ConditionType.NODES_ATTESTED: "JudgeIsolation",
    ConditionType.EXCEPTIONS_CURRENT: "JudgeIsolation",
    ConditionType.AUDIT_FAULTY: "JudgeIsolation",
}


@dataclass(frozen=True, slots=True)
class Announcement:
    """One Event to be posted."""

    severity: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str


@dataclass(frozen=True, slots=True)
class ReadyChange:
    """A change of the condition Ready for the log: `before` and `after` as "False Starting"; at first "none" before."""

    before: str
    after: str
    reason: str
    message: str


def ready_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> ReadyChange | None:
    """The change of Ready between two statuses; None where status and reason stay, whatever the message."""
    old, new = condition_of(before, ConditionType.READY), condition_of(after, ConditionType.READY)
    if new is None or (old is not None and (old["status"], old["reason"]) == (new["status"], new["reason"])):
        return None
    former = "none" if old is None else f"{old['status']} {old['reason']}"
    return ReadyChange(former, f"{new['status']} {new['reason']}", new["reason"], new["message"])


def announcements(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Announcement]:
    """Yield an Event for each change of an announced condition; a reason that Ready repeats is announced once."""
    old = {c["type"]: c for c in before.get("conditions") or ()}
    reasons: set[str] = set()
    for condition in after.get("conditions") or ():
        kind = condition["type"]
        if kind not in ANNOUNCED or not _is_news(old.get(kind), condition) or condition["reason"] in reasons:
            continue
        reasons.add(condition["reason"])
        yield Announcement(
            severity="Warning" if _is_bad(condition) else "Normal",
            reason=condition["reason"],
            action=ACTIONS[ConditionType(kind)],
            note=condition["message"] or CONDITION_REASONS[condition["reason"]].meaning,
        )


def _is_news(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Whether the change is announced; the ordinary first conditions of a new object are not."""
    if old is None:
        return new["type"] in ANNOUNCED_AT_ONCE and _is_bad(new)
    if new["type"] in ANNOUNCED_AS_FALSE and new["status"] != "False":
        return False
    return (old["status"], old["reason"]) != (new["status"], new["reason"])


def _is_bad(condition: Mapping[str, Any]) -> bool:
    if condition["reason"] in WARNED_OF:
        return True
    return condition["status"] != "True" and CONDITION_REASONS[condition["reason"]].needs_human
