"""What the schedules of a gate that closes on a real API server call a broken promise: they must be able to fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.gate_records import (
    IN_FLIGHT_SECONDS,
    ClosedTime,
    Pace,
    PodRecord,
    broken_promises,
    seconds_until_removed,
)

CLOSED = ClosedTime(closed_at=100.0, opened_at=200.0, ends_at=150.0, healthy=((0.0, 120.0), (160.0, 200.0)))
OPEN, SHUT = (0.0, "2026-11-27T12:00:00Z"), (105.0, "")
FIRST = PodRecord("a/llama-1", created_at=90.0)


@pytest.mark.parametrize(
    ("pod", "moments", "sentence"),
    [
        (replace(FIRST, created_at=111.0), [OPEN, SHUT], "was made 6 s after the moment in the Lease"),
        (replace(FIRST, node_at=112.0), [OPEN, SHUT], "was given a node 7 s after the moment in the Lease"),
        (replace(FIRST, node_at=155.0), [OPEN], "was given a node 5 s after the moment in the Lease"),
        (replace(FIRST, started_at=111.0), [OPEN], "started after 11 s of a closed gate with an operator"),
        (replace(FIRST, started_at=171.0), [OPEN], "started after 11 s of a closed gate with an operator"),
    ],
    ids=["made", "given a node", "after the evidence", "started", "started with an operator that is back"],
)
def test_pod_that_may_not_be_made_placed_or_started_breaks_a_promise(pod, moments, sentence):
    assert any(sentence in broken for broken in broken_promises([pod], moments, CLOSED))


def test_pod_that_no_scheduler_places_does_not_wait_and_breaks_a_promise_if_it_starts():
    held = replace(FIRST, is_held=True)
    assert FIRST.is_waiting
    assert not held.is_waiting
    assert list(broken_promises([held], [OPEN], CLOSED)) == []
    assert any(
        "started after 11 s" in broken for broken in broken_promises([replace(held, started_at=111.0)], [OPEN], CLOSED)
    )


@pytest.mark.parametrize(
    "pod",
    [
        replace(FIRST, node_at=95.0, started_at=99.0),
        replace(FIRST, node_at=105.0 + IN_FLIGHT_SECONDS),
        replace(FIRST, node_at=95.0, started_at=109.0),
        replace(FIRST, node_at=95.0, started_at=140.0),
        replace(FIRST, node_at=95.0, started_at=169.0),
        replace(FIRST, created_at=201.0, node_at=202.0, started_at=203.0),
    ],
    ids=["before", "in flight", "within ten seconds", "no operator", "operator just back", "gate is open again"],
)
def test_pod_within_the_bounds_breaks_no_promise(pod):
    assert list(broken_promises([pod], [OPEN, SHUT], CLOSED)) == []


def test_evidence_of_a_day_bounds_nothing_until_the_lease_is_closed():
    day = replace(CLOSED, ends_at=None)
    placed = replace(FIRST, node_at=140.0)

    assert list(broken_promises([placed], [OPEN], day)) == []
    assert list(broken_promises([placed], [OPEN, SHUT], day))


def test_longest_removal_counts_undisturbed_seconds_of_pods_that_never_started():
    gone, late = replace(FIRST, leaving_at=103.0), replace(FIRST, leaving_at=166.0)
    served = replace(FIRST, started_at=95.0, leaving_at=190.0)

    assert seconds_until_removed([gone, late, served], CLOSED) == 6.0


def test_second_of_a_slow_machine_counts_as_what_it_gives():
    pace = Pace([(101.0, 1.0), (105.0, 4.0), (106.0, 1.0)])

    assert pace.seconds(100.0, 101.0) == 1.0
    assert pace.seconds(101.0, 105.0) == 1.0
    assert pace.seconds(100.0, 106.0) == 3.0
    assert pace.seconds(105.5, 107.0) == 1.5, "until the next sample a second is a second"
