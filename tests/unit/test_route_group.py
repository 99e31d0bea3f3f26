"""The facts of a group decide: who writes its route, with which weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermetic.objects.names import Owner
from hermetic.plan.route_group import backends, is_written_here, share, writer
from hermetic.plan.snapshot import ClusterSnapshot, GatewayFacts, GroupMember
from tests.snapshots import a_snapshot

ASKS = ("gateways/models", "", "/inference/chat", "meta/llama")


def a_member(name: str, weight: int = 10, **fields: Any) -> GroupMember:
    usual = {"asks": ASKS, "serves": True, "has_service": True, "may_write": True}
    return GroupMember(Owner("inference", name, f"uid-{name}"), weight, 8000, **{**usual, **fields})


def seen_by(member: GroupMember, *members: GroupMember) -> ClusterSnapshot:
    return a_snapshot(member.owner, gateway=GatewayFacts(members=members))


def weights(*members: GroupMember) -> dict[str, int]:
    return {backend.owner.name: backend.weight for backend in backends(seen_by(members[0], *members))}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ((a_member("a", 90), a_member("b", 10)), {"a": 90, "b": 10}),
        ((a_member("a", 90), a_member("b", 10, serves=False)), {"a": 90, "b": 0}),
        ((a_member("a", 90, serves=False), a_member("b", 10, serves=False)), {"a": 90, "b": 10}),
        ((a_member("a", 0), a_member("b", 100, serves=False)), {"a": 0, "b": 100}),
        ((a_member("a", 0, serves=False), a_member("b", 0)), {"a": 0, "b": 1}),
        ((a_member("a", 0, serves=False), a_member("b", 0, serves=False)), {"a": 1, "b": 0}),
        ((a_member("a", 90), a_member("b", 10, has_service=False)), {"a": 90}),
        ((a_member("a", 90), a_member("b", 10, is_deleting=True)), {"a": 90}),
        ((a_member("a", 90), a_member("b", 10, asks=("x", *ASKS[1:]))), {"a": 90}),
    ],
    ids=[
        "both serve",
        "one starts",
        "none serves",
        "the one with a weight ended",
        "all 0",
        "all 0 and none serves",
        "no Service yet",
        "deleted",
        "asks for something else",
    ],
)
def test_weights_are_those_of_members_that_can_answer(
    members: tuple[GroupMember, ...], expected: dict[str, int]
) -> None:
    assert weights(*members) == expected


def test_weight_that_does_not_count_yet_is_told() -> None:
    waiting = a_member("b", 10, serves=False)
    assert share(seen_by(waiting, a_member("a", 90), waiting)) == (
        " with the weight 0 of 90; `weight` 10 counts once it serves"
    )
    assert share(a_snapshot()) == ""


MEMBERS = st.lists(
    st.builds(
        a_member,
        st.sampled_from("abcdef"),
        st.integers(0, 100),
        serves=st.booleans(),
        has_service=st.booleans(),
        may_write=st.booleans(),
        is_blocked=st.booleans(),
        is_deleting=st.booleans(),
        asks=st.sampled_from([ASKS, ("gateways/other", *ASKS[1:])]),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda member: member.owner.name,
)


@given(MEMBERS)
def test_at_most_one_member_writes_and_all_compute_the_same(members: list[GroupMember]) -> None:
    snapshots = [seen_by(member, *members) for member in members]
    assert len({writer(snapshot) for snapshot in snapshots}) == 1
    assert len({backends(snapshot) for snapshot in snapshots}) == 1
    writing = [snapshot.owner for snapshot in snapshots if is_written_here(snapshot)]
    first = writer(snapshots[0])
    assert writing == ([] if first is None else [first.owner])
    assert first is None or first.may_write


@given(MEMBERS)
def test_no_member_that_does_not_serve_gets_a_request_while_another_does(members: list[GroupMember]) -> None:
    of_all = backends(seen_by(members[0], *members))
    serving = {member.owner for member in members if member.serves and member.weight}
    if any(backend.owner in serving for backend in of_all):
        assert all(backend.weight == 0 for backend in of_all if backend.owner not in serving)


@given(MEMBERS)
def test_weights_of_a_route_are_never_all_0(members: list[GroupMember]) -> None:
    of_all = backends(seen_by(members[0], *members))
    assert not of_all or any(backend.weight for backend in of_all)


def test_model_without_a_group_writes_its_own_route() -> None:
    snapshot = a_snapshot()
    assert is_written_here(snapshot)
    assert backends(snapshot) == ()
    assert is_written_here(replace(snapshot, gateway=GatewayFacts(members=(a_member("llama"),)))) is False
