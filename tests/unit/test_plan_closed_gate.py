"""Behind a closed gate: no pod starts, and of pods that run only those that others changed are stopped."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from hermetic.kube.projections import lean_pod
from hermetic.plan.desired_children import desired_children
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.container_digests import completed
from hermetic.plan.writes import Plan
from tests.planning import a_pod, edited, of_another_source, planned, running, without, written
from tests.renderings import RENDERINGS
from tests.scenarios import Manifest, a_baked_model, a_share_model, changed, reporting
from tests.snapshots import (
    NOW,
    a_snapshot,
    carried_out,
    evidence,
    serving,
    spec_of,
)

CLOSED = {
    "nothing is known": None,
    "an egress path was found": evidence("Fail"),
    "not enough was seen": evidence("Unknown"),
    "a source is missing": evidence(sources=frozenset({"azure"})),
}
every_closed_gate = pytest.mark.parametrize("gate_evidence", CLOSED.values(), ids=list(CLOSED))


@every_closed_gate
def test_behind_a_closed_gate_nothing_at_all_is_created(gate_evidence):
    for manifest in (a_share_model(), a_share_model(replicas=0)):
        decided = planned(manifest, a_snapshot(evidence=gate_evidence))
        assert (decided.apply, decided.delete) == ((), ())
        assert decided.blocked is not None
        assert decided.held


@every_closed_gate
def test_behind_a_closed_gate_running_pods_keep_everything_they_have(gate_evidence):
    decided = planned(a_share_model(), running(a_share_model(), evidence=gate_evidence))
    assert (decided.apply, decided.delete) == ((), ())
    assert not decided.held


@every_closed_gate
def test_behind_a_closed_gate_a_new_template_waits_and_the_walls_do_not(gate_evidence):
    model = changed(a_share_model(), drainSeconds=7, endpoint={"internalLoadBalancer": {"subnet": "ilb"}})
    decided = planned(model, running(a_share_model(), evidence=gate_evidence))
    assert written(decided) == [("Service", "changed")]
    assert decided.held


@every_closed_gate
@pytest.mark.parametrize(
    ("live", "requested", "applied"), [(1, 3, None), (3, 1, 1), (3, 0, 0), (3, 3, None), (2, 5, None)]
)
def test_behind_a_closed_gate_there_may_be_fewer_pods_never_more(gate_evidence, live, requested, applied):
    snapshot = running(a_baked_model("llama", replicas=live), live, evidence=gate_evidence)
    decided = planned(a_baked_model("llama", replicas=requested), snapshot)
    replicas = [c.manifest["spec"]["replicas"] for c in decided.apply if c.manifest["kind"] == "Deployment"]
    assert replicas in ([], [live]) if applied is None else replicas == [applied]
    assert planned(a_baked_model("llama", replicas=requested), carried_out(snapshot, decided)).apply == ()


@every_closed_gate
@pytest.mark.parametrize("pods", [0, 1])
def test_behind_a_closed_gate_the_claim_that_a_pod_would_mount_again_stays(gate_evidence, pods):
    mounting = tuple(a_pod(a_share_model(), phase="Running") for _ in range(pods))
    snapshot = replace(running(a_share_model(), evidence=gate_evidence), pods=mounting)
    decided = planned(of_another_source(), snapshot)
    assert decided.held
    assert decided.delete == planned(of_another_source(), carried_out(snapshot, decided)).delete == ()


@every_closed_gate
def test_behind_a_closed_gate_a_deleted_workload_is_not_recreated(gate_evidence):
    snapshot = without(running(a_share_model(), evidence=gate_evidence), "Deployment")
    decided = planned(a_share_model(), snapshot)
    assert (decided.apply, decided.delete) == ((), ())


def of_the_live_template(snapshot: ClusterSnapshot, number: int = 0, *, complete: bool = True) -> dict[str, Any]:
    """A pod of the template that the Deployment has, as the API server completes it and the store keeps it."""
    template = snapshot.children["Deployment", snapshot.owner.name]["spec"]["template"]
    name = f"{snapshot.owner.name}-5d9c-{number}"
    owners = [{"kind": "ReplicaSet", "name": f"{snapshot.owner.name}-5d9c", "controller": True}]
    metadata = {"name": name, "uid": name, "labels": template["metadata"]["labels"], "ownerReferences": owners}
    spec = completed(template["spec"]) if complete else template["spec"]
    return lean_pod({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


def another_image(deployment: dict[str, Any]) -> None:
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "another"


def another_mark(deployment: dict[str, Any]) -> None:
    another_image(deployment)
    deployment["metadata"]["annotations"]["hermetic.dev/pod-template"] = "0" * 16


def a_sidecar(deployment: dict[str, Any]) -> None:
    deployment["spec"]["template"]["spec"]["containers"].append({"name": "x", "image": "another"})


def corrected(decided: Plan) -> list[int]:
    """With how many replicas the Deployment is applied."""
    deployments = [change.manifest for change in decided.apply if change.manifest["kind"] == "Deployment"]
    return [manifest["spec"]["replicas"] for manifest in deployments]


@every_closed_gate
@pytest.mark.parametrize("edit", [another_image, another_mark, a_sidecar])
@pytest.mark.parametrize("strangers", [0, 1])
@pytest.mark.parametrize("ours", [1, 2, 3])
@pytest.mark.parametrize("name", ["nfs", "everything-said", "tls-and-api-key", "nim-profile"])
def test_behind_a_closed_gate_a_template_that_others_changed_is_corrected_and_starts_no_pod(
    gate_evidence, edit, ours, strangers, name
):
    manifest = changed(RENDERINGS[name], replicas=3)
    snapshot = running(manifest, 3, evidence=gate_evidence)
    pods = tuple(of_the_live_template(snapshot, number) for number in range(ours))
    after = edited(snapshot, "Deployment", edit)
    theirs = tuple(of_the_live_template(after, 7 + number) for number in range(strangers))
    leaving = of_the_live_template(snapshot, 9)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-24T12:00:00Z"
    after = replace(after, pods=(*pods, *theirs, leaving))
    decided = planned(manifest, after)
    assert corrected(decided) == [ours]
    assert planned(manifest, carried_out(after, decided)).apply == ()


@every_closed_gate
def test_behind_a_closed_gate_only_pods_of_a_changed_template_are_stopped(gate_evidence):
    manifest = a_share_model()
    snapshot = edited(running(manifest, evidence=gate_evidence), "Deployment", another_image)
    assert corrected(planned(manifest, replace(snapshot, pods=(of_the_live_template(snapshot),)))) == [0]


def injected(pod: Manifest, *, where: str = "sidecar") -> Manifest:
    """The pod as a mutating webhook left it that adds to every pod; digests, as the store keeps them."""
    pod = copy.deepcopy(pod)
    engine = pod["spec"]["containers"][0]
    match where:
        case "sidecar":
            pod["spec"]["containers"].append({"name": "proxy", "image": "mesh", "marks": {}})
            pod["spec"]["marks"]["volumes"] = "f" * 12
        case "variable":
            engine["marks"]["env"] = "f" * 12
        case "image":
            engine["image"] = "mirror.example/engine"
        case "everything":
            engine["image"] = "mirror.example/engine"
            engine["marks"] = dict.fromkeys(engine["marks"], "f" * 12)
            pod["spec"]["marks"] = dict.fromkeys(pod["spec"]["marks"], "f" * 12)
    return pod


def another_variable(deployment: dict[str, Any]) -> None:
    deployment["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "HTTPS_PROXY", "value": "x"})


def an_annotation(deployment: dict[str, Any]) -> None:
    deployment["spec"]["template"]["metadata"].setdefault("annotations", {})["platform.example/injected"] = "yes"


def counting(snapshot: ClusterSnapshot, *, replicas: int, updated: int) -> ClusterSnapshot:
    """What the Deployment controller says of all pods, and of those of the present template."""
    return serving(snapshot, replicas, updatedReplicas=updated)


@every_closed_gate
@pytest.mark.parametrize("edit", [another_image, another_mark, a_sidecar, another_variable])
@pytest.mark.parametrize("by_webhook", ["sidecar", "variable", "image", "everything"])
@pytest.mark.parametrize("strangers", [0, 1])
def test_behind_a_closed_gate_what_a_webhook_injected_into_is_not_stopped(gate_evidence, edit, by_webhook, strangers):
    manifest = changed(a_share_model(), replicas=3)
    snapshot = running(manifest, 3, evidence=gate_evidence)
    pods = [injected(of_the_live_template(snapshot, number), where=by_webhook) for number in range(3 - strangers)]
    after = edited(snapshot, "Deployment", edit)
    theirs = [injected(of_the_live_template(after, 7 + number), where=by_webhook) for number in range(strangers)]
    after = counting(replace(after, pods=(*pods, *theirs)), replicas=3, updated=strangers)
    decided = planned(manifest, after)
    assert corrected(decided) == [3 - strangers]
    assert planned(manifest, carried_out(after, decided)).apply == ()


@every_closed_gate
@pytest.mark.parametrize("by_webhook", ["sidecar", "variable", "image", "everything"])
def test_behind_a_closed_gate_a_change_that_the_controller_has_not_seen_ends_nothing(gate_evidence, by_webhook):
    manifest = changed(a_share_model(), replicas=2)
    snapshot = running(manifest, 2, evidence=gate_evidence)
    pods = tuple(injected(of_the_live_template(snapshot, number), where=by_webhook) for number in range(2))
    after = serving(edited(snapshot, "Deployment", another_image), 2, observedGeneration=0)
    assert corrected(planned(manifest, replace(after, pods=pods))) == [2]


@every_closed_gate
@pytest.mark.parametrize("by_webhook", ["sidecar", "everything"])
def test_behind_a_closed_gate_a_rollout_of_a_changed_template_that_is_complete_is_stopped(gate_evidence, by_webhook):
    manifest = changed(a_share_model(), replicas=2)
    snapshot = edited(running(manifest, 2, evidence=gate_evidence), "Deployment", a_sidecar)
    pods = tuple(injected(of_the_live_template(snapshot, number), where=by_webhook) for number in range(2))
    assert corrected(planned(manifest, counting(replace(snapshot, pods=pods), replicas=2, updated=2))) == [0]


def closed_at(snapshot: ClusterSnapshot, moment: str, status: str = "False") -> ClusterSnapshot:
    """The status says since when the gate is closed, or (True) does not say it yet."""
    fields = {"type": "IsolationVerified", "status": status, "reason": "x", "lastTransitionTime": moment}
    return replace(snapshot, status={"conditions": [fields]})


def created(moment: str, pod: Manifest) -> Manifest:
    pod["metadata"]["creationTimestamp"] = moment
    return pod


BEFORE, CLOSING, AFTER = (f"2026-11-24T1{hour}:00:00Z" for hour in range(3))
BY_WEBHOOK = {"sidecar": a_sidecar, "variable": another_variable, "image": another_image}


@every_closed_gate
@pytest.mark.parametrize("by_webhook", BY_WEBHOOK)
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_behind_a_closed_gate_what_a_webhook_adds_to_deployments_ends_no_pod(gate_evidence, by_webhook, status):
    manifest = changed(a_share_model(), replicas=3)
    snapshot = edited(running(manifest, 3, evidence=gate_evidence), "Deployment", BY_WEBHOOK[by_webhook])
    pods = tuple(created(BEFORE, of_the_live_template(snapshot, number)) for number in range(3))
    after = closed_at(counting(replace(snapshot, pods=pods), replicas=3, updated=3), CLOSING, status)
    assert corrected(planned(manifest, after)) == []


@every_closed_gate
@pytest.mark.parametrize("edit", [another_image, a_sidecar])
@pytest.mark.parametrize("strangers", [0, 1])
def test_behind_a_closed_gate_a_change_besides_that_of_a_webhook_ends_its_own_pods_alone(
    gate_evidence, edit, strangers
):
    manifest = changed(a_share_model(), replicas=3)
    snapshot = edited(running(manifest, 3, evidence=gate_evidence), "Deployment", another_variable)
    pods = [created(BEFORE, of_the_live_template(snapshot, number)) for number in range(3 - strangers)]
    after = edited(snapshot, "Deployment", edit)
    theirs = [created(AFTER, of_the_live_template(after, 7 + number)) for number in range(strangers)]
    after = counting(replace(after, pods=(*pods, *theirs)), replicas=3, updated=strangers)
    assert corrected(planned(manifest, closed_at(after, CLOSING))) == [3 - strangers]


@every_closed_gate
@pytest.mark.parametrize("late", [1, 3])
def test_behind_a_closed_gate_pods_of_a_changed_template_that_started_there_are_stopped(gate_evidence, late):
    manifest = changed(a_share_model(), replicas=3)
    snapshot = edited(running(manifest, 3, evidence=gate_evidence), "Deployment", a_sidecar)
    pods = tuple(
        created(AFTER if number < late else BEFORE, of_the_live_template(snapshot, number)) for number in range(3)
    )
    after = counting(replace(snapshot, pods=pods), replicas=3, updated=3)
    assert corrected(planned(manifest, closed_at(after, CLOSING))) == [0]


@every_closed_gate
@pytest.mark.parametrize("by_webhook", ["", "sidecar"])
@pytest.mark.parametrize(("updated", "applied"), [(0, [2]), (1, []), (2, [])])
def test_behind_a_closed_gate_an_annotation_of_others_ends_no_pod_and_starts_none(
    gate_evidence, by_webhook, updated, applied
):
    manifest = changed(a_share_model(), replicas=2)
    snapshot = edited(running(manifest, 2, evidence=gate_evidence), "Deployment", an_annotation)
    pods = tuple(injected(of_the_live_template(snapshot, number), where=by_webhook) for number in range(2))
    assert corrected(planned(manifest, counting(replace(snapshot, pods=pods), replicas=2, updated=updated))) == applied


@every_closed_gate
def test_behind_a_closed_gate_a_workload_without_replicas_gets_its_template(gate_evidence):
    manifest = changed(a_share_model(), drainSeconds=7)
    snapshot = edited(
        running(a_share_model(), evidence=gate_evidence), "Deployment", lambda live: live["spec"].update(replicas=0)
    )
    for edit in (another_image, another_mark, lambda _: None):
        after = edited(snapshot, "Deployment", edit)
        decided = planned(manifest, after)
        assert corrected(decided) == [0]
        children = {child["kind"]: child for child in desired_children(spec_of(manifest), after)}
        assert decided.apply[-1].manifest["spec"]["template"] == children["Deployment"]["spec"]["template"]


@every_closed_gate
def test_behind_a_closed_gate_a_change_of_the_spec_corrects_no_template_that_is_not_known(gate_evidence):
    snapshot = edited(running(a_share_model(), evidence=gate_evidence), "Deployment", another_image)
    snapshot = replace(snapshot, pods=(of_the_live_template(running(a_share_model())),))
    decided = planned(changed(a_share_model(), drainSeconds=7), snapshot)
    assert corrected(decided) == []
    assert decided.held


@every_closed_gate
def test_behind_a_closed_gate_a_hole_in_the_walls_is_mended(gate_evidence):
    def opened(policy: dict[str, Any]) -> None:
        policy["spec"]["egress"] = [{}]

    snapshot = edited(running(a_share_model(), evidence=gate_evidence), "NetworkPolicy", opened)
    assert written(planned(a_share_model(), snapshot)) == [("NetworkPolicy", "drifted")]


@every_closed_gate
@pytest.mark.parametrize("enforcement", ["Report", "Off"])
def test_report_and_off_do_not_hold_anything(gate_evidence, enforcement):
    manifest = a_share_model(isolation={"enforcement": enforcement})
    decided = planned(manifest, a_snapshot(evidence=gate_evidence))
    assert decided.blocked is None
    assert [kind for kind, _ in written(decided)][-1] == "Deployment"


def test_requeue_is_when_the_evidence_ends_and_only_where_it_is_enforced():
    assert planned(a_share_model(), a_snapshot()).requeue_at == evidence().expires_at
    assert planned(reporting(a_share_model()), a_snapshot()).requeue_at == evidence().expires_at
    assert planned(a_share_model(isolation={"enforcement": "Off"}), a_snapshot()).requeue_at is None
    assert planned(a_share_model(), a_snapshot(evidence=None)).requeue_at is None
    assert planned(a_share_model(), a_snapshot(evidence=evidence(expires_at=NOW))).requeue_at is None


def test_closed_gate_with_only_a_deployment_of_another_name_writes_nothing() -> None:
    """It has the label and the owner of the model, as one that somebody copied: it is not what runs the pods."""
    manifest = a_share_model(replicas=2)
    snapshot = running(manifest, 2)
    deployment = next(child for child in snapshot.children.values() if child["kind"] == "Deployment")
    copied = {**deployment, "metadata": {**deployment["metadata"], "name": "copied"}}
    children = {("Deployment", "copied"): copied}
    assert planned(manifest, replace(snapshot, children=children, evidence=None)).apply == ()
    refused = changed(manifest, endpoint={"internalLoadBalancer": {"address": "10.13.76.40"}})
    blocked = planned(refused, replace(snapshot, children=children, address_holder="inference/other"))
    assert blocked.blocked is not None
    assert blocked.apply == ()
