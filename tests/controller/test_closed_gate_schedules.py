"""A thousand seeded schedules of faults around a gate that closes: no pod starts after what is promised.

The commit draws the quarter that CI tries; `make test-every-case` tries all.
"""

from __future__ import annotations

from collections import Counter

import pytest

from hermetic.plan import pod_gate
from tests.sampling import Sample
from tests.schedules import closed_gate as schedules
from tests.schedules.closed_gate import closed_gate

AT_ONCE, SEEDS, SAMPLE, SAMPLE_IN_CI = 100, 1000, 4, 25

# There is no watch in them.
pytestmark = pytest.mark.parametrize("late", [0.0], ids=["seeded"], indirect=True)


@pytest.mark.parametrize("first", range(1, SEEDS + 1, AT_ONCE))
def test_no_pod_starts_behind_a_closed_gate_after_what_is_promised(first: int, sample: Sample) -> None:
    seeds = sample.of("schedules of a gate that closes", range(first, first + AT_ONCE), SAMPLE, in_ci=SAMPLE_IN_CI)
    wrong = {seed: ended.wrong for seed in seeds if (ended := closed_gate(seed)).wrong}
    assert not wrong


def test_every_fault_is_drawn() -> None:
    faults: Counter[str] = Counter()
    for seed in range(1, 6):
        faults.update(closed_gate(seed).faults_injected)
    assert {"operator killed", "operator started", "node added", "write lost"} <= faults.keys()


def test_schedules_show_an_operator_that_removes_no_waiting_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermetic.plan.situation.pods_must_go", lambda _snapshot: False)
    assert any("of a closed gate with an operator" in str(closed_gate(seed).wrong) for seed in range(1, 40))


def test_schedules_show_a_lease_that_names_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the policy on Bindings a pod that waits is given a node after the evidence has ended."""
    monkeypatch.setattr(schedules, "enforced_models", lambda *_: "")
    assert pod_gate.enforced_models is not schedules.enforced_models
    assert any("was given a node" in str(closed_gate(seed).wrong) for seed in range(1, 40))
