"""What others add to the spec of our objects: found wherever it is, taken out by one patch, and its writer named."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hermetic.plan.tampering.drift import has_drifted
from hermetic.plan.tampering.field_owners import LARGEST_BOOK, MOST_MANAGERS, FieldStep, kept, spelled, writers
from hermetic.plan.tampering.foreign_fields import foreign, lasting, whole
from tests.fakes.cluster_in_memory import merge_patched
from tests.renderings import RENDERINGS
from tests.snapshots import living, rendered

EVERYTHING = rendered(RENDERINGS["everything-said"])


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def test_nothing_is_foreign_in_what_was_applied() -> None:
    for manifest in RENDERINGS.values():
        for child in rendered(manifest).values():
            assert foreign(child, living(child)) == ()


def additions(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], Callable[[Any], object]]]:
    """(what, where, edit of the value there) of something more in every map and every list."""
    if isinstance(value, dict):
        yield "field", path, lambda field_value: field_value.update(ofALaterKubernetes={"x": "y"})
        yield "field that is off", path, lambda field_value: field_value.update(ofALaterKubernetes=False)
        yield "field of nothing", path, lambda field_value: field_value.update(ofALaterKubernetes=0)
        for key, inner in value.items():
            yield from additions(inner, (*path, key))
    elif isinstance(value, list):
        more = _another(value[0]) if value else {"x": "y"}
        yield "last item", path, lambda field_value: field_value.append(more)
        yield "first item", path, lambda field_value: field_value.insert(0, more)
        if value:
            yield "item twice", path, lambda field_value: field_value.append(copy.deepcopy(field_value[0]))
        if len(value) > 1:
            yield "other order", path, lambda field_value: field_value.reverse()
        for number, inner in enumerate(value):
            yield from additions(inner, (*path, number))


def _another(item: Any) -> Any:
    return (
        {**item, "name": "more", "mountPath": "/more", "containerPort": 1, "port": 1} if isinstance(item, dict) else "x"
    )


def _content(manifest: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in manifest.items() if name != "metadata"}


@pytest.mark.parametrize("name", RENDERINGS)
def test_what_is_added_anywhere_to_any_object_is_seen_and_taken_out(name: str) -> None:
    """Of every kind that is rendered, in every map and list but metadata: no field is known here by its name."""
    for kind, desired in rendered(RENDERINGS[name]).items():
        for addition, path, edit in additions(_content(desired)):
            if path in ((), ("status",), ("apiVersion",), ("kind",)) and kind != "ServiceAccount":
                continue  # no other kind has a field beside its spec
            live = living(desired)
            edit(at(live, path))
            assert foreign(desired, live) or has_drifted(desired, live), (kind, addition, path)
            assert _content(merge_patched(live, whole(desired, live))) == _content(desired), (kind, addition, path)


FOREIGN_FIELDS: dict[str, tuple[str, dict[str, Any]]] = {
    "pull secrets of an account": ("ServiceAccount", {"imagePullSecrets": [{"name": "mine"}]}),
    "secrets of an account": ("ServiceAccount", {"secrets": [{"name": "mine"}]}),
    "limits of a claim": ("PersistentVolumeClaim", {"spec": {"resources": {"limits": {"storage": "1Gi"}}}}),
    "source of a claim": ("PersistentVolumeClaim", {"spec": {"dataSource": {"kind": "VolumeSnapshot", "name": "x"}}}),
    "selector of a claim": ("PersistentVolumeClaim", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
    "attribute of a share": ("PersistentVolume", {"spec": {"csi": {"volumeAttributes": {"secretName": "mine"}}}}),
    "secret of a share": ("PersistentVolume", {"spec": {"csi": {"nodeStageSecretRef": {"name": "mine"}}}}),
}


@pytest.mark.parametrize("what", FOREIGN_FIELDS)
def test_fields_that_kubernetes_knows_of_other_kinds_are_foreign_too(what: str) -> None:
    kind, added = FOREIGN_FIELDS[what]
    desired = EVERYTHING[kind]
    live = merge_patched(living(desired), added)
    assert foreign(desired, live)
    assert _content(merge_patched(live, whole(desired, live))) == _content(desired)


def test_what_the_binder_writes_into_a_volume_is_not_foreign() -> None:
    desired = EVERYTHING["PersistentVolume"]
    live = merge_patched(living(desired), {"spec": {"claimRef": {"uid": "u", "resourceVersion": "7"}}})
    assert foreign(desired, live) == ()
    assert merge_patched(live, whole(desired, live))["spec"]["claimRef"] == live["spec"]["claimRef"]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("PersistentVolume", "nodeAffinity", {"required": {}}),
        ("PersistentVolume", "volumeAttributesClassName", "fast"),
        ("PersistentVolumeClaim", "volumeAttributesClassName", "fast"),
    ],
)
def test_what_the_api_server_does_not_let_go_is_reported_and_left(kind: str, field: str, value: Any) -> None:
    desired = EVERYTHING[kind]
    live = merge_patched(living(desired), {"spec": {field: value}})
    assert foreign(desired, live) == ()
    assert [spelled(steps) for steps in lasting(live)] == [f"spec.{field}"]
    assert merge_patched(live, whole(desired, live)) == live


STEERING = [
    "service.beta.kubernetes.io/azure-pip-name",
    "service.beta.kubernetes.io/azure-load-balancer-internal-subnet",
    "service.beta.kubernetes.io/of-another-cloud",
    "service.kubernetes.io/topology-mode",
    "service.cilium.io/global",
    "external-dns.alpha.kubernetes.io/hostname",
]


@pytest.mark.parametrize("name", STEERING)
def test_an_annotation_that_steers_a_service_is_taken_out_and_others_are_not(name: str) -> None:
    desired = rendered(RENDERINGS["share"])["Service"]
    live = living(desired)
    live_annotations = {**live["metadata"]["annotations"], "argocd.argoproj.io/tracking-id": "chat"}
    live["metadata"]["annotations"] = live_annotations
    assert foreign(desired, live) == ()
    live["metadata"]["annotations"] = {**live_annotations, name: "x"}
    assert [spelled(steps) for steps in foreign(desired, live)] == [f"metadata.annotations.{name}"]
    assert merge_patched(live, whole(desired, live))["metadata"]["annotations"] == live_annotations


EDITS: dict[str, tuple[Callable[[Any], object], str]] = {
    "container": (lambda pod: pod["containers"].append({"name": "x"}), "containers[x]"),
    "init container": (lambda pod: pod.update(initContainers=[{"name": "x"}]), "initContainers"),
    "variable": (lambda pod: pod["containers"][0]["env"].append({"name": "X"}), "containers[engine].env[X]"),
    "same variable again": (
        lambda pod: pod["containers"][0]["env"].append({"name": "HF_HUB_OFFLINE", "value": "0"}),
        "containers[engine].env[HF_HUB_OFFLINE]",
    ),
    "order of variables": (lambda pod: pod["containers"][0]["env"].reverse(), "containers[engine].env"),
    "hook": (
        lambda pod: pod["containers"][0]["lifecycle"].update(postStart={"exec": {}}),
        "containers[engine].lifecycle.postStart",
    ),
    "resolver": (lambda pod: pod.update(dnsPolicy="None"), "dnsPolicy"),
    "restart policy": (lambda pod: pod.update(restartPolicy="Never"), "restartPolicy"),
    "scheduler": (lambda pod: pod.update(schedulerName="mine"), "schedulerName"),
    "old name of the account": (lambda pod: pod.update(serviceAccount="default"), "serviceAccount"),
}


@pytest.mark.parametrize(("edit", "place"), EDITS.values(), ids=list(EDITS))
def test_the_place_is_said_as_people_write_it(edit: Callable[[Any], object], place: str) -> None:
    desired = EVERYTHING["Deployment"]
    live = living(desired)
    edit(live["spec"]["template"]["spec"])
    assert [spelled(steps) for steps in foreign(desired, live)] == [f"spec.template.spec.{place}"]


def test_what_the_api_server_fills_in_and_a_restart_are_not_foreign() -> None:
    desired = EVERYTHING["Deployment"]
    live = living(desired)
    template = live["spec"]["template"]
    template["metadata"] |= {"creationTimestamp": None, "annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}
    pod = template["spec"]
    pod |= {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
    pod |= {"serviceAccount": pod["serviceAccountName"]}
    pod["containers"][0] |= {"terminationMessagePath": "/dev/termination-log"}
    assert foreign(desired, live) == ()
    template["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] = "open"
    assert len(foreign(desired, live)) == 1


def test_the_patch_is_of_the_object_that_was_looked_at_and_leaves_metadata_of_others() -> None:
    desired = EVERYTHING["Deployment"]
    live = living(desired)
    live["metadata"]["ownerReferences"].insert(0, {"kind": "Application", "name": "chat", "uid": "another"})
    live["metadata"]["labels"]["team"] = "chat"
    live["spec"]["paused"] = True
    patch = whole(desired, live)
    after = merge_patched(copy.deepcopy(live), patch)
    assert after["metadata"] == live["metadata"]
    assert "paused" not in after["spec"]
    assert patch["metadata"]["uid"] == live["metadata"]["uid"]
    assert "resourceVersion" not in patch["metadata"], "a status that is written meanwhile is no reason to wait"


def test_the_owner_comes_back_beside_the_others_and_only_onto_what_was_seen() -> None:
    desired = EVERYTHING["Deployment"]
    live = living(desired)
    (ours,) = live["metadata"]["ownerReferences"]
    another = {"kind": "Application", "name": "chat", "uid": "another"}
    for changed in ([another], [another, {**ours, "controller": False}]):
        live["metadata"]["ownerReferences"] = changed
        patch = whole(desired, live)
        assert merge_patched(live, patch)["metadata"]["ownerReferences"] == [another, ours]
        assert patch["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]


# ---------------------------------------------------------------------- who wrote it

PLACE = (FieldStep("spec"), FieldStep("template"), FieldStep("spec"), FieldStep("containers", (("name", "x"),)))


def book(manager: str, fields: dict[str, Any], **entry: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields, **entry}


def containers(name: str) -> dict[str, Any]:
    return {"f:spec": {"f:template": {"f:spec": {"f:containers": {f'k:{{"name":"{name}"}}': {".": {}}}}}}}


def test_only_the_manager_of_the_item_is_named() -> None:
    managed = [
        book("hermetic", containers("x"), operation="Apply"),
        book("kubectl-patch", containers("x")),
        book("flux", containers("y")),
        book("kube-controller-manager", {"f:status": {}}),
    ]
    live = {"metadata": {"managedFields": kept(managed)}}
    assert writers(live, PLACE) == ("kubectl-patch",)
    assert [entry["manager"] for entry in live["metadata"]["managedFields"]] == ["kubectl-patch", "flux"]


def test_a_name_that_is_no_line_is_shown_as_one() -> None:
    live = {"metadata": {"managedFields": kept([book("a\n  fix: b\u202e", containers("x"))])}}
    assert writers(live, PLACE) == ("a fix: b\ufffd",)
    assert "\n" not in spelled((FieldStep("spec"), FieldStep("containers", (("name", "a\nb"),))))


def test_the_book_is_kept_within_bounds() -> None:
    large = {"f:spec": {f"f:{number}": {} for number in range(10_000)}}
    remaining_books = kept([book(f"m{number}" + "x" * 1000, large) for number in range(100)])
    assert len(remaining_books) == MOST_MANAGERS
    assert len(str(remaining_books)) < LARGEST_BOOK


@pytest.mark.parametrize("managed", [None, [{}], [{"manager": None, "fieldsV1": None}], "x"])
def test_a_record_of_managers_that_was_dropped_names_none(managed: Any) -> None:
    assert writers({"metadata": {"managedFields": kept(managed)}}, PLACE) == ()
