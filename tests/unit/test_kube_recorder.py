"""Kubernetes Events: said once, within the API server's limits, and never at the cost of a reconcile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.errors import Forbidden, NotLeading, Unreachable
from hermetic.kube.recorder import CUT_OFF, DEFECT, MOST_WAITING, QUEUE_FULL, REMEMBERED, EventRecorder, shortened
from tests.fakes.clocks import HandClock

A_DEPLOYMENT = {
    "apiVersion": "hermetic.dev/v1alpha1",
    "kind": "ModelDeployment",
    "metadata": {"namespace": "models", "name": "llama", "uid": "u-1"},
}


@dataclass
class Posted:
    """Keeps what was posted; `trouble` is raised instead."""

    events: list[dict[str, Any]] = field(default_factory=list)
    trouble: Exception | None = None
    opened: asyncio.Event | None = None

    async def create_event(self, event: dict[str, Any]) -> None:
        if self.opened is not None:
            await self.opened.wait()
        if self.trouble is not None:
            raise self.trouble
        self.events.append(event)

    @property
    def notes(self) -> list[str]:
        return [event["note"] for event in self.events]


@pytest.fixture
def posted() -> Posted:
    return Posted()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def recorder(posted: Posted, clock: HandClock) -> EventRecorder:
    return EventRecorder(posted, instance="hermetic-6c9f", clock=clock)


async def say(recorder: EventRecorder, note: str, *, uid: str = "u-1", reason: str = "Gated") -> None:
    metadata = {"namespace": "models", "name": "llama", "uid": uid}
    regarding = A_DEPLOYMENT | {"metadata": metadata}
    recorder.record(regarding, severity="Warning", reason=reason, action="Gate", note=note)
    await post(recorder)


async def post(recorder: EventRecorder) -> None:
    """Post what was recorded, as the operator's own task does."""
    task = asyncio.create_task(recorder.run())
    await recorder.flushed(60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_event_has_the_shape_that_kubectl_describe_shows(posted: Posted, recorder: EventRecorder) -> None:
    recorder.record(A_DEPLOYMENT, severity="Normal", reason="Applied", action="Apply", note="7 objects")
    await post(recorder)
    (event,) = posted.events
    name = event["metadata"].pop("name")
    assert name.startswith("llama.")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "models"},
        "eventTime": "2026-11-21T12:00:00.000000Z",
        "reportingController": "hermetic.dev/operator",
        "reportingInstance": "hermetic-6c9f",
        "regarding": {
            "apiVersion": "hermetic.dev/v1alpha1",
            "kind": "ModelDeployment",
            "namespace": "models",
            "name": "llama",
            "uid": "u-1",
        },
        "type": "Normal",
        "reason": "Applied",
        "action": "Apply",
        "note": "7 objects",
    }


async def test_an_event_about_a_cluster_scoped_object_lives_in_default(posted: Posted, recorder: EventRecorder) -> None:
    audit = {"apiVersion": "hermetic.dev/v1alpha1", "kind": "EgressAudit", "metadata": {"name": "a", "uid": "u"}}
    recorder.record(audit, severity="Normal", reason="Passed", action="Audit", note="all closed")
    await post(recorder)
    assert posted.events[0]["metadata"]["namespace"] == "default"
    assert "namespace" not in posted.events[0]["regarding"]


async def test_the_longest_names_still_make_valid_events(posted: Posted, clock: HandClock) -> None:
    recorder = EventRecorder(posted, instance="p" * 253, clock=clock)
    longest = A_DEPLOYMENT | {"metadata": {"namespace": "models", "name": "n" * 253, "uid": "u"}}
    recorder.record(longest, severity="Normal", reason="Applied", action="Apply", note="x")
    await post(recorder)
    assert len(posted.events[0]["metadata"]["name"]) == 253
    assert len(posted.events[0]["reportingInstance"]) == 128


async def test_the_same_thing_is_said_once_in_ten_minutes(
    posted: Posted, recorder: EventRecorder, clock: HandClock
) -> None:
    for clock.seconds in (0, 1, 599):
        await say(recorder, "no evidence")
    assert posted.notes == ["no evidence"]
    clock.seconds = 600
    await say(recorder, "no evidence")
    assert posted.notes == ["no evidence"] * 2


async def test_another_object_reason_or_note_is_another_thing(posted: Posted, recorder: EventRecorder) -> None:
    await say(recorder, "no evidence")
    await say(recorder, "no evidence", uid="u-2")
    await say(recorder, "no evidence", reason="Blocked")
    await say(recorder, "evidence expired")
    assert len(posted.events) == 4
    assert len({event["metadata"]["name"] for event in posted.events}) == 4


async def test_events_are_remembered_within_bounds(posted: Posted, recorder: EventRecorder) -> None:
    for number in range(REMEMBERED + 10):
        await say(recorder, f"note {number}")
    await say(recorder, f"note {REMEMBERED}")
    assert len(posted.events) == REMEMBERED + 10  # the newest are still known
    await say(recorder, "note 0")
    assert len(posted.events) == REMEMBERED + 11  # the oldest is not


LOSSES = {
    "away": (Unreachable("away"), Unreachable.code),
    "forbidden": (Forbidden("no rights", status=403), "HRM-KUB-403"),
    "not leading": (NotLeading("no Lease"), NotLeading.code),
    "a defect": (RuntimeError("broken"), DEFECT),
}


@pytest.mark.parametrize(("trouble", "why"), LOSSES.values(), ids=LOSSES)
async def test_an_event_that_cannot_be_posted_is_counted_and_fails_nothing(
    posted: Posted, clock: HandClock, trouble: Exception, why: str
) -> None:
    failures: list[str] = []
    recorder = EventRecorder(posted, instance="hermetic-6c9f", clock=clock, on_loss=failures.append)
    posted.trouble = trouble
    await say(recorder, "no evidence")
    assert failures == [why]
    posted.trouble = None
    await say(recorder, "no evidence")  # it was never said, so it may be said now
    assert posted.notes == ["no evidence"]


async def test_who_records_does_not_wait_and_what_is_too_much_is_dropped_and_counted(
    posted: Posted, clock: HandClock
) -> None:
    losses: list[str] = []
    recorder = EventRecorder(posted, instance="hermetic-6c9f", clock=clock, on_loss=losses.append)
    for number in range(MOST_WAITING + 3):
        recorder.record(A_DEPLOYMENT, severity="Normal", reason="Applied", action="Apply", note=str(number))
    assert (losses, recorder.unposted, posted.events) == ([QUEUE_FULL] * 3, MOST_WAITING, [])
    await post(recorder)
    assert posted.notes == [str(number) for number in range(MOST_WAITING)]
    assert recorder.unposted == 0
    await say(recorder, str(MOST_WAITING), reason="Applied")  # it was never said, so it may be said now
    assert posted.notes[-1] == str(MOST_WAITING)


async def test_at_the_end_the_event_on_its_way_is_waited_for_and_the_rest_is_dropped(
    posted: Posted, clock: HandClock
) -> None:
    losses: list[str] = []
    recorder = EventRecorder(posted, instance="hermetic-6c9f", clock=clock, on_loss=losses.append)
    posted.opened = asyncio.Event()
    for note in ("first", "second"):
        recorder.record(A_DEPLOYMENT, severity="Normal", reason="Applied", action="Apply", note=note)
    running = asyncio.create_task(recorder.run())
    ending = asyncio.create_task(recorder.flushed(0))
    for _ in range(20):  # turns of the loop, with nothing to wait for in between
        await asyncio.sleep(0)
    assert (losses, ending.done()) == ([CUT_OFF], False)
    posted.opened.set()
    await ending
    assert posted.notes == ["first"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_recorder_that_is_stopped_blocks_no_caller(posted: Posted, clock: HandClock) -> None:
    losses: list[str] = []
    recorder = EventRecorder(posted, instance="hermetic-6c9f", clock=clock, on_loss=losses.append)
    posted.opened = asyncio.Event()
    recorder.record(A_DEPLOYMENT, severity="Normal", reason="Applied", action="Apply", note="first")
    running = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await recorder.flushed(60)
    assert recorder.unposted == 0


@given(st.text(max_size=2000))
def test_a_note_fits_the_api_and_is_cut_between_characters(note: str) -> None:
    short = shortened(note)
    assert len(short.encode()) <= 1024
    assert short == note or note.startswith(short.removesuffix("…"))


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("a" * 1024, "a" * 1024),
        ("a" * 1025, "a" * 1021 + "…"),
        ("é" * 600, "é" * 510 + "…"),
        ("🚦" * 300, "🚦" * 255 + "…"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
    ],
)
def test_the_cut_is_where_it_hurts_least(note: str, expected: str) -> None:
    assert shortened(note) == expected
