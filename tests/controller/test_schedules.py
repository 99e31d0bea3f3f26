"""A share of the seeded schedules of faults; `make test-faults` runs all of them.

`python -m tests.schedules replay SEED` shows one. Every seed that ever failed belongs into REGRESSIONS.
"""

from __future__ import annotations

import pytest

from hermetic.kube.store import Store
from tests.sampling import Sample
from tests.schedules.schedule import schedule

AT_ONCE = 10
SEEDS = 100
SAMPLE = 2  # of each ten, outside CI
REGRESSIONS = (17, 38, 180)

# how late a watch is follows from the seed
pytestmark = pytest.mark.parametrize("late", [0.0], ids=["seeded"], indirect=True)


@pytest.mark.parametrize("first", range(1, SEEDS + 1, AT_ONCE))
def test_schedules_end_as_if_nothing_had_gone_wrong(first: int, sample: Sample) -> None:
    seeds = sample.of("schedules of faults", range(first, first + AT_ONCE), SAMPLE)
    wrong = {seed: errors for seed in seeds if (errors := schedule(seed).wrong)}
    assert not wrong, "python -m tests.schedules replay SEED"


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_a_schedule_that_once_ended_wrong_ends_well(seed: int) -> None:
    assert schedule(seed).wrong == ()


def test_schedules_show_an_operator_that_overlooks_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedules can fail: an operator that never learns that something is gone leaves it missing."""
    monkeypatch.setattr(Store, "drop", lambda _store, _manifest: frozenset())
    monkeypatch.setattr(Store, "sweep", lambda _store, _kind, _listed, _version, **_: frozenset())
    assert any(schedule(seed).wrong for seed in range(1, AT_ONCE + 1))
