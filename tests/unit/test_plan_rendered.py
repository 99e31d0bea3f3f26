"""What runs is what was rendered: the live template and every live pod, container by container."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hermetic.kube.projections import lean_pod
from hermetic.plan.planning import plan
from hermetic.plan.rendered import strange
from hermetic.plan.status import status
from hermetic.plan.world import World
from tests.renderings import RENDERINGS
from tests.scenarios import DIGEST, Manifest, a_baked_model
from tests.worlds import NOW, a_world, children_of, conditions, owner_of, serving, spec_of

MODEL = a_baked_model("phi")
STRANGER = {"name": "x", "image": f"contoso.azurecr.io/x@sha256:{DIGEST}"}


def a_pod(template: Manifest, edit: Callable[[Manifest], object] = lambda _: None, **labels: str) -> Manifest:
    """A pod as the ReplicaSet makes it and admission completes it, kept as the store keeps it."""
    spec = copy.deepcopy(template["spec"])
    spec |= {"nodeName": "gpu-0", "priority": 0, "imagePullSecrets": [{"name": "pull"}], "hostNetwork": False}
    spec["tolerations"] = [*(spec.get("tolerations") or []), {"key": "node.kubernetes.io/not-ready"}]
    spec["containers"][0]["resources"] = {"limits": {"cpu": "4"}}
    edit(spec)
    metadata = {"name": "phi-1", "uid": "u", "labels": {**template["metadata"]["labels"], **labels}}
    return lean_pod({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


def a_world_with(pod: Callable[[Manifest], Manifest], manifest: Manifest = MODEL) -> World:
    world = serving(a_world(owner_of(manifest), children=children_of(manifest)), 1)
    template = world.children["Deployment", world.owner.name]["spec"]["template"]
    return replace(world, pods=(pod(template),))


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_a_pod_as_admission_completes_it_is_as_rendered(manifest: Manifest) -> None:
    found = strange(a_world_with(a_pod, manifest))
    assert found is None or "registry" in found.message


def engine(spec: Manifest) -> Manifest:
    found: Manifest = spec["containers"][0]
    return found


IMAGES: dict[str, Callable[[Manifest], object]] = {
    "sidecar": lambda spec: spec["containers"].append(STRANGER),
    "init container": lambda spec: spec.update(initContainers=[STRANGER]),
    "ephemeral container": lambda spec: spec.update(ephemeralContainers=[STRANGER]),
    "ephemeral container of our name": lambda spec: spec.update(ephemeralContainers=[{**STRANGER, "name": "engine"}]),
    "init container of our name": lambda spec: spec.update(initContainers=[{**STRANGER, "name": "engine"}]),
    "image by tag": lambda spec: engine(spec).update(image="contoso.azurecr.io/x:latest"),
    "image of another registry": lambda spec: engine(spec).update(image=f"evil.example/x@sha256:{DIGEST}"),
    "image that may be used and is not ours": lambda spec: engine(spec).update(image=STRANGER["image"]),
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


@pytest.mark.parametrize("what", IMAGES)
def test_another_container_or_image_in_a_pod_ends_images_pinned(what: str) -> None:
    world = a_world_with(lambda template: a_pod(template, IMAGES[what]))
    spec = spec_of(MODEL)
    said = conditions(status(spec, world, plan(spec, world, NOW), (), NOW))
    for kind in ("ImagesPinned", "Ready"):
        assert (said[kind]["status"], said[kind]["reason"]) == ("False", "NotAsRendered")
        assert "pod 'phi-1'" in said[kind]["message"]
        assert "image" in said[kind]["message"]


@pytest.mark.parametrize("what", FIELDS)
def test_another_field_in_a_pod_ends_ready_and_not_images_pinned(what: str) -> None:
    edit, field = FIELDS[what]
    world = a_world_with(lambda template: a_pod(template, edit))
    spec = spec_of(MODEL)
    said = conditions(status(spec, world, plan(spec, world, NOW), (), NOW))
    assert said["ImagesPinned"]["status"] == "True"
    assert (said["Ready"]["status"], said["Ready"]["reason"]) == ("False", "NotAsRendered")
    assert said["Ready"]["message"].endswith(f"differs from its template in: {field}")


def test_a_sidecar_in_the_live_template_is_named_before_any_pod_has_it() -> None:
    world = a_world_with(a_pod)
    children: Any = copy.deepcopy(dict(world.children))
    children["Deployment", "phi"]["spec"]["template"]["spec"]["containers"].append(STRANGER)
    found = strange(replace(world, children=children, pods=()))
    assert found is not None
    assert found.message.startswith("the template of Deployment 'phi' holds container 'x'")


def test_of_a_pod_of_an_earlier_template_only_the_containers_and_images_are_known() -> None:
    mark = "hermetic.dev/pod-template"
    older = a_world_with(lambda template: a_pod(template, lambda spec: engine(spec)["args"].pop(), **{mark: "0" * 16}))
    assert strange(older) is None
    altered = a_world_with(lambda template: a_pod(template, IMAGES["sidecar"], **{mark: "0" * 16}))
    assert strange(altered) is not None


def test_a_pod_that_has_ended_counts_for_nothing() -> None:
    world = a_world_with(lambda template: a_pod(template, IMAGES["sidecar"]))
    (pod,) = world.pods
    assert strange(replace(world, pods=({**pod, "status": {"phase": "Failed"}},))) is None


def test_a_name_that_a_stranger_chose_is_shown_as_one_line() -> None:
    evil = {"name": "a\nready yes", "image": "x\u202e"}
    found = strange(a_world_with(lambda template: a_pod(template, lambda spec: spec["containers"].append(evil))))
    assert found is not None
    assert "\n" not in found.message
    assert "\u202e" not in found.message
