"""What is written: only what differs, walls before pods, and behind a closed gate nothing that makes a pod."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hermetic.api.public_services import PUBLIC_SIDE
from hermetic.kube.projections import lean_pod
from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.plan.container_digests import completed
from hermetic.plan.planning import Plan, plan
from hermetic.plan.snapshot import ClusterSnapshot
from tests.renderings import RENDERINGS
from tests.scenarios import DIGEST, VLLM_IMAGE, Manifest, a_baked_model, a_share_model, changed, reporting
from tests.worlds import (
    NOW,
    a_world,
    addressed,
    carried_out,
    children_of,
    evidence,
    owner_of,
    rendered,
    serving,
    spec_of,
)

CLOSED = {
    "nothing is known": None,
    "a way out was found": evidence("Fail"),
    "not enough was seen": evidence("Unknown"),
    "a look is missing": evidence(sources=frozenset({"azure"})),
}
every_closed_gate = pytest.mark.parametrize("seen", CLOSED.values(), ids=list(CLOSED))


def planned(manifest: Manifest, world: ClusterSnapshot) -> Plan:
    return plan(spec_of(manifest), world, NOW)


def written(decided: Plan) -> list[tuple[str, str]]:
    return [(change.manifest["kind"], change.why) for change in decided.apply]


def running(manifest: Manifest, pods: int = 1, **seen: Any) -> ClusterSnapshot:
    return serving(a_world(owner_of(manifest), children=children_of(manifest), **seen), pods)


def edited(world: ClusterSnapshot, kind: str, edit: Callable[[dict[str, Any]], Any]) -> ClusterSnapshot:
    children = copy.deepcopy(dict(world.children))
    edit(next(child for child in children.values() if child["kind"] == kind))
    return replace(world, children=children)


def without(world: ClusterSnapshot, kind: str) -> ClusterSnapshot:
    return replace(world, children={key: child for key, child in world.children.items() if key[0] != kind})


# ---------------------------------------------------------------------- open gate


def test_new_deployment_gets_every_child_walls_first_and_the_workload_last():
    assert written(planned(a_share_model(), a_world())) == [
        (kind, "absent")
        for kind in (
            "ServiceAccount",
            "NetworkPolicy",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Service",
            "Deployment",
        )
    ]


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
    world = edited(running(a_share_model()), "Service", lambda s: s["metadata"].update(deletionTimestamp="now"))
    assert written(planned(a_share_model(), world)) == []


def test_disruption_budget_goes_with_the_second_replica_under_its_uid():
    two, one = a_share_model(replicas=2), a_share_model(replicas=1)
    decided = planned(one, running(two, 2))
    (gone,) = decided.delete
    live = next(child for child in children_of(two).values() if child["kind"] == "PodDisruptionBudget")
    assert (gone.kind.kind, gone.uid, gone.resource_version) == (
        "PodDisruptionBudget",
        live["metadata"]["uid"],
        live["metadata"]["resourceVersion"],
    )


def of_another_source() -> Manifest:
    files = a_share_model()["spec"]["weights"]["azureFiles"]
    return changed(a_share_model(), weights={"azureFiles": {**files, "folder": "another"}})


def a_pod(manifest: Manifest, **status: Any) -> Manifest:
    """A pod of the template that this deployment renders."""
    mark = rendered(manifest)["Deployment"]["spec"]["template"]["metadata"]["labels"][TEMPLATE_LABEL]
    name = f"llama-{mark}"
    return {"kind": "Pod", "metadata": {"name": name, "uid": name, "labels": {TEMPLATE_LABEL: mark}}, "status": status}


def claims(world: ClusterSnapshot) -> list[str]:
    return [name for kind, name in world.children if kind == "PersistentVolumeClaim"]


def test_claim_of_an_earlier_source_goes_with_the_last_pod_that_mounts_it_and_its_volume_with_the_sweep():
    before = replace(running(a_share_model()), pods=(a_pod(a_share_model(), phase="Running"),))
    first = planned(of_another_source(), before)
    assert first.delete == (), "the live template names it"
    rolling = carried_out(before, first)
    assert planned(of_another_source(), rolling).delete == (), "a pod of the earlier template mounts it"
    for pods in ((), (a_pod(a_share_model(), phase="Failed"), a_pod(of_another_source(), phase="Running"))):
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
        world = edited(running(a_share_model()), kind, lambda c, o=stranger: c["metadata"].update(ownerReferences=o))
        decided = planned(a_share_model(), world)
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

    manifest, world = changed(a_share_model(), **refused), running(a_share_model())
    assert written(planned(manifest, edited(world, "NetworkPolicy", opened))) == [("NetworkPolicy", "drifted")]
    assert written(planned(manifest, without(world, "NetworkPolicy"))) == [("NetworkPolicy", "absent")]


@every_refused_spec
def test_spec_that_a_gate_refuses_creates_nothing_where_nothing_runs(refused):
    decided = planned(changed(a_share_model(), **refused), a_world())
    assert (decided.apply, decided.delete) == ((), ())


@every_refused_spec
@pytest.mark.parametrize("asked", [0, 1])
def test_spec_that_a_gate_refuses_may_still_ask_for_fewer_pods_of_the_template_that_runs(refused, asked):
    world = running(a_share_model(replicas=3), 3)
    manifest = changed(a_share_model(replicas=asked), **refused)
    decided = planned(manifest, world)
    (change,) = decided.apply
    live = next(child for child in world.children.values() if child["kind"] == "Deployment")
    assert change.manifest["spec"] == {**live["spec"], "replicas": asked}
    assert planned(manifest, carried_out(world, decided)).apply == ()
    assert planned(changed(a_share_model(replicas=5), **refused), world).apply == ()


@every_refused_spec
def test_spec_that_a_gate_refuses_does_not_keep_a_public_service(refused):
    decided = planned(changed(a_share_model(), **refused), addressed(running(a_share_model()), "203.0.113.7"))
    assert [(gone.kind.kind, gone.urgent) for gone in decided.delete] == [("Service", True)]
    assert decided.apply == ()


def asking_for(address: str) -> Manifest:
    return a_share_model(endpoint={"internalLoadBalancer": {"address": address}})


def test_address_that_an_older_deployment_asks_for_removes_no_network_policy():
    manifest = asking_for("10.13.76.40")
    world = running(manifest, address_holder="elder")
    assert written(planned(manifest, without(world, "NetworkPolicy"))) == [("NetworkPolicy", "absent")]
    open_door = annotated(world, **{"service.beta.kubernetes.io/azure-load-balancer-internal": "false"})
    assert written(planned(manifest, open_door)) == [("Service", "drifted")]


def test_address_that_an_older_deployment_asks_for_is_not_taken_from_it():
    assert written(planned(asking_for("10.13.76.41"), running(asking_for("10.13.76.40"), address_holder="elder"))) == []


def test_walls_stand_and_the_door_closes_though_a_stranger_holds_another_name():
    stranger = [{"kind": "ModelDeployment", "name": "other", "uid": "other", "controller": True}]
    world = edited(running(a_share_model()), "ServiceAccount", lambda c: c["metadata"].update(ownerReferences=stranger))
    decided = planned(a_share_model(), addressed(without(world, "NetworkPolicy"), "203.0.113.7"))
    assert written(decided) == [("NetworkPolicy", "absent")]
    assert [gone.kind.kind for gone in decided.delete] == ["Service"]


def test_stranger_s_service_is_his_own_whatever_its_address():
    stranger = [{"kind": "ModelDeployment", "name": "other", "uid": "other", "controller": True}]
    world = addressed(running(a_share_model()), "203.0.113.7")
    decided = planned(
        a_share_model(), edited(world, "Service", lambda c: c["metadata"].update(ownerReferences=stranger))
    )
    assert (decided.apply, decided.delete) == ((), ())


# ---------------------------------------------------------------------- closed gate


@every_closed_gate
def test_behind_a_closed_gate_nothing_at_all_is_created(seen):
    for manifest in (a_share_model(), a_share_model(replicas=0)):
        decided = planned(manifest, a_world(evidence=seen))
        assert (decided.apply, decided.delete) == ((), ())
        assert decided.blocked is not None
        assert decided.held


@every_closed_gate
def test_behind_a_closed_gate_running_pods_keep_everything_they_have(seen):
    decided = planned(a_share_model(), running(a_share_model(), evidence=seen))
    assert (decided.apply, decided.delete) == ((), ())
    assert not decided.held


@every_closed_gate
def test_behind_a_closed_gate_a_new_template_waits_and_the_walls_do_not(seen):
    wanted = changed(a_share_model(), drainSeconds=7, endpoint={"internalLoadBalancer": {"subnet": "ilb"}})
    decided = planned(wanted, running(a_share_model(), evidence=seen))
    assert written(decided) == [("Service", "changed")]
    assert decided.held


@every_closed_gate
@pytest.mark.parametrize(("live", "asked", "applied"), [(1, 3, None), (3, 1, 1), (3, 0, 0), (3, 3, None), (2, 5, None)])
def test_behind_a_closed_gate_there_may_be_fewer_pods_never_more(seen, live, asked, applied):
    world = running(a_baked_model("llama", replicas=live), live, evidence=seen)
    decided = planned(a_baked_model("llama", replicas=asked), world)
    replicas = [c.manifest["spec"]["replicas"] for c in decided.apply if c.manifest["kind"] == "Deployment"]
    assert replicas in ([], [live]) if applied is None else replicas == [applied]
    assert planned(a_baked_model("llama", replicas=asked), carried_out(world, decided)).apply == ()


@every_closed_gate
@pytest.mark.parametrize("pods", [0, 1])
def test_behind_a_closed_gate_the_claim_that_a_pod_would_mount_again_stays(seen, pods):
    mounting = tuple(a_pod(a_share_model(), phase="Running") for _ in range(pods))
    world = replace(running(a_share_model(), evidence=seen), pods=mounting)
    decided = planned(of_another_source(), world)
    assert decided.held
    assert decided.delete == planned(of_another_source(), carried_out(world, decided)).delete == ()


@every_closed_gate
def test_behind_a_closed_gate_a_deleted_workload_is_not_recreated(seen):
    world = without(running(a_share_model(), evidence=seen), "Deployment")
    decided = planned(a_share_model(), world)
    assert (decided.apply, decided.delete) == ((), ())


def of_the_live_template(world: ClusterSnapshot, number: int = 0, *, complete: bool = True) -> dict[str, Any]:
    """A pod of the template that the Deployment has, as the API server completes it and the store keeps it."""
    template = world.children["Deployment", world.owner.name]["spec"]["template"]
    name = f"{world.owner.name}-5d9c-{number}"
    owners = [{"kind": "ReplicaSet", "name": f"{world.owner.name}-5d9c", "controller": True}]
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
    found = [change.manifest for change in decided.apply if change.manifest["kind"] == "Deployment"]
    return [manifest["spec"]["replicas"] for manifest in found]


@every_closed_gate
@pytest.mark.parametrize("edit", [another_image, another_mark, a_sidecar])
@pytest.mark.parametrize("strangers", [0, 1])
@pytest.mark.parametrize("ours", [1, 2, 3])
@pytest.mark.parametrize("name", ["nfs", "everything-said", "tls-and-api-key", "nim-profile"])
def test_behind_a_closed_gate_a_template_that_others_changed_is_corrected_and_starts_no_pod(
    seen, edit, ours, strangers, name
):
    manifest = changed(RENDERINGS[name], replicas=3)
    world = running(manifest, 3, evidence=seen)
    pods = tuple(of_the_live_template(world, number) for number in range(ours))
    after = edited(world, "Deployment", edit)
    theirs = tuple(of_the_live_template(after, 7 + number) for number in range(strangers))
    leaving = of_the_live_template(world, 9)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-24T12:00:00Z"
    after = replace(after, pods=(*pods, *theirs, leaving))
    decided = planned(manifest, after)
    assert corrected(decided) == [ours]
    assert planned(manifest, carried_out(after, decided)).apply == ()


@every_closed_gate
def test_behind_a_closed_gate_only_pods_of_a_changed_template_are_stopped(seen):
    manifest = a_share_model()
    world = edited(running(manifest, evidence=seen), "Deployment", another_image)
    assert corrected(planned(manifest, replace(world, pods=(of_the_live_template(world),)))) == [0]


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


def counting(world: ClusterSnapshot, *, replicas: int, updated: int) -> ClusterSnapshot:
    """What the Deployment controller says of all pods, and of those of the present template."""
    return serving(world, replicas, updatedReplicas=updated)


@every_closed_gate
@pytest.mark.parametrize("edit", [another_image, another_mark, a_sidecar, another_variable])
@pytest.mark.parametrize("by_webhook", ["sidecar", "variable", "image", "everything"])
@pytest.mark.parametrize("strangers", [0, 1])
def test_behind_a_closed_gate_what_a_webhook_injected_into_is_not_stopped(seen, edit, by_webhook, strangers):
    manifest = changed(a_share_model(), replicas=3)
    world = running(manifest, 3, evidence=seen)
    pods = [injected(of_the_live_template(world, number), where=by_webhook) for number in range(3 - strangers)]
    after = edited(world, "Deployment", edit)
    theirs = [injected(of_the_live_template(after, 7 + number), where=by_webhook) for number in range(strangers)]
    after = counting(replace(after, pods=(*pods, *theirs)), replicas=3, updated=strangers)
    decided = planned(manifest, after)
    assert corrected(decided) == [3 - strangers]
    assert planned(manifest, carried_out(after, decided)).apply == ()


@every_closed_gate
@pytest.mark.parametrize("by_webhook", ["sidecar", "variable", "image", "everything"])
def test_behind_a_closed_gate_a_change_that_the_controller_has_not_seen_ends_nothing(seen, by_webhook):
    manifest = changed(a_share_model(), replicas=2)
    world = running(manifest, 2, evidence=seen)
    pods = tuple(injected(of_the_live_template(world, number), where=by_webhook) for number in range(2))
    after = serving(edited(world, "Deployment", another_image), 2, observedGeneration=0)
    assert corrected(planned(manifest, replace(after, pods=pods))) == [2]


@every_closed_gate
@pytest.mark.parametrize("by_webhook", ["sidecar", "everything"])
def test_behind_a_closed_gate_a_rollout_of_a_changed_template_that_is_complete_is_stopped(seen, by_webhook):
    manifest = changed(a_share_model(), replicas=2)
    world = edited(running(manifest, 2, evidence=seen), "Deployment", a_sidecar)
    pods = tuple(injected(of_the_live_template(world, number), where=by_webhook) for number in range(2))
    assert corrected(planned(manifest, counting(replace(world, pods=pods), replicas=2, updated=2))) == [0]


def closed_at(world: ClusterSnapshot, moment: str, status: str = "False") -> ClusterSnapshot:
    """The status says since when the gate is closed, or (True) does not say it yet."""
    fields = {"type": "IsolationVerified", "status": status, "reason": "x", "lastTransitionTime": moment}
    return replace(world, status={"conditions": [fields]})


def created(moment: str, pod: Manifest) -> Manifest:
    pod["metadata"]["creationTimestamp"] = moment
    return pod


BEFORE, CLOSING, AFTER = (f"2026-11-24T1{hour}:00:00Z" for hour in range(3))
BY_WEBHOOK = {"sidecar": a_sidecar, "variable": another_variable, "image": another_image}


@every_closed_gate
@pytest.mark.parametrize("by_webhook", BY_WEBHOOK)
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_behind_a_closed_gate_what_a_webhook_adds_to_deployments_ends_no_pod(seen, by_webhook, status):
    manifest = changed(a_share_model(), replicas=3)
    world = edited(running(manifest, 3, evidence=seen), "Deployment", BY_WEBHOOK[by_webhook])
    pods = tuple(created(BEFORE, of_the_live_template(world, number)) for number in range(3))
    after = closed_at(counting(replace(world, pods=pods), replicas=3, updated=3), CLOSING, status)
    assert corrected(planned(manifest, after)) == []


@every_closed_gate
@pytest.mark.parametrize("edit", [another_image, a_sidecar])
@pytest.mark.parametrize("strangers", [0, 1])
def test_behind_a_closed_gate_a_change_besides_that_of_a_webhook_ends_its_own_pods_alone(seen, edit, strangers):
    manifest = changed(a_share_model(), replicas=3)
    world = edited(running(manifest, 3, evidence=seen), "Deployment", another_variable)
    pods = [created(BEFORE, of_the_live_template(world, number)) for number in range(3 - strangers)]
    after = edited(world, "Deployment", edit)
    theirs = [created(AFTER, of_the_live_template(after, 7 + number)) for number in range(strangers)]
    after = counting(replace(after, pods=(*pods, *theirs)), replicas=3, updated=strangers)
    assert corrected(planned(manifest, closed_at(after, CLOSING))) == [3 - strangers]


@every_closed_gate
@pytest.mark.parametrize("late", [1, 3])
def test_behind_a_closed_gate_pods_of_a_changed_template_that_started_there_are_stopped(seen, late):
    manifest = changed(a_share_model(), replicas=3)
    world = edited(running(manifest, 3, evidence=seen), "Deployment", a_sidecar)
    pods = tuple(
        created(AFTER if number < late else BEFORE, of_the_live_template(world, number)) for number in range(3)
    )
    after = counting(replace(world, pods=pods), replicas=3, updated=3)
    assert corrected(planned(manifest, closed_at(after, CLOSING))) == [0]


@every_closed_gate
@pytest.mark.parametrize("by_webhook", ["", "sidecar"])
@pytest.mark.parametrize(("updated", "applied"), [(0, [2]), (1, []), (2, [])])
def test_behind_a_closed_gate_an_annotation_of_others_ends_no_pod_and_starts_none(seen, by_webhook, updated, applied):
    manifest = changed(a_share_model(), replicas=2)
    world = edited(running(manifest, 2, evidence=seen), "Deployment", an_annotation)
    pods = tuple(injected(of_the_live_template(world, number), where=by_webhook) for number in range(2))
    assert corrected(planned(manifest, counting(replace(world, pods=pods), replicas=2, updated=updated))) == applied


@every_closed_gate
def test_behind_a_closed_gate_a_workload_without_replicas_gets_its_template(seen):
    manifest = changed(a_share_model(), drainSeconds=7)
    world = edited(running(a_share_model(), evidence=seen), "Deployment", lambda live: live["spec"].update(replicas=0))
    for edit in (another_image, another_mark, lambda _: None):
        decided = planned(manifest, edited(world, "Deployment", edit))
        assert corrected(decided) == [0]
        assert decided.apply[-1].manifest["spec"]["template"] == rendered(manifest)["Deployment"]["spec"]["template"]


@every_closed_gate
def test_behind_a_closed_gate_a_change_of_the_spec_corrects_no_template_that_is_not_known(seen):
    world = edited(running(a_share_model(), evidence=seen), "Deployment", another_image)
    world = replace(world, pods=(of_the_live_template(running(a_share_model())),))
    decided = planned(changed(a_share_model(), drainSeconds=7), world)
    assert corrected(decided) == []
    assert decided.held


@every_closed_gate
def test_behind_a_closed_gate_a_hole_in_the_walls_is_mended(seen):
    def opened(policy: dict[str, Any]) -> None:
        policy["spec"]["egress"] = [{}]

    world = edited(running(a_share_model(), evidence=seen), "NetworkPolicy", opened)
    assert written(planned(a_share_model(), world)) == [("NetworkPolicy", "drifted")]


@every_closed_gate
@pytest.mark.parametrize("enforcement", ["Report", "Off"])
def test_report_and_off_do_not_hold_anything(seen, enforcement):
    manifest = a_share_model(isolation={"enforcement": enforcement})
    decided = planned(manifest, a_world(evidence=seen))
    assert decided.blocked is None
    assert [kind for kind, _ in written(decided)][-1] == "Deployment"


def test_requeue_is_when_the_evidence_ends_and_only_where_it_is_enforced():
    assert planned(a_share_model(), a_world()).requeue_at == evidence().expires_at
    assert planned(reporting(a_share_model()), a_world()).requeue_at == evidence().expires_at
    assert planned(a_share_model(isolation={"enforcement": "Off"}), a_world()).requeue_at is None
    assert planned(a_share_model(), a_world(evidence=None)).requeue_at is None
    assert planned(a_share_model(), a_world(evidence=evidence(expires_at=NOW))).requeue_at is None


# ---------------------------------------------------------------------- public sides


def annotated(world: ClusterSnapshot, **annotations: str) -> ClusterSnapshot:
    return edited(world, "Service", lambda service: service["metadata"]["annotations"].update(annotations))


@pytest.mark.parametrize("name", PUBLIC_SIDE)
def test_annotation_that_opens_a_public_side_is_taken_out(name):
    manifest = a_share_model()
    world = annotated(running(manifest), **{name: "true"})
    decided = planned(manifest, world)
    assert written(decided) == [("Service", "drifted")]
    patch = decided.apply[0].patch
    assert patch is not None
    assert patch["metadata"]["annotations"][name] is None
    assert written(planned(manifest, carried_out(world, decided))) == []


@pytest.mark.parametrize("value", ["false", "True", "yes", ""])
def test_internal_annotation_that_is_not_exactly_true_is_corrected(value):
    name = "service.beta.kubernetes.io/azure-load-balancer-internal"
    decided = planned(a_share_model(), annotated(running(a_share_model()), **{name: value}))
    assert written(decided) == [("Service", "drifted")]


def test_service_with_a_public_address_is_deleted_and_nothing_else_is():
    world = addressed(running(a_share_model()), "203.0.113.7")
    decided = planned(a_share_model(), world)
    assert decided.apply == ()
    assert [(gone.kind.kind, gone.name, gone.urgent) for gone in decided.delete] == [("Service", "llama", True)]
    assert decided.blocked is None


def test_public_service_that_is_going_already_is_not_deleted_again():
    world = edited(running(a_share_model()), "Service", lambda s: s["metadata"].update(deletionTimestamp="now"))
    decided = planned(a_share_model(), addressed(world, "203.0.113.7"))
    assert (decided.apply, decided.delete) == ((), ())


def test_service_stays_away_until_the_spec_changes():
    gone = {
        "type": "EndpointPrivate",
        "status": "False",
        "reason": "PublicAddress",
        "observedGeneration": 4,
        "lastTransitionTime": "2026-11-24T12:00:00Z",
    }
    world = without(running(a_share_model(), generation=4, status={"conditions": [gone]}), "Service")
    assert written(planned(a_share_model(), world)) == []
    assert written(planned(a_share_model(), replace(world, generation=5))) == [("Service", "absent")]
