"""A share of the seeded schedules with replicas of several nodes; `python -m tests.schedules --groups` runs more.

`python -m tests.schedules replay SEED --groups` shows one. Every seed that ever failed belongs into REGRESSIONS.
"""

from __future__ import annotations

import asyncio

import pytest

from hermetic.kube.store import Store
from tests.fakes.virtual_loop import virtually
from tests.sampling import Sample
from tests.schedules.group_cluster import GroupCluster
from tests.schedules.group_schedule import a_group, group_schedule
from tests.schedules.schedule import running_operator

AT_ONCE = 10
SEEDS = 100
SAMPLE = 1  # of each ten, outside CI
REGRESSIONS = (73,)

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
