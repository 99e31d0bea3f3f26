"""Ten thousand pods that claim a model by its label or its account, in every shape, in a bounded number of bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.kube import pod_bounds
from hermetic.kube.store import Store
from tests.controller.running import NAMESPACE, RESYNC_SECONDS, a_model, condition, ready, rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory
from tests.fakes.virtual_loop import virtually
from tests.traced_memory import traced_memory

Manifest = dict[str, Any]
PODS = 10_000
MEBIBYTE = 2**20
OURS = {"app.kubernetes.io/managed-by": "hermetic"}
OF_ALL = 32 * MEBIBYTE
"""Of the 512 MiB that the operator's pod has, what ten thousand foreign pods may take, indexes included."""
OF_ONE = 3 * 2**20
"""What one reconcile of a model may have to read of its pods."""


TEXT = "0123456789abcdef" * 256
CONTAINERS = [{"name": "engine", "image": TEXT, "args": [TEXT], "env": [{"name": "X", "value": TEXT}]}] * 8
STATES = [
    {
        "name": f"c{at}",
        "image": TEXT,
        "imageID": TEXT,
        "restartCount": 9,
        "state": {"waiting": {"reason": "InvalidImageName", "message": TEXT}},
        "lastState": {"terminated": {"exitCode": 1, "message": TEXT, "containerID": TEXT}},
    }
    for at in range(8)
]


def a_hostile_pod(number: int, *, account: str = "default", **metadata: Any) -> Manifest:
    """A pod whose author wrote much into each field; the kubelet copies names of images to the status."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p{number}",
            "namespace": NAMESPACE,
            "uid": f"u-{number}",
            "resourceVersion": str(number + 10),
            "annotations": {"a": TEXT},
            **metadata,
        },
        "spec": {"serviceAccountName": account, "containers": CONTAINERS, "initContainers": CONTAINERS},
        "status": {
            "phase": "Pending",
            "podIP": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
            "conditions": [{"type": f"x-{at}", "status": "True", "message": TEXT} for at in range(8)],
            "containerStatuses": STATES,
            "initContainerStatuses": STATES,
        },
    }


def labelled(name: str, **more: str) -> Manifest:
    return {**OURS, "hermetic.dev/modeldeployment": name, **more}


def replica_set(name: str) -> list[Manifest]:
    return [{"kind": "ReplicaSet", "name": f"{name}-7d9f", "controller": True}]


SHAPES: dict[str, Callable[[int], Manifest]] = {
    "the label of one model": lambda n: a_hostile_pod(n, labels=labelled("llama")),
    "the label of another model each": lambda n: a_hostile_pod(n, labels=labelled(f"m{n}")),
    "the account of one model": lambda n: a_hostile_pod(n, account="llama"),
    "the account of another model each": lambda n: a_hostile_pod(n, account=f"m{n}", labels=labelled("llama")),
    "our label alone": lambda n: a_hostile_pod(n, labels=OURS),
    "a controller of the model's name": lambda n: a_hostile_pod(
        n, account="llama", labels=labelled("llama"), ownerReferences=replica_set("llama")
    ),
    "large labels": lambda n: a_hostile_pod(
        n, labels=labelled("llama", **{f"l{n}-{at}": "v" * 63 for at in range(50)})
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_pods_take_a_bounded_number_of_bytes(shape: str) -> None:
    store = Store(Configuration())
    store.put({**a_model(), "metadata": {**a_model()["metadata"], "uid": "uid-m", "resourceVersion": "2"}})
    with traced_memory() as memory_use:
        for number in range(PODS):
            store.put(SHAPES[shape](number))
        bytes_held, _ = memory_use()
    assert bytes_held < OF_ALL, f"{bytes_held / MEBIBYTE:.1f} MiB are kept"
    snapshot = store.snapshot((NAMESPACE, "llama"))
    assert snapshot is not None
    assert len(json.dumps(snapshot.pods)) < OF_ONE


@pytest.mark.parametrize("shape", ["the label of one model", "the account of one model", "large labels"])
def test_what_there_is_no_room_for_is_said_and_forgotten_once_it_is_gone(shape: str) -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            before = ready(cluster)
            for number in range(PODS // 10):
                cluster.put(small(SHAPES[shape](number)))
            await rest()
            shown = condition(cluster, "ImagesPinned")
            assert (shown["status"], shown["reason"]) == ("False", "NotAsRendered")
            write_count = len(cluster.writes)
            for number in range(PODS // 10, PODS // 5):
                cluster.put(small(SHAPES[shape](number)))
            await rest()
            assert len(cluster.writes) == write_count, "more of the same is no news"
            for number in range(PODS // 5):
                cluster.remove("Pod", NAMESPACE, f"p{number}")
            await rest(3 * RESYNC_SECONDS)
            assert condition(cluster, "ImagesPinned")["status"] == "True"
            assert ready(cluster)["reason"] == before["reason"]

    virtually(scenario)


def small(pod: Manifest) -> Manifest:
    """The cluster in memory copies each object a few times."""
    pod["spec"]["containers"] = [{"name": "engine", "image": "x"}]
    pod["spec"].pop("initContainers")
    pod["status"] = {"phase": "Running"}
    for name in ("uid", "resourceVersion"):
        pod["metadata"].pop(name)
    return pod


@pytest.mark.parametrize("shape", SHAPES)
def test_pods_of_the_deployment_are_kept_whatever_strangers_fill(shape: str) -> None:
    store = Store(Configuration())
    for number in range(500):
        store.put(SHAPES[shape](number))
    own = small(a_hostile_pod(1, account="phi", labels=labelled("phi"), ownerReferences=replica_set("phi")))
    own["metadata"] |= {"name": "phi-1", "uid": "own", "resourceVersion": "90000"}
    phi = a_model("phi")
    phi["metadata"] |= {"uid": "uid-phi", "resourceVersion": "89999"}
    store.put(phi)
    assert (NAMESPACE, "phi") in store.put(own)
    snapshot = store.snapshot((NAMESPACE, "phi"))
    assert snapshot is not None
    assert [pod["metadata"]["name"] for pod in snapshot.pods] == ["phi-1"]
    assert not snapshot.pods_truncated


def test_what_one_namespace_fills_leaves_room_for_those_of_another() -> None:
    """A pod of a tenant's debugging is kept and named, whatever another tenant filled before and afterwards."""
    store = Store(Configuration())
    store.put({**a_model(), "metadata": {**a_model()["metadata"], "uid": "uid-m", "resourceVersion": "2"}})
    for number in range(1_000):
        if number == 500:
            debugging = small(a_hostile_pod(1, labels=labelled("llama")))
            debugging["metadata"] |= {"name": "debugging", "uid": "d", "resourceVersion": "90000"}
            store.put(debugging)
        elsewhere = SHAPES["the label of another model each"](number)
        elsewhere["metadata"]["namespace"] = "evil"
        store.put(elsewhere)
    snapshot = store.snapshot((NAMESPACE, "llama"))
    assert snapshot is not None
    assert [pod["metadata"]["name"] for pod in snapshot.pods] == ["debugging"]
    assert not snapshot.pods_truncated


@pytest.mark.parametrize("seed", range(5))
def test_rendered_pods_of_every_namespace_share_the_room_fairly(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order of news: who takes little has all of it, who takes most gives way, and is said to have more."""
    monkeypatch.setattr(pod_bounds, "OWN", MEBIBYTE)
    monkeypatch.setattr(pod_bounds, "FOREIGN_BYTES", 0)
    store, chosen = Store(Configuration()), random.Random(seed)
    model_keys = [("small", number) for number in range(20)] + [("evil", number) for number in range(1_500)]
    chosen.shuffle(model_keys)
    versions = {pod: str(at + 10) for at, pod in enumerate(model_keys)}
    for namespace, number in model_keys:
        store.put(an_own_pod(namespace, number, versions[namespace, number]))
    for namespace, name in (("small", "m0"), *(("evil", f"m{at}") for at in range(10))):
        store.put(
            {
                "kind": "ModelDeployment",
                "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}{name}", "resourceVersion": "5"},
            }
        )
    snapshot = store.snapshot(("small", "m0"))
    assert snapshot is not None
    assert not snapshot.pods_truncated
    assert len(snapshot.pods) == 20
    snapshots = [store.snapshot(("evil", f"m{at}")) for at in range(10)]
    assert any(model_snapshot is not None and model_snapshot.pods_truncated for model_snapshot in snapshots)
    pods_in_memory = (
        pod for model_snapshot in (snapshot, *snapshots) if model_snapshot is not None for pod in model_snapshot.pods
    )
    assert sum(len(json.dumps(pod)) for pod in pods_in_memory) <= MEBIBYTE


def an_own_pod(namespace: str, number: int, version: str) -> Manifest:
    model = "m0" if namespace == "small" else f"m{number % 10}"
    pod = small(a_hostile_pod(number, account=model, labels=labelled(model), ownerReferences=replica_set(model)))
    pod["metadata"] |= {"namespace": namespace, "uid": f"{namespace}-{number}", "resourceVersion": version}
    return pod


def test_many_crowded_models_of_one_namespace_crowd_none_of_another() -> None:
    store = Store(Configuration())
    for number in range(12_000):
        elsewhere = small(SHAPES["the label of another model each"](number))
        elsewhere["metadata"] |= {"namespace": "evil", "uid": f"u-{number}", "resourceVersion": str(number + 10)}
        store.put(elsewhere)
    for number in range(20):
        store.put(SHAPES["the label of one model"](number))
    phi = a_model("phi")
    phi["metadata"] |= {"uid": "uid-phi", "resourceVersion": "5"}
    store.put(phi)
    snapshot = store.snapshot((NAMESPACE, "phi"))
    assert snapshot is not None
    assert not snapshot.pods_truncated


def test_a_pod_that_no_longer_fits_is_forgotten_with_what_was_kept_of_it() -> None:
    store = Store(Configuration())
    with traced_memory() as memory_use:
        for turn in range(2):
            of_each = [SHAPES["the label of another model each"](number) for number in range(200)]
            for pod in of_each:
                pod["metadata"]["resourceVersion"] = str(2 * turn + 10)
                store.put(pod)
            most, _ = memory_use()
            for pod in of_each:
                pod["metadata"]["resourceVersion"] = str(2 * turn + 11)
                store.drop(pod)
            del of_each, pod
        bytes_held, _ = memory_use()
    # what stays are the versions at which they were deleted
    assert bytes_held < most / 4, f"{bytes_held} bytes are kept of {most}"


def test_evicted_pods_by_the_thousand_crowd_nothing() -> None:
    store = Store(Configuration())
    for number in range(5_000):
        evicted = SHAPES["a controller of the model's name"](number)
        evicted["status"] = {"phase": "Failed", "reason": "Evicted", "message": TEXT}
        store.put(evicted)
    store.put({**a_model(), "metadata": {**a_model()["metadata"], "uid": "uid-m", "resourceVersion": "2"}})
    snapshot = store.snapshot((NAMESPACE, "llama"))
    assert snapshot is not None
    assert not snapshot.pods_truncated
