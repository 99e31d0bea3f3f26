"""A share of the seeded schedules with replicas of several nodes; `python -m tests.schedules --groups` runs more.

`python -m tests.schedules replay SEED --groups` shows one. Every seed that ever failed belongs into REGRESSIONS.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from hermetic.kube.store import Store
from hermetic.plan.groups import members, memory
from tests.fakes.virtual_loop import virtually
from tests.sampling import Sample
from tests.schedules.group_cluster import GroupCluster
from tests.schedules.group_schedule import (
    BACK_OFF_SECONDS,
    LONG_LOSS_SECONDS,
    SETTLED_SECONDS,
    WAIT_SECONDS,
    Watcher,
    a_group,
    group_schedule,
)
from tests.schedules.schedule import running_operator

AT_ONCE = 10
SEEDS = 100
SAMPLE = 1  # of each ten, outside CI
REGRESSIONS = (5, 7, 8)

# how late a watch is follows from the seed
pytestmark = pytest.mark.parametrize("late", [0.0], ids=["seeded"], indirect=True)


@pytest.mark.parametrize("first", range(1, SEEDS + 1, AT_ONCE))
def test_schedules_with_groups_end_as_if_nothing_had_gone_wrong(first: int, sample: Sample) -> None:
    seeds = sample.of("schedules with groups", range(first, first + AT_ONCE), SAMPLE)
    wrong = {seed: errors for seed in seeds if (errors := group_schedule(seed).wrong)}
    assert not wrong, "python -m tests.schedules replay SEED --groups"


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_a_schedule_with_groups_that_once_ended_wrong_ends_well(seed: int) -> None:
    assert group_schedule(seed).wrong == ()


def test_a_model_of_two_nodes_without_replicas_is_scaled_to_zero_from_the_start() -> None:
    assert virtually(_reason_without_replicas) == ("True", "ScaledToZero")


async def _reason_without_replicas() -> tuple[str, str]:
    cluster = GroupCluster(0, nodes=2)
    async with running_operator(cluster):
        cluster.put(a_group("llama", 0, 4096))
        await asyncio.sleep(60)
    (model,) = cluster.of_kind("ModelDeployment")
    ready = next(condition for condition in model["status"]["conditions"] if condition["type"] == "Ready")
    return ready["status"], ready["reason"]


def test_schedules_show_an_operator_that_overlooks_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedules can fail: an operator that never learns that something is gone leaves it missing."""
    monkeypatch.setattr(Store, "drop", lambda _store, _manifest: frozenset())
    monkeypatch.setattr(Store, "sweep", lambda _store, _kind, _listed, _version, **_: frozenset())
    assert any(group_schedule(seed).wrong for seed in range(1, AT_ONCE + 1))


# ---------------------------------------------------------------------- the bounds


async def _without_nodes() -> Watcher:
    """A model of two groups serves, and nodes for one pod are left."""
    cluster = GroupCluster(0, nodes=4)
    watcher = Watcher(cluster)
    async with running_operator(cluster):
        looking = asyncio.ensure_future(watcher.watch())
        cluster.put(a_group("llama", 2, 4096))
        await asyncio.sleep(2 * SETTLED_SECONDS)
        for number in range(3):
            cluster.remove_node(f"gpu-{number}")
        await asyncio.sleep(2 * LONG_LOSS_SECONDS)
        looking.cancel()
    return watcher


async def _with_a_member_that_dies(times: int) -> Watcher:
    """A model loses the engine beside its head again and again, before it has served for long."""
    cluster = GroupCluster(0, nodes=2)
    watcher = Watcher(cluster)
    async with running_operator(cluster):
        looking = asyncio.ensure_future(watcher.watch())
        cluster.put(a_group("llama", 1, 4096))
        await asyncio.sleep(2 * SETTLED_SECONDS)
        for _ in range(times):
            cluster.kill_engine(cluster.pods()[1])
            await asyncio.sleep(1.5 * BACK_OFF_SECONDS)
        looking.cancel()
    return watcher


def test_group_without_nodes_gives_them_back_at_the_bound_and_the_watcher_sees_it() -> None:
    watcher = virtually(_without_nodes)
    assert not watcher.wrong
    assert WAIT_SECONDS - 5 < watcher.wait.longest < WAIT_SECONDS + 5


def test_watcher_finds_a_group_that_waits_for_nodes_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "GROUP_WAIT", timedelta(seconds=WAIT_SECONDS + 60))
    wrong = virtually(_without_nodes).wrong
    assert wrong
    assert all("waits for nodes for more than 630 s" in complaint for complaint in wrong)


def test_group_that_fails_again_and_again_starts_after_the_longest_back_off_and_the_watcher_sees_it() -> None:
    watcher = virtually(lambda: _with_a_member_that_dies(8))
    assert not watcher.wrong
    assert BACK_OFF_SECONDS - 15 < watcher.pause.longest <= BACK_OFF_SECONDS


def test_watcher_finds_a_group_that_backs_off_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_LONGEST_BACK_OFF", timedelta(seconds=BACK_OFF_SECONDS + 60))
    wrong = virtually(lambda: _with_a_member_that_dies(8)).wrong
    assert list(wrong) == ["llama-group-0: does not start again for more than 330 s"]


def test_watcher_finds_a_head_that_answers_without_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "_ended", lambda _group, _spec: None)
    wrong = virtually(lambda: _with_a_member_that_dies(1)).wrong
    assert "llama-group-0: the head looks healthy without its members for more than 10 s" in wrong
