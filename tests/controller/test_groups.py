"""Models of several nodes by the whole operator, in memory: what is written, in which order, and after which events."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.controller.running import NAMESPACE, a_model, ready, rest, running, where
from tests.fakes.cluster_in_memory import ClusterInMemory, Manifest
from tests.fakes.virtual_loop import virtually

NAME = "llama-group-{}"
RANK = "apps.kubernetes.io/pod-index"
STATEFUL_SET = "StatefulSet"
SECONDS_OF_A_START = 3.0


def a_group_model(**spec: Any) -> Manifest:
    return a_model(**{"accelerator": {"count": 8, "nodes": 2}, "endpoint": {}, **spec})


def give_address(manifest: Manifest) -> None:
    """The API server gives a Service its cluster IP as it creates it."""
    if manifest["kind"] == "Service":
        manifest["spec"].setdefault("clusterIP", "10.0.0.7")


@contextlib.asynccontextmanager
async def controllers(cluster: ClusterInMemory) -> AsyncIterator[None]:
    """The pods of StatefulSets and their kubelets, as long as the scenario goes on."""
    task = asyncio.ensure_future(_control(cluster))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _control(cluster: ClusterInMemory) -> None:
    tasks: list[asyncio.Future[None]] = []
    while True:
        for stateful_set in cluster.of_kind(STATEFUL_SET):
            _scale(cluster, stateful_set, tasks)
        await asyncio.sleep(0.2)


def _at(manifest: Manifest) -> tuple[str, str, str]:
    return (manifest["kind"], manifest["metadata"]["namespace"], manifest["metadata"]["name"])


def _scale(cluster: ClusterInMemory, stateful_set: Manifest, tasks: list[asyncio.Future[None]]) -> None:
    name, count = stateful_set["metadata"]["name"], stateful_set["spec"]["replicas"]
    pods = {pod["metadata"]["name"]: pod for pod in pods_of(cluster, name)}
    for pod in pods.values():
        if int(pod["metadata"]["labels"][RANK]) >= count:
            cluster.remove(*_at(pod))
    new_pods = [cluster.put(_pod(stateful_set, rank)) for rank in range(count) if f"{name}-{rank}" not in pods]
    tasks.extend(asyncio.ensure_future(_run(cluster, pod)) for pod in new_pods)
    left = list(pods_of(cluster, name))
    counts = {"replicas": len(left), "readyReplicas": sum(map(_is_ready, left))}
    observed = {"observedGeneration": stateful_set["metadata"]["generation"], **counts}
    if stateful_set.get("status") != observed:
        cluster.edit(_at(stateful_set), lambda live: live.update(status=observed))


def _pod(stateful_set: Manifest, rank: int) -> Manifest:
    template = copy.deepcopy(stateful_set["spec"]["template"])
    name = f"{stateful_set['metadata']['name']}-{rank}"
    controller = {"kind": STATEFUL_SET, "name": stateful_set["metadata"]["name"], "uid": "u", "controller": True}
    labels = {**template["metadata"]["labels"], RANK: str(rank)}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels, "ownerReferences": [controller]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**template["spec"], "nodeName": f"node-{rank}"},
        "status": {"phase": "Pending"},
    }


async def _run(cluster: ClusterInMemory, pod: Manifest) -> None:
    for seconds, is_ready in ((1.0, False), (SECONDS_OF_A_START, True)):
        await asyncio.sleep(seconds)
        live = cluster.objects.get(_at(pod))
        if live is None or live["metadata"]["uid"] != pod["metadata"]["uid"]:
            return
        cluster.edit(_at(pod), lambda item, is_ready=is_ready: item.update(status=_running(is_ready=is_ready)))


def _running(*, is_ready: bool) -> Manifest:
    engine = {"name": "engine", "state": {"running": {"startedAt": "2026-11-21T12:00:00Z"}}, "started": is_ready}
    conditions = [{"type": "Ready", "status": str(is_ready), "lastTransitionTime": "2026-11-21T12:00:00Z"}]
    return {"phase": "Running", "containerStatuses": [engine], "conditions": conditions}


def _is_ready(pod: Manifest) -> bool:
    return any(item["status"] == "True" for item in pod["status"].get("conditions", ()))


def pods_of(cluster: ClusterInMemory, name: str) -> list[Manifest]:
    return [pod for pod in cluster.of_kind("Pod") if pod["metadata"]["ownerReferences"][0]["name"] == name]


def fail(pod: Manifest) -> None:
    ended = {"exitCode": 139, "startedAt": "2026-11-21T12:00:00Z", "finishedAt": "2026-11-21T12:01:00Z"}
    pod["status"]["containerStatuses"][0] |= {"restartCount": 1, "lastState": {"terminated": ended}}


def writes(cluster: ClusterInMemory) -> list[str]:
    return [kind for verb, (kind, _, _) in cluster.writes if verb == "patch"]


KILLS: dict[str, Callable[[ClusterInMemory], object]] = {
    "its engine ends": lambda cluster: cluster.edit(where("Pod", "llama-group-0-1"), fail),
    "it is deleted": lambda cluster: cluster.edit(
        where("Pod", "llama-group-0-1"),
        lambda pod: pod["metadata"].update(deletionTimestamp="2026-11-21T12:01:00Z"),
    ),
}


def test_group_is_written_after_its_network_policy_and_its_service() -> None:
    cluster = ClusterInMemory(admit=give_address)

    async def scenario() -> None:
        async with running(cluster, reflectors=True), controllers(cluster):
            cluster.put(a_group_model())
            await rest(15)

    virtually(scenario)
    order = writes(cluster)
    assert order.count(STATEFUL_SET) == 1
    assert order.index(STATEFUL_SET) == len(order) - 1
    assert order.count("NetworkPolicy") == order.count("Service") == 2
    assert ready(cluster)["status"] == "True"
    statuses = sum(verb == "patch status" for verb, _ in cluster.writes)
    assert len(order) + statuses <= 9, "as many as a model of one node has, and two for the group"


@pytest.mark.parametrize("kill", KILLS.values(), ids=list(KILLS))
def test_member_that_dies_restarts_its_group_once(kill: Callable[[ClusterInMemory], object]) -> None:
    cluster = ClusterInMemory(admit=give_address)

    async def scenario() -> None:
        async with running(cluster, reflectors=True), controllers(cluster):
            cluster.put(a_group_model())
            await rest(15)
            before = {pod["metadata"]["uid"] for pod in pods_of(cluster, NAME.format(0))}
            written = len(writes(cluster))
            kill(cluster)
            await rest(30)
            assert writes(cluster)[written:] == [STATEFUL_SET] * 2, "a stop and a start"
            assert not before & {pod["metadata"]["uid"] for pod in pods_of(cluster, NAME.format(0))}
            await rest(60)
            assert writes(cluster)[written:] == [STATEFUL_SET] * 2

    virtually(scenario)
    assert ready(cluster)["status"] == "True"
    model = cluster.objects[where("ModelDeployment")]
    assert model["status"]["groups"] == [{"name": "llama-group-0", "state": "Serving", "pods": "2/2", "restarts": 1}]


def test_operator_that_starts_again_writes_nothing_and_remembers_the_restarts() -> None:
    cluster = ClusterInMemory(admit=give_address)

    async def scenario() -> None:
        async with controllers(cluster):
            async with running(cluster, reflectors=True):
                cluster.put(a_group_model(replicas=2))
                await rest(30)
                cluster.edit(where("Pod", "llama-group-1-0"), fail)
                await rest(40)
            written = len(cluster.writes)
            async with running(cluster, reflectors=True):
                await rest(30)
                assert len(cluster.writes) == written
                cluster.edit(where("Pod", "llama-group-1-0"), fail)
                await rest(60)

    virtually(scenario)
    groups = cluster.objects[where("ModelDeployment")]["status"]["groups"]
    assert [group["restarts"] for group in groups] == [0, 2]


def test_service_of_a_group_that_others_delete_comes_back_and_its_group_follows_the_new_address() -> None:
    cluster = ClusterInMemory(admit=give_address)

    async def scenario() -> None:
        async with running(cluster, reflectors=True), controllers(cluster):
            cluster.put(a_group_model())
            await rest(15)
            cluster.remove(*where("Service", NAME.format(0)))
            await rest(40)

    virtually(scenario)
    assert where("Service", NAME.format(0)) in cluster.objects
    assert ready(cluster)["status"] == "True"
