"""Objects of a megabyte that call themselves children, in every shape that a tenant can write, by the thousand."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.api.model_metadata import ModelMetadata
from hermetic.kinds import BY_KIND
from hermetic.kube import unowned_objects
from hermetic.kube.size_limits import cut
from hermetic.kube.store import Store
from hermetic.kube.unowned_objects import MOST_BYTES
from hermetic.objects.children import render
from hermetic.objects.names import Owner
from hermetic.plan.child_states import is_ours
from tests.controller.running import a_model, rest, running, where
from tests.fakes.cluster_in_memory import ClusterInMemory
from tests.fakes.virtual_loop import virtually
from tests.renderings import GROUP_RENDERINGS, OWNER_UID, RENDERINGS
from tests.scenarios import BAKED_IMAGE
from tests.snapshots import spec_of
from tests.traced_memory import traced_memory

Manifest = dict[str, Any]
OBJECTS = 16  # two of each kind; what is kept of one is kept of each
MEBIBYTE = 2**20
ROOM_OF_ONE = 24 * 2**10
KINDS = {
    "Service": "v1",
    "ServiceAccount": "v1",
    "PersistentVolumeClaim": "v1",
    "Pod": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "HTTPRoute": "gateway.networking.k8s.io/v1",
}
OURS = {"app.kubernetes.io/managed-by": "hermetic"}
NAMED = {**OURS, "hermetic.dev/modeldeployment": "llama"}


def controlled_by(name: str) -> list[Manifest]:
    return [{"apiVersion": "x/v1", "kind": "ModelDeployment", "name": name, "uid": "u", "controller": True}]


def many(number: int, length: int = MEBIBYTE) -> str:
    return f"{number:08}" * (length // 8)


Metadata = Callable[[int], Manifest]
SHAPES: dict[str, Metadata] = {
    "no owner": lambda _: {"labels": OURS},
    "an owner by label": lambda _: {"labels": NAMED},
    "an owner that is there": lambda _: {"labels": NAMED, "ownerReferences": controlled_by("llama")},
    "an owner that is not there": lambda number: {"labels": OURS, "ownerReferences": controlled_by(f"n{number}")},
    "annotations": lambda number: {"labels": NAMED, "annotations": {"a": many(number)}},
    "an annotation of ours": lambda number: {"labels": NAMED, "annotations": {"hermetic.dev/intent": many(number)}},
    "labels": lambda number: {
        "labels": {**NAMED, **{f"hermetic.dev/{number}-{at}": "v" * 63 for at in range(2_000)}},
    },
    "owners": lambda number: {
        "labels": NAMED,
        "ownerReferences": [
            {**controlled_by("o")[0], "uid": f"{number}-{at}", "controller": False} for at in range(2_000)
        ],
    },
    "finalizers": lambda number: {
        "labels": NAMED, "finalizers": [f"example.com/{number}-{at}" for at in range(4_000)],
    },
    "managers": lambda number: {
        "labels": NAMED,
        "managedFields": [
            {"manager": many(number, 4096), "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}}
        ] * 100,
    },
}  # fmt: skip


def a_hostile_object(kind: str, shape: str, number: int) -> Manifest:
    huge = {"containers": [{"name": "x", "image": many(number), "args": [many(number)]}], "selector": many(number)}
    return {
        "apiVersion": KINDS[kind],
        "kind": kind,
        "metadata": {
            "name": f"n{number}",
            "namespace": "team-a",
            "uid": f"u-{number}",
            "resourceVersion": str(number + 10),
            **SHAPES[shape](number),
        },
        "spec": huge,
        "status": {"huge": many(number)},
        "imagePullSecrets": [{"name": many(number)}],
    }


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "an owner that is not there"])
def test_little_is_kept_of_what_only_calls_itself_a_child(shape: str) -> None:
    bytes_kept = projected_row(shape, OBJECTS)
    # Labels of pods are kept, for a Service may select by any of them.
    room = ROOM_OF_ONE * (2 if shape == "labels" else 1)
    assert bytes_kept < OBJECTS * room, f"{bytes_kept / OBJECTS / 1024:.1f} KiB of each"


OF_GROUPS = {
    "Service": "llama-group-{}",
    "NetworkPolicy": "llama-group-{}",
    "StatefulSet": "llama-group-{}",
    "HTTPRoute": "group.g{}",
}


def named_after_a_group(kind: str, number: int) -> Manifest:
    """With a spec that cannot be compressed."""
    planted = a_hostile_object(kind, "an owner that is there", number)
    planted["metadata"]["name"] = OF_GROUPS[kind].format(number)
    return {**planted, "spec": {"selector": Random(number).randbytes(MEBIBYTE // 4).hex()}, "status": {}}


@pytest.mark.parametrize("kind", OF_GROUPS)
@pytest.mark.parametrize("first", [0, 1_000], ids=["groups", "groups beyond the most"])
def test_little_is_kept_of_what_is_named_after_a_group(kind: str, first: int) -> None:
    """Of a model there are as many names as it may have groups, and as many of routes as a tenant likes."""
    store = Store(Configuration())
    metadata = {"name": "llama", "namespace": "team-a", "uid": "u", "resourceVersion": "1"}
    store.put({"kind": "ModelDeployment", "metadata": metadata})
    with traced_memory() as memory_use:
        for number in range(first, first + OBJECTS):
            store.put(named_after_a_group(kind, number))
        assert memory_use()[0] < OBJECTS * ROOM_OF_ONE


def test_all_children_of_unknown_owners_together_are_bounded() -> None:
    """They may come before their owners, so each is kept whole as long as there is room."""
    assert projected_row("an owner that is not there", 120) < MOST_BYTES + 4 * MEBIBYTE


def projected_row(shape: str, count: int) -> int:
    store = Store(Configuration())
    kinds = list(KINDS)
    with traced_memory() as memory_use:
        for number in range(count):
            store.put(a_hostile_object(kinds[number % len(kinds)], shape, number))
        return memory_use()[0]


def test_children_of_an_owner_that_comes_later_are_kept_whole() -> None:
    store = Store(Configuration())
    store.put(a_hostile_object("Deployment", "an owner that is not there", 3))
    store.put(
        {
            "kind": "ModelDeployment",
            "metadata": {"name": "n3", "namespace": "team-a", "uid": "u", "resourceVersion": "1"},
        }
    )
    snapshot = store.snapshot(("team-a", "n3"))
    assert snapshot is not None
    assert snapshot.children["Deployment", "n3"]["spec"]["containers"][0]["args"] == [many(3)]


@pytest.mark.parametrize("shape", RENDERINGS | GROUP_RENDERINGS)
def test_nothing_of_what_is_rendered_is_cut(shape: str) -> None:
    manifest = (RENDERINGS | GROUP_RENDERINGS)[shape]
    owner = Owner("team-a", manifest["metadata"]["name"], OWNER_UID)
    for child in render(owner, spec_of(manifest)):
        cut_object = cut(BY_KIND[child["kind"]], child, owner.key, ModelMetadata())
        assert json.dumps(cut_object, sort_keys=True) == json.dumps(child, sort_keys=True)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Pod"])
def test_what_is_kept_of_a_foreign_shows_that_it_is_in_the_way(kind: str) -> None:
    store = Store(Configuration())
    foreign = a_hostile_object(kind, "an owner by label", 1)
    foreign["metadata"]["name"] = "llama"
    store.put(foreign)
    store.put(
        {
            "kind": "ModelDeployment",
            "metadata": {"name": "llama", "namespace": "team-a", "uid": "u", "resourceVersion": "1"},
        }
    )
    snapshot = store.snapshot(("team-a", "llama"))
    assert snapshot is not None
    assert not is_ours(snapshot.children[kind, "llama"], snapshot.owner)


def test_a_large_child_for_which_there_was_no_room_is_read_before_anything_is_decided_about_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At a restart children come before their models, and those of others may have filled the room."""

    async def scenario() -> None:
        cluster = ClusterInMemory()
        vllm = {"image": BAKED_IMAGE, "version": "0.32.0", "extraArgs": ["--response-role=" + "a" * 1000] * 40}
        async with running(cluster):
            cluster.put(a_model(engine={"vllm": vllm}))
            await rest()
        monkeypatch.setattr(unowned_objects, "MOST_BYTES", 0)
        before, write_count = cluster.objects[where("Deployment")], len(cluster.writes)
        async with running(cluster):
            await rest()
            assert len(cluster.writes) == write_count, cluster.writes[write_count:]
        assert cluster.objects[where("Deployment")] == before
        assert len(json.dumps(before)) > unowned_objects.LARGE

    virtually(scenario)
