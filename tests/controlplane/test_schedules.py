"""A small batch of seeded schedules on a real API server; `make test-faults-real` runs 500.

`python -m tests.schedules replay SEED --real` shows one with its batch.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.controlplane import ControlPlane
from tests.sampling import Sample
from tests.schedules import real, real_cluster

SEEDS = 6
SAMPLE = 2  # side by side from the first that is drawn, outside CI: the last is never the first


@pytest.mark.timeout(600)
@pytest.mark.sampled(0)
def test_schedules_end_as_if_nothing_had_gone_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Sample
) -> None:
    first, *other_seeds = sample.of("schedules on a real API server", range(1, SEEDS + 1), SAMPLE)
    with ControlPlane() as plane, real_cluster.opened(plane, tmp_path) as bed:
        assert real.batch(bed, first, 1 + len(other_seeds)) == {}

        # And they can fail: without an operator, nothing that is wanted is there.
        for operator in bed.operators:
            operator.stop()
        bed.operators.clear()  # else they would be started again, as by a kubelet
        monkeypatch.setattr(real, "CALM_SECONDS", 0.0)
        monkeypatch.setattr(real, "OUTAGES", {"watches broken": real.OUTAGES["watches broken"]})
        wrong = real.batch(bed, SEEDS + 1, 1)
        assert any(error.startswith("missing: ") for error in wrong[SEEDS + 1])
