"""The table of children agrees with what else must know each of them."""

from __future__ import annotations

import pytest

from hermetic.kinds import BY_KIND, HORIZONTAL_POD_AUTOSCALER
from hermetic.objects.children import (
    ALWAYS,
    CHILD_KINDS,
    CHILDREN,
    TABLE,
    Child,
    render,
    render_isolation,
)
from hermetic.objects.workloads.registry import WORKLOAD_KINDS
from tests.renderings import RENDERINGS
from tests.snapshots import owner_of, spec_of


@pytest.mark.parametrize("shape", RENDERINGS)
def test_everything_that_is_rendered_is_in_the_table_and_in_its_order(shape: str) -> None:
    kinds = [child["kind"] for child in render(owner_of(RENDERINGS[shape]), spec_of(RENDERINGS[shape]))]
    assert kinds == [kind.kind for kind in CHILD_KINDS if kind.kind in kinds]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("shape", RENDERINGS)
def test_what_isolates_is_the_same_with_and_without_the_rest(shape: str) -> None:
    spec = spec_of(RENDERINGS[shape])
    alone = render_isolation(owner_of(RENDERINGS[shape]), spec)
    assert [child["kind"] for child in alone] == ["ServiceAccount", "NetworkPolicy", "Service"]
    assert all(child in render(owner_of(RENDERINGS[shape]), spec) for child in alone)


def test_pods_come_after_everything_that_they_need() -> None:
    (wave,) = {CHILDREN[workload.kind].wave for workload in WORKLOAD_KINDS}
    # An autoscaler without pods reports that it can read no metric: it alone comes after them.
    later = [child.kind for child in TABLE if child.wave >= wave]
    assert later == [HORIZONTAL_POD_AUTOSCALER, *WORKLOAD_KINDS]
    assert CHILDREN[HORIZONTAL_POD_AUTOSCALER.kind].wave > wave
    assert CHILDREN["PersistentVolume"].wave < CHILDREN["PersistentVolumeClaim"].wave


@pytest.mark.parametrize("child", TABLE, ids=lambda child: child.kind.kind)
def test_what_isolates_is_never_deleted_for_a_change_of_the_spec(child: Child) -> None:
    assert BY_KIND[child.kind.kind] is child.kind
    assert not (child.written == ALWAYS and child.dispensable)
    assert child.written != ALWAYS or child.wave == 0
