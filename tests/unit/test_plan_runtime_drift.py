"""What runs is what was rendered: the live template and every live pod, container by container."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hermetic.kube.projections import lean_pod
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import status
from hermetic.plan.tampering.runtime_drift import strange
from tests.renderings import RENDERINGS
from tests.scenarios import DIGEST, Manifest, a_baked_model
from tests.snapshots import NOW, a_snapshot, children_of, conditions, owner_of, serving, spec_of

MODEL = a_baked_model("phi")
ADDED_CONTAINER = {"name": "x", "image": f"contoso.azurecr.io/x@sha256:{DIGEST}"}


def a_pod(template: Manifest, edit: Callable[[Manifest], object] = lambda _: None, **labels: str) -> Manifest:
    """A pod as the ReplicaSet makes it and admission completes it, kept as the store keeps it."""
    spec = copy.deepcopy(template["spec"])
    spec |= {"nodeName": "gpu-0", "priority": 0, "imagePullSecrets": [{"name": "pull"}], "hostNetwork": False}
    spec["tolerations"] = [*(spec.get("tolerations") or []), {"key": "node.kubernetes.io/not-ready"}]
    spec["containers"][0]["resources"] = {"limits": {"cpu": "4"}}
    edit(spec)
    metadata = {"name": "phi-1", "uid": "u", "labels": {**template["metadata"]["labels"], **labels}}
    model = template["metadata"]["labels"]["hermetic.dev/modeldeployment"]
    metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": f"{model}-5d9c", "controller": True}]
    return lean_pod({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


def a_snapshot_with(pod: Callable[[Manifest], Manifest], manifest: Manifest = MODEL) -> ClusterSnapshot:
    snapshot = serving(a_snapshot(owner_of(manifest), children=children_of(manifest)), 1)
    template = snapshot.children["Deployment", snapshot.owner.name]["spec"]["template"]
    return replace(snapshot, pods=(pod(template),))


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_a_pod_as_admission_completes_it_is_as_rendered(manifest: Manifest) -> None:
    drift = strange(a_snapshot_with(a_pod, manifest), NOW)
    assert drift is None or "registry" in drift.message


def engine(spec: Manifest) -> Manifest:
    container: Manifest = spec["containers"][0]
    return container


IMAGES: dict[str, Callable[[Manifest], object]] = {
    "sidecar": lambda spec: spec["containers"].append(ADDED_CONTAINER),
    "init container": lambda spec: spec.update(initContainers=[ADDED_CONTAINER]),
    "ephemeral container": lambda spec: spec.update(ephemeralContainers=[ADDED_CONTAINER]),
    "ephemeral container of our name": lambda spec: spec.update(
        ephemeralContainers=[{**ADDED_CONTAINER, "name": "engine"}]
    ),
    "init container of our name": lambda spec: spec.update(initContainers=[{**ADDED_CONTAINER, "name": "engine"}]),
    "image by tag": lambda spec: engine(spec).update(image="contoso.azurecr.io/x:latest"),
    "image of another registry": lambda spec: engine(spec).update(image=f"evil.example/x@sha256:{DIGEST}"),
    "image that may be used and is not ours": lambda spec: engine(spec).update(image=ADDED_CONTAINER["image"]),
}
FIELDS: dict[str, tuple[Callable[[Manifest], object], str]] = {
    "variable": (lambda spec: engine(spec)["env"].append({"name": "HTTPS_PROXY", "value": "x"}), "env"),
    "variable of ours": (lambda spec: engine(spec)["env"].pop(), "env"),
    "variables of a map": (lambda spec: engine(spec).update(envFrom=[{"configMapRef": {"name": "x"}}]), "envFrom"),
    "argument": (lambda spec: engine(spec)["args"].append("--x"), "args"),
    "hook": (lambda spec: engine(spec)["lifecycle"].update(postStart={"exec": {}}), "lifecycle"),
    "mount": (lambda spec: engine(spec)["volumeMounts"].append({"name": "h", "mountPath": "/h"}), "volumeMounts"),
    "privileges": (lambda spec: engine(spec)["securityContext"].update(privileged=True), "securityContext"),
    "host network": (lambda spec: spec.update(hostNetwork=True), "hostNetwork"),
    "resolver": (lambda spec: spec.update(dnsConfig={"nameservers": ["203.0.113.53"]}), "dnsConfig"),
    "aliases": (lambda spec: spec.update(hostAliases=[{"ip": "203.0.113.9"}]), "hostAliases"),
    "volume": (lambda spec: spec["volumes"].append({"name": "h", "hostPath": {"path": "/"}}), "volumes"),
    "account": (lambda spec: spec.update(serviceAccountName="default"), "serviceAccountName"),
}


@pytest.mark.parametrize("edit_name", IMAGES)
def test_another_container_or_image_in_a_pod_ends_images_pinned(edit_name: str) -> None:
    snapshot = a_snapshot_with(lambda template: a_pod(template, IMAGES[edit_name]))
    spec = spec_of(MODEL)
    found_conditions = conditions(status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW))
    for kind in ("ImagesPinned", "Ready"):
        assert (found_conditions[kind]["status"], found_conditions[kind]["reason"]) == ("False", "NotAsRendered")
        assert "pod 'phi-1'" in found_conditions[kind]["message"]
        assert "image" in found_conditions[kind]["message"]


@pytest.mark.parametrize("edit_name", FIELDS)
def test_another_field_in_a_pod_ends_ready_and_not_images_pinned(edit_name: str) -> None:
    edit, field = FIELDS[edit_name]
    snapshot = a_snapshot_with(lambda template: a_pod(template, edit))
    spec = spec_of(MODEL)
    found_conditions = conditions(status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW))
    assert found_conditions["ImagesPinned"]["status"] == "True"
    assert (found_conditions["Ready"]["status"], found_conditions["Ready"]["reason"]) == ("False", "NotAsRendered")
    assert found_conditions["Ready"]["message"].endswith(f"differs from its template in: {field}")


def test_a_sidecar_in_the_live_template_is_named_before_any_pod_has_it() -> None:
    snapshot = a_snapshot_with(a_pod)
    children: Any = copy.deepcopy(dict(snapshot.children))
    children["Deployment", "phi"]["spec"]["template"]["spec"]["containers"].append(ADDED_CONTAINER)
    drift = strange(replace(snapshot, children=children, pods=()), NOW)
    assert drift is not None
    assert drift.message.startswith("the template of Deployment 'phi' holds container 'x'")


def test_of_a_pod_of_an_earlier_template_only_the_containers_and_images_are_known() -> None:
    mark = "hermetic.dev/pod-template"
    older = a_snapshot_with(
        lambda template: a_pod(template, lambda spec: engine(spec)["args"].pop(), **{mark: "0" * 16})
    )
    assert strange(older, NOW) is None
    altered = a_snapshot_with(lambda template: a_pod(template, IMAGES["sidecar"], **{mark: "0" * 16}))
    assert strange(altered, NOW) is not None


def test_a_pod_that_has_ended_counts_for_nothing() -> None:
    snapshot = a_snapshot_with(lambda template: a_pod(template, IMAGES["sidecar"]))
    (pod,) = snapshot.pods
    assert strange(replace(snapshot, pods=({**pod, "status": {"phase": "Failed"}},)), NOW) is None


def test_a_name_that_a_stranger_chose_is_shown_as_one_line() -> None:
    evil = {"name": "a\nready yes", "image": "x\u202e"}
    drift = strange(
        a_snapshot_with(lambda template: a_pod(template, lambda spec: spec["containers"].append(evil))), NOW
    )
    assert drift is not None
    assert "\n" not in drift.message
    assert "\u202e" not in drift.message


# ---------------------------------------------------------------------- labels and owners

MODEL_LABEL, MANAGED_BY, MARK = (
    "hermetic.dev/modeldeployment",
    "app.kubernetes.io/managed-by",
    "hermetic.dev/pod-template",
)
Metadata = dict[str, Any]
REPLICA_SET = {"kind": "ReplicaSet", "name": "phi-5d9c", "controller": True}
KUBECTL = {
    "manager": "kubectl-label",
    "operation": "Update",
    "fieldsV1": {"f:metadata": {"f:labels": {f"f:{MODEL_LABEL}": {}}}},
}
IDENTITY: dict[str, tuple[Callable[[Metadata], object], str]] = {
    "label of the model": (lambda m: m["labels"].pop(MODEL_LABEL), f"does not have the label {MODEL_LABEL}=phi"),
    "label by which it is watched": (
        lambda m: m["labels"].pop(MANAGED_BY),
        f"does not have the label {MANAGED_BY}=hermetic",
    ),
    "every label": (lambda m: m.pop("labels"), f"does not have the label {MODEL_LABEL}=phi"),
    "label of another model": (
        lambda m: (m["labels"].update({MODEL_LABEL: "b"}), m.update(managedFields=[KUBECTL])),
        f"does not have the label {MODEL_LABEL}=phi, written by 'kubectl-label' (field manager)",
    ),
    "no owner": (lambda m: m.pop("ownerReferences"), "is not controlled by a ReplicaSet of Deployment 'phi'"),
    "an owner that is no controller": (
        lambda m: m.update(ownerReferences=[{**REPLICA_SET, "controller": False}]),
        "is not controlled by a ReplicaSet",
    ),
    "a set of another name": (
        lambda m: m.update(ownerReferences=[{**REPLICA_SET, "name": "phib-5d9c"}]),
        "is not controlled by a ReplicaSet",
    ),
    "another kind": (
        lambda m: m.update(ownerReferences=[{**REPLICA_SET, "kind": "StatefulSet"}]),
        "is not controlled by a ReplicaSet",
    ),
}


def a_pod_with(edit: Callable[[Metadata], object]) -> Callable[[Manifest], Manifest]:
    def pod(template: Manifest) -> Manifest:
        metadata = {
            "name": "phi-5d9c-x7k2p",
            "uid": "u",
            "labels": dict(template["metadata"]["labels"]),
            "ownerReferences": [dict(REPLICA_SET)],
        }
        edit(metadata)
        spec = copy.deepcopy(template["spec"])
        return lean_pod({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})

    return pod


@pytest.mark.parametrize("edit_name", IDENTITY)
def test_a_pod_without_its_labels_or_its_owner_ends_ready(edit_name: str) -> None:
    edit, message = IDENTITY[edit_name]
    snapshot = a_snapshot_with(a_pod_with(edit))
    spec = spec_of(MODEL)
    found_conditions = conditions(status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW))
    assert (found_conditions["Ready"]["status"], found_conditions["Ready"]["reason"]) == ("False", "NotAsRendered")
    assert f"pod 'phi-5d9c-x7k2p' {message}" in found_conditions["Ready"]["message"]
    assert found_conditions["ImagesPinned"]["status"] == "True"


@pytest.mark.parametrize(("ago", "is_seen"), [(59, False), (60, True)])
@pytest.mark.parametrize("mark", ["0" * 16, None])
def test_a_pod_of_no_present_template_is_seen_a_minute_after_the_rollout(
    mark: str | None, ago: int, is_seen: bool
) -> None:
    edit = (lambda m: m["labels"].pop(MARK)) if mark is None else (lambda m: m["labels"].update({MARK: mark}))
    snapshot = a_snapshot_with(a_pod_with(edit))
    over = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
    since = (NOW - timedelta(seconds=ago)).isoformat()
    snapshot = serving(snapshot, 1, conditions=[{**over, "lastUpdateTime": since}])
    drift = strange(snapshot, NOW)
    assert (drift is not None) is is_seen
    if not is_seen:
        assert plan(spec_of(MODEL), snapshot, NOW).requeue_at == NOW + timedelta(seconds=1)
    (pod,) = snapshot.pods
    leaving = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-11-24T12:00:00Z"}}
    assert strange(replace(snapshot, pods=(leaving,)), NOW) is None


def test_a_pod_of_an_earlier_template_is_not_left_over_while_a_rollout_goes_on() -> None:
    snapshot = a_snapshot_with(a_pod_with(lambda m: m["labels"].update({MARK: "0" * 16})))
    going = {"type": "Progressing", "reason": "ReplicaSetUpdated", "lastUpdateTime": "2020-01-01T00:00:00Z"}
    assert strange(serving(snapshot, 1, conditions=[going]), NOW) is None
    unheard = {**going, "reason": "NewReplicaSetAvailable"}
    assert strange(serving(snapshot, 1, conditions=[unheard], observedGeneration=0), NOW) is None
