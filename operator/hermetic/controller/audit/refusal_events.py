"""Kubernetes Events for refused attestations: one for each statement and reason, not repeated while both stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hermetic.api.condition_updates import ConditionUpdate
from hermetic.controller.condition_events import ACTIONS
from hermetic.kube.recorder import EventRecorder

MOST_RECORDED = 16
"""Events of one evaluation: a writer of EgressAttestations must not fill the queue of Events."""

Statement = tuple[str, str]  # name of the EgressAttestation, refusal


class RefusalEvents:
    """Remembers what was recorded. An EgressAttestation is immutable, and its name contains its digest."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._recorded: set[Statement] | None = None

    def record(
        self,
        audit: Mapping[str, Any],
        refusals: Mapping[Statement, ConditionUpdate],
        authentic: Collection[str] = (),
    ) -> None:
        """Record an Event about the EgressAudit for each refusal that is new, in their order (`refusal_updates`).

        Of more than MOST_RECORDED those whose name is in `authentic` follow with the next evaluations, the others have
        no Event. `audit` is the object before its status is written: an earlier process recorded what it names.
        """
        if self._recorded is None:
            self._recorded = _recorded_before(audit.get("status") or {}, refusals)
        self._recorded &= refusals.keys()
        fresh = [statement for statement in refusals if statement not in self._recorded]
        for statement in fresh[:MOST_RECORDED]:
            update = refusals[statement]
            self._recorder.record(
                dict(audit),
                severity="Warning",
                reason=update.reason,
                action=ACTIONS[update.type],
                note=update.message,
            )
        later = {statement for statement in fresh[MOST_RECORDED:] if statement[0] in authentic}
        self._recorded |= set(fresh) - later


def _recorded_before(status: Mapping[str, Any], refusals: Mapping[Statement, ConditionUpdate]) -> set[Statement]:
    """What an earlier process recorded: what the status lists, and all where it counts as many as there are now."""
    listed = {(entry["name"], entry["reason"]) for entry in status.get("refusals") or ()}
    total = len(listed) + int(status.get("moreRefusals") or 0)
    return set(refusals) if listed <= refusals.keys() and total == len(refusals) else listed
