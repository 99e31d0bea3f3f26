"""Whatever the snapshot looks like: the same decision again, nothing left after it, and no pod behind a closed gate."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from hermetic.objects.names import TEMPLATE_ANNOTATION
from hermetic.plan.gate_results import Blocks
from hermetic.plan.isolation import isolation_is_proven
from hermetic.plan.planning import plan
from hermetic.plan.writes import Plan
from tests.property.manifests import manifests, shuffled, snapshots
from tests.snapshots import NOW, carried_out, spec_of

with_snapshots = manifests().flatmap(lambda manifest: st.tuples(st.just(manifest), snapshots(manifest)))


def writes(decided: Plan) -> str:
    applied = [(change.manifest, change.why) for change in decided.apply]
    deleted = sorted((gone.kind.kind, gone.name, gone.uid) for gone in decided.delete)
    return json.dumps([applied, deleted], sort_keys=True)


@given(with_snapshots)
def test_same_world_gives_the_same_plan(case):
    manifest, snapshot = case
    assert plan(spec_of(manifest), snapshot, NOW) == plan(spec_of(manifest), snapshot, NOW)


@given(with_snapshots, st.randoms())
def test_order_in_which_things_were_seen_does_not_matter(case, random):
    manifest, snapshot = case
    spec = spec_of(manifest)
    assert writes(plan(spec, snapshot, NOW)) == writes(plan(spec, shuffled(snapshot, random), NOW))


@given(with_snapshots)
def test_once_the_plan_is_carried_out_there_is_nothing_left_to_write(case):
    manifest, snapshot = case
    spec = spec_of(manifest)
    after = snapshot
    # A Service of which the address was public is gone; whether it comes back is the status's to say.
    for _ in range(2):
        after = carried_out(after, plan(spec, after, NOW))
    left = plan(spec, after, NOW)
    assert left.delete == ()
    assert [change.manifest["kind"] for change in left.apply if change.manifest["kind"] != "Service"] == []


@given(manifests().flatmap(lambda manifest: st.tuples(st.just(manifest), snapshots(manifest, public=False))))
def test_without_public_addresses_one_round_is_enough(case):
    manifest, snapshot = case
    spec = spec_of(manifest)
    left = plan(spec, carried_out(snapshot, plan(spec, snapshot, NOW)), NOW)
    assert (left.apply, left.delete) == ((), ())


@given(with_snapshots)
def test_no_write_makes_a_pod_while_isolation_is_not_proven(case):
    manifest, snapshot = case
    spec = spec_of(manifest)
    if spec.isolation.enforcement != "Enforce" or not isinstance(isolation_is_proven(spec, snapshot, NOW), Blocks):
        return
    live = snapshot.children.get(("Deployment", snapshot.owner.name))
    for change in plan(spec, snapshot, NOW).apply:
        if change.manifest["kind"] != "Deployment":
            assert live is not None
            continue
        replicas = change.manifest["spec"]["replicas"]
        assert live is not None
        assert replicas <= live["spec"]["replicas"]
        mark = change.manifest["metadata"]["annotations"][TEMPLATE_ANNOTATION]
        assert replicas == 0 or live["metadata"]["annotations"][TEMPLATE_ANNOTATION] == mark


@given(with_snapshots)
def test_only_what_is_ours_is_deleted_and_never_a_volume(case):
    manifest, snapshot = case
    for gone in plan(spec_of(manifest), snapshot, NOW).delete:
        live = snapshot.children[(gone.kind.kind, gone.name)]
        assert gone.kind.kind != "PersistentVolume"
        assert any(reference["uid"] == snapshot.owner.uid for reference in live["metadata"]["ownerReferences"])
        assert (gone.uid, gone.resource_version) == (live["metadata"]["uid"], live["metadata"]["resourceVersion"])


@given(with_snapshots)
def test_workload_comes_last(case):
    manifest, snapshot = case
    kinds = [change.manifest["kind"] for change in plan(spec_of(manifest), snapshot, NOW).apply]
    assert "Deployment" not in kinds[:-1]


@given(with_snapshots)
def test_next_look_lies_ahead(case):
    manifest, snapshot = case
    next_change = plan(spec_of(manifest), snapshot, NOW).requeue_at
    assert next_change is None or next_change > NOW
