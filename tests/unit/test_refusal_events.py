"""Events for refused attestations: one for each statement and reason, however often the audit is evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.egressaudit import MOST_REFUSALS
from hermetic.audit.attestation.choosing import ChosenAttestation
from hermetic.audit.attestation.refusals import Refusal, refused
from hermetic.audit.verdict.overall import refusal_updates
from hermetic.controller.audit.refusal_events import MOST_RECORDED, RefusalEvents

AUDIT = {"metadata": {"name": "cluster", "uid": "3f1c2d4e-0000-4000-8000-00000000beef"}}


class Notes:
    """Stands in for the recorder: keeps every note, also one that it had before."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def record(self, regarding: dict[str, Any], *, severity: str, reason: str, action: str, note: str) -> None:
        assert (severity, reason, action) == ("Warning", "AttestationRefused", "JudgeIsolation")
        assert regarding["metadata"] == AUDIT["metadata"]
        self.notes.append(note)


def refusals(*pairs: tuple[str, Refusal]) -> dict[tuple[str, str], ConditionUpdate]:
    choice = ChosenAttestation(None, "", {name: refused(refusal, "because") for name, refusal in pairs}, ())
    return refusal_updates(choice)


def test_record_of_unchanged_refusals_is_one_event_each() -> None:
    recorder = Notes()
    events = RefusalEvents(recorder)
    for _ in range(3):
        events.record(AUDIT, refusals(("egress-b", Refusal.OTHER_POLICY), ("egress-a", Refusal.SCOPE_INCOMPLETE)))
    assert recorder.notes == [
        "egress-b is refused: OtherPolicy: because",
        "egress-a is refused: ScopeIncomplete: because",
    ]


def test_record_of_another_reason_or_a_statement_that_came_back_is_another_event() -> None:
    recorder = Notes()
    events = RefusalEvents(recorder)
    for present in (("a", Refusal.OTHER_POLICY), ("a", Refusal.EXPIRED), None, ("a", Refusal.EXPIRED)):
        events.record(AUDIT, refusals(*([present] if present is not None else [])))
    assert [note.split(": ")[1] for note in recorder.notes] == ["OtherPolicy", "Expired", "Expired"]


def flood(count: int) -> dict[tuple[str, str], ConditionUpdate]:
    return refusals(*((f"egress-{number:04}", Refusal.OTHER_CLUSTER) for number in range(count)))


def test_record_of_a_flood_without_a_trusted_key_is_bounded_and_names_the_latest_statements() -> None:
    recorder = Notes()
    events = RefusalEvents(recorder)
    for _ in range(3):
        events.record(AUDIT, flood(1000))
    assert len(recorder.notes) == MOST_RECORDED
    assert recorder.notes[0].startswith("egress-0999 ")


def test_record_of_many_statements_of_trusted_keys_is_one_event_each_over_several_evaluations() -> None:
    recorder = Notes()
    events = RefusalEvents(recorder)
    updates = flood(2 * MOST_RECORDED + 1)
    for _ in range(5):
        events.record(AUDIT, updates, {name for name, _ in updates})
    assert len(recorder.notes) == len(set(recorder.notes)) == len(updates)


@pytest.mark.parametrize("count", [1, MOST_REFUSALS, 3 * MOST_REFUSALS])
def test_record_of_what_the_status_of_an_earlier_process_names_is_no_event(count: int) -> None:
    recorder = Notes()
    updates = flood(count)
    listed = [{"name": name, "reason": refusal} for name, refusal in updates]
    status = {"refusals": listed[:MOST_REFUSALS], "moreRefusals": max(0, count - MOST_REFUSALS)}
    audit = {**AUDIT, "status": status}
    events = RefusalEvents(recorder)
    events.record(audit, updates, {name for name, _ in updates})
    assert recorder.notes == []
    events.record(audit, {**refusals(("new", Refusal.OTHER_POLICY)), **updates})
    assert len(recorder.notes) == 1
