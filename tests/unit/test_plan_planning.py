"""What is written: only what differs, policies before pods, and never a public side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hermetic.api.public_services import PUBLIC_SIDE
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.writes import Plan
from tests.planning import a_pod, edited, of_another_source, planned, running, without, written
from tests.renderings import RENDERINGS
from tests.scenarios import DIGEST, VLLM_IMAGE, Manifest, a_share_model, changed
from tests.snapshots import (
    a_snapshot,
    addressed,
    carried_out,
    children_of,
    rendered,
)


def test_new_deployment_gets_every_child_in_the_order_of_the_table():
    assert written(planned(a_share_model(), a_snapshot())) == [(kind, "absent") for kind in rendered(a_share_model())]


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_nothing_is_written_where_everything_is_as_it_should_be(manifest):
    decided = planned(manifest, running(manifest))
    assert (decided.apply, decided.delete, decided.blocked) == ((), (), None)


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({"replicas": 3}, ["PodDisruptionBudget", "Deployment"]),
        ({"drainSeconds": 7}, ["Deployment"]),
        ({"endpoint": {"internalLoadBalancer": {"subnet": "ilb"}}}, ["Service"]),
        ({"endpoint": {"internalLoadBalancer": {"allowedSourceRanges": ["10.0.0.0/8"]}}}, ["NetworkPolicy", "Service"]),
        ({"isolation": {"enforcement": "Off"}}, []),
    ],
    ids=str,
)
def test_change_of_the_spec_writes_only_the_children_that_it_concerns(change, kinds):
    decided = planned(changed(a_share_model(), **change), running(a_share_model()))
    assert [kind for kind, _ in written(decided)] == kinds


@pytest.mark.parametrize("kind", ["ServiceAccount", "NetworkPolicy", "Service", "PersistentVolumeClaim", "Deployment"])
def test_child_that_is_gone_comes_back_alone(kind):
    assert written(planned(a_share_model(), without(running(a_share_model()), kind))) == [(kind, "absent")]


def test_child_that_is_going_is_left_to_go():
    snapshot = edited(running(a_share_model()), "Service", lambda s: s["metadata"].update(deletionTimestamp="now"))
    assert written(planned(a_share_model(), snapshot)) == []


def test_disruption_budget_goes_with_the_second_replica_under_its_uid():
    two, single = a_share_model(replicas=2), a_share_model(replicas=1)
    decided = planned(single, running(two, 2))
    (gone,) = decided.delete
    live = next(child for child in children_of(two).values() if child["kind"] == "PodDisruptionBudget")
    assert (gone.kind.kind, gone.uid, gone.resource_version) == (
        "PodDisruptionBudget",
        live["metadata"]["uid"],
        live["metadata"]["resourceVersion"],
    )


def claims(snapshot: ClusterSnapshot) -> list[str]:
    return [name for kind, name in snapshot.children if kind == "PersistentVolumeClaim"]


def test_claim_of_an_earlier_source_goes_with_the_last_pod_that_mounts_it_and_its_volume_with_the_sweep():
    before = replace(running(a_share_model()), pods=(a_pod(a_share_model(), phase="Running"),))
    first = planned(of_another_source(), before)
    assert first.delete == (), "the live template names it"
    rolling = carried_out(before, first)
    assert planned(of_another_source(), rolling).delete == (), "a pod of the earlier template mounts it"
    later = a_pod(of_another_source(), phase="Running")
    later["metadata"]["labels"] = rolling.children["Deployment", "llama"]["spec"]["template"]["metadata"]["labels"]
    for pods in ((), (a_pod(a_share_model(), phase="Failed"), later)):
        decided = planned(of_another_source(), replace(rolling, pods=pods))
        assert [(gone.kind.kind, gone.name) for gone in decided.delete] == [
            ("PersistentVolumeClaim", claims(before)[0])
        ]


def test_claim_of_an_earlier_source_stays_while_pods_are_left_of_a_workload_that_is_gone():
    left = replace(without(running(a_share_model()), "Deployment"), pods=(a_pod(a_share_model(), phase="Running"),))
    assert planned(of_another_source(), left).delete == ()


def test_stranger_s_object_of_our_name_stops_everything_and_is_never_written():
    for kind in ("Service", "Deployment", "NetworkPolicy", "ServiceAccount"):
        stranger = [{"kind": "ModelDeployment", "name": "other", "uid": "other", "controller": True}]
        snapshot = edited(running(a_share_model()), kind, lambda c, o=stranger: c["metadata"].update(ownerReferences=o))
        decided = planned(a_share_model(), snapshot)
        assert (decided.apply, decided.delete) == ((), ())
        assert decided.blocked is not None
        assert decided.blocked.reason == "ChildNotOwned"
        assert f"{kind} 'llama'" in decided.blocked.message


def test_deployment_that_is_being_deleted_is_left_alone():
    assert planned(a_share_model(), replace(running(a_share_model()), deleting=True, children={})) == Plan()


def test_spec_that_a_gate_refuses_changes_nothing_that_runs():
    elsewhere = changed(a_share_model(), weights={"azureFiles": {"account": "stranger", "share": "models"}})
    decided = planned(elsewhere, running(a_share_model()))
    assert (decided.apply, decided.delete) == ((), ())
    assert decided.blocked is not None


# What a gate says no to: of the spec itself, so that some of them cannot even be rendered.
REFUSED_SPECS: dict[str, dict[str, Any]] = {
    "registry": {"engine": {"vllm": {"image": f"elsewhere.io/vllm@sha256:{DIGEST}", "version": "0.32.0"}}},
    "share": {"weights": {"azureFiles": {"account": "stranger", "share": "models"}}},
    "version": {"engine": {"vllm": {"image": VLLM_IMAGE, "version": "0.1.0"}}},
    "flag": {"engine": {"vllm": {"image": VLLM_IMAGE, "version": "0.32.0", "extraArgs": ["--no-such-flag"]}}},
}
every_refused_spec = pytest.mark.parametrize("refused", REFUSED_SPECS.values(), ids=list(REFUSED_SPECS))


@every_refused_spec
def test_spec_that_a_gate_refuses_leaves_no_hole_in_the_walls_of_what_runs(refused):
    def opened(policy: dict[str, Any]) -> None:
        policy["spec"]["egress"] = [{}]

    manifest, snapshot = changed(a_share_model(), **refused), running(a_share_model())
    assert written(planned(manifest, edited(snapshot, "NetworkPolicy", opened))) == [("NetworkPolicy", "drifted")]
    assert written(planned(manifest, without(snapshot, "NetworkPolicy"))) == [("NetworkPolicy", "absent")]


@every_refused_spec
def test_spec_that_a_gate_refuses_creates_nothing_where_nothing_runs(refused):
    decided = planned(changed(a_share_model(), **refused), a_snapshot())
    assert (decided.apply, decided.delete) == ((), ())


@every_refused_spec
@pytest.mark.parametrize("replicas", [0, 1])
def test_spec_that_a_gate_refuses_may_still_ask_for_fewer_pods_of_the_template_that_runs(refused, replicas):
    snapshot = running(a_share_model(replicas=3), 3)
    manifest = changed(a_share_model(replicas=replicas), **refused)
    decided = planned(manifest, snapshot)
    (change,) = decided.apply
    live = next(child for child in snapshot.children.values() if child["kind"] == "Deployment")
    assert change.manifest["spec"] == {**live["spec"], "replicas": replicas}
    assert planned(manifest, carried_out(snapshot, decided)).apply == ()
    assert planned(changed(a_share_model(replicas=5), **refused), snapshot).apply == ()


@every_refused_spec
def test_spec_that_a_gate_refuses_does_not_keep_a_public_service(refused):
    decided = planned(changed(a_share_model(), **refused), addressed(running(a_share_model()), "203.0.113.7"))
    assert [(gone.kind.kind, gone.urgent) for gone in decided.delete] == [("Service", True)]
    assert decided.apply == ()


def asking_for(address: str) -> Manifest:
    return a_share_model(endpoint={"internalLoadBalancer": {"address": address}})


def test_address_that_an_older_deployment_asks_for_removes_no_network_policy():
    manifest = asking_for("10.13.76.40")
    snapshot = running(manifest, address_holder="elder")
    assert written(planned(manifest, without(snapshot, "NetworkPolicy"))) == [("NetworkPolicy", "absent")]
    open_door = annotated(snapshot, **{"service.beta.kubernetes.io/azure-load-balancer-internal": "false"})
    assert written(planned(manifest, open_door)) == [("Service", "drifted")]


def test_address_that_an_older_deployment_asks_for_is_not_taken_from_it():
    assert written(planned(asking_for("10.13.76.41"), running(asking_for("10.13.76.40"), address_holder="elder"))) == []


def test_walls_stand_and_the_door_closes_though_a_stranger_holds_another_name():
    stranger = [{"kind": "ModelDeployment", "name": "other", "uid": "other", "controller": True}]
    snapshot = edited(
        running(a_share_model()), "ServiceAccount", lambda c: c["metadata"].update(ownerReferences=stranger)
    )
    decided = planned(a_share_model(), addressed(without(snapshot, "NetworkPolicy"), "203.0.113.7"))
    assert written(decided) == [("NetworkPolicy", "absent")]
    assert [gone.kind.kind for gone in decided.delete] == ["Service"]


def test_stranger_s_service_is_his_own_whatever_its_address():
    stranger = [{"kind": "ModelDeployment", "name": "other", "uid": "other", "controller": True}]
    snapshot = addressed(running(a_share_model()), "203.0.113.7")
    decided = planned(
        a_share_model(), edited(snapshot, "Service", lambda c: c["metadata"].update(ownerReferences=stranger))
    )
    assert (decided.apply, decided.delete) == ((), ())


# ---------------------------------------------------------------------- public sides


def annotated(snapshot: ClusterSnapshot, **annotations: str) -> ClusterSnapshot:
    return edited(snapshot, "Service", lambda service: service["metadata"]["annotations"].update(annotations))


@pytest.mark.parametrize("name", PUBLIC_SIDE)
def test_annotation_that_opens_a_public_side_is_taken_out(name):
    manifest = a_share_model()
    snapshot = annotated(running(manifest), **{name: "true"})
    decided = planned(manifest, snapshot)
    assert written(decided) == [("Service", "drifted")]
    patch = decided.apply[0].patch
    assert patch is not None
    assert patch["metadata"]["annotations"][name] is None
    assert written(planned(manifest, carried_out(snapshot, decided))) == []


@pytest.mark.parametrize("value", ["false", "True", "yes", ""])
def test_internal_annotation_that_is_not_exactly_true_is_corrected(value):
    name = "service.beta.kubernetes.io/azure-load-balancer-internal"
    decided = planned(a_share_model(), annotated(running(a_share_model()), **{name: value}))
    assert written(decided) == [("Service", "drifted")]


def test_service_with_a_public_address_is_deleted_and_nothing_else_is():
    snapshot = addressed(running(a_share_model()), "203.0.113.7")
    decided = planned(a_share_model(), snapshot)
    assert decided.apply == ()
    assert [(gone.kind.kind, gone.name, gone.urgent) for gone in decided.delete] == [("Service", "llama", True)]
    assert decided.blocked is None


def test_public_service_that_is_going_already_is_not_deleted_again():
    snapshot = edited(running(a_share_model()), "Service", lambda s: s["metadata"].update(deletionTimestamp="now"))
    decided = planned(a_share_model(), addressed(snapshot, "203.0.113.7"))
    assert (decided.apply, decided.delete) == ((), ())


def test_service_stays_away_until_the_spec_changes():
    gone = {
        "type": "EndpointPrivate",
        "status": "False",
        "reason": "PublicAddress",
        "observedGeneration": 4,
        "lastTransitionTime": "2026-11-24T12:00:00Z",
    }
    snapshot = without(running(a_share_model(), generation=4, status={"conditions": [gone]}), "Service")
    assert written(planned(a_share_model(), snapshot)) == []
    assert written(planned(a_share_model(), replace(snapshot, generation=5))) == [("Service", "absent")]
