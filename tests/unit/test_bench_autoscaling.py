"""The figures of autoscaling count what they say, and divide every time of the autoscaler."""

from __future__ import annotations

import pytest

from bench.autoscaling import reversals
from bench.faster_autoscaler import divided


@pytest.mark.parametrize(
    ("replicas", "count"),
    [([1, 1, 3, 3, 2, 1], 0), ([1, 3, 2, 2, 3, 1], 1), ([1, 2, 1, 2, 1, 2], 2), ([2], 0)],
    ids=str,
)
def test_growth_after_a_fall_is_a_reversal(replicas: list[int], count: int) -> None:
    assert reversals(replicas) == count


def test_every_time_is_divided_and_no_other_number() -> None:
    behavior = {
        "scaleDown": {"stabilizationWindowSeconds": 1800, "policies": [{"value": 30, "periodSeconds": 300}]},
        "scaleUp": {"stabilizationWindowSeconds": 0, "policies": [{"value": 4, "periodSeconds": 15}]},
    }
    assert divided(behavior, 30) == {
        "scaleDown": {"stabilizationWindowSeconds": 60, "policies": [{"value": 30, "periodSeconds": 10}]},
        "scaleUp": {"stabilizationWindowSeconds": 0, "policies": [{"value": 4, "periodSeconds": 1}]},
    }
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 1800
