"""Whatever the snapshot looks like: conditions that never contradict each other, and that are written once."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hermetic.api.condition_updates import CONDITION_REASONS
from hermetic.api.modeldeployment_status import ModelDeploymentStatus
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import same_status, status
from tests.property.manifests import SECRET_NAMES, manifests, shuffled, snapshots
from tests.scenarios import Manifest
from tests.snapshots import NOW, carried_out, conditions, spec_of

with_snapshots = manifests().flatmap(lambda manifest: st.tuples(st.just(manifest), snapshots(manifest)))
PARTS = ("ImagesPinned", "WeightsVerified", "IsolationVerified", "EndpointPrivate", "Available")


def status_after(
    manifest: Manifest, snapshot: ClusterSnapshot, now: Any = NOW
) -> tuple[dict[str, Any], ClusterSnapshot]:
    spec = spec_of(manifest)
    decided = plan(spec, snapshot, now)
    after = carried_out(snapshot, decided)
    return status(spec, after, decided, (), now), after


@given(with_snapshots)
def test_exactly_one_of_ready_reconciling_and_stalled_is_true(case):
    condition_of = conditions(status_after(*case)[0])
    true = [kind for kind in ("Ready", "Reconciling", "Stalled") if condition_of.get(kind, {}).get("status") == "True"]
    assert len(true) == 1
    assert all(condition_of[kind]["status"] == "True" for kind in ("Reconciling", "Stalled") if kind in condition_of)


@given(with_snapshots)
def test_stalled_is_said_exactly_of_what_only_a_human_can_mend(case):
    condition_of = conditions(status_after(*case)[0])
    needs_human = (
        condition_of["Ready"]["status"] != "True" and CONDITION_REASONS[condition_of["Ready"]["reason"]].needs_human
    )
    assert ("Stalled" in condition_of) == needs_human


@given(with_snapshots)
def test_ready_means_every_replica_of_this_template_serves_at_a_private_address_behind_an_open_gate(case):
    manifest, snapshot = case
    model_status, after = status_after(manifest, snapshot)
    ready = conditions(model_status)
    if ready["Ready"]["status"] != "True":
        return
    replicas = manifest["spec"].get("replicas", 1)
    live = after.children[("Deployment", snapshot.owner.name)]
    assert live["spec"]["replicas"] == replicas
    assert live["status"]["availableReplicas"] == live["status"]["updatedReplicas"] == replicas
    assert ready["EndpointPrivate"]["status"] == "True" or replicas == 0
    assert ready["ImagesPinned"]["status"] == "True"
    enforced = manifest["spec"].get("isolation", {}).get("enforcement", "Enforce") == "Enforce"
    assert ready["IsolationVerified"]["status"] == "True" or not enforced


@given(with_snapshots)
def test_ready_repeats_the_first_condition_that_fails_or_says_what_none_of_them_covers(case):
    condition_of = conditions(status_after(*case)[0])
    ready = condition_of["Ready"]
    if ready["status"] == "True":
        return
    assert ready["message"]
    failing = [condition_of[kind] for kind in PARTS if condition_of[kind]["status"] != "True"]
    repeated = [c for c in failing if ready["message"].startswith(c["message"])]
    assert (
        repeated
        or ready["reason"] in {"RollingOut", "Starting", "NimProfileMismatch", "VmSizeUnsuitable"}
        or condition_of["Available"]["status"] == "True"
    )


@given(with_snapshots)
def test_status_is_one_that_the_api_accepts(case):
    ModelDeploymentStatus.model_validate(status_after(*case)[0])


@given(with_snapshots)
def test_what_was_said_once_is_not_written_again(case):
    manifest, snapshot = case
    spec = spec_of(manifest)
    decided = plan(spec, snapshot, NOW)
    after = carried_out(snapshot, decided)
    first = status(spec, after, decided, (), NOW)
    again = status(spec, replace(after, status=first), decided, (), NOW + timedelta(hours=1))
    assert same_status(again, first)
    assert same_status(first, first)


@given(with_snapshots, st.randoms())
def test_order_in_which_things_were_seen_does_not_change_a_word(case, random):
    manifest, snapshot = case
    spec = spec_of(manifest)
    decided = plan(spec, snapshot, NOW)
    assert status(spec, snapshot, decided, (), NOW) == status(spec, shuffled(snapshot, random), decided, (), NOW)


@given(with_snapshots, with_snapshots)
def test_transition_times_move_exactly_with_the_status(before, after):
    first, _ = status_after(*before)
    manifest, snapshot = after
    second, _ = status_after(manifest, replace(snapshot, status=first), NOW + timedelta(hours=1))
    old, new = conditions(first), conditions(second)
    for kind, condition in new.items():
        moved = kind not in old or old[kind]["status"] != condition["status"]
        assert condition["lastTransitionTime"] == ("2026-11-24T13:00:00Z" if moved else "2026-11-24T12:00:00Z")


@given(with_snapshots)
def test_no_name_of_a_secret_and_no_variable_reaches_the_status(case):
    manifest, snapshot = case
    text = json.dumps(status_after(manifest, snapshot)[0])
    assert not any(name in text for name in SECRET_NAMES)
    for engine in manifest["spec"]["engine"].values():
        long_values = (v["value"] for v in engine.get("extraEnv", ()) if len(v["value"]) > 8)
        assert not any(json.dumps(value)[1:-1] in text for value in long_values)
