"""A faulty cluster in which replicas of several nodes run: StatefulSets, a scheduler, kubelets, and engines that meet.

The StatefulSet controller makes and removes pods as `podManagementPolicy: Parallel` and `updateStrategy: OnDelete` do
(kubernetes: pkg/controller/statefulset/stateful_set_control.go): every ordinal that lacks a pod gets one of the newest
template, and a pod that ended is made again. Engines behave as the stand-in (testbed/engine/stand_in/group.py): they
meet when all pods of a group wait for each other, and when a member dies the others hang, the head looking healthy.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import Any

from tests.fakes.clocks import START
from tests.fakes.cluster_in_memory import Coordinates, Manifest
from tests.schedules.faulty_cluster import FaultyCluster

RESOURCE = "nvidia.com/gpu"
INDEX = "apps.kubernetes.io/pod-index"
REVISION = "controller-revision-hash"
SECONDS = 1.0


class Phase(Enum):
    """The engine of one pod."""

    STARTING = "starting"
    JOINING = "joining"
    LOADING = "loading"
    SERVING = "serving"
    HUNG = "hung"


@dataclass
class Engine:
    """The engine of one pod; it is another one after each restart of its container. Moments are of the loop's time."""

    ready_to_join: float
    phase: Phase = Phase.STARTING
    loaded_at: float = 0.0
    restarts: int = 0


class GroupCluster(FaultyCluster):
    """`nodes`: so many have GPUs, for one pod each."""

    def __init__(self, seed: int, nodes: int) -> None:
        super().__init__(seed)
        self.engines: dict[str, Engine] = {}
        self.addresses = self.phases_changed = 0
        self.admit = self._with_address
        for number in range(nodes):
            self.add_node(number)

    # ------------------------------------------------------------------ what tests and schedules do

    def add_node(self, number: int) -> None:
        """A node with room for one pod."""
        allocatable = {RESOURCE: "1", "cpu": "96", "memory": "880Gi", "ephemeral-storage": "900Gi", "pods": "110"}
        self.put(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"gpu-{number}", "labels": {"kubernetes.io/hostname": f"gpu-{number}"}},
                "spec": {},
                "status": {
                    "allocatable": allocatable,
                    "capacity": allocatable,
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )

    def remove_node(self, name: str) -> None:
        """The machine is gone, and its pods with it."""
        self.remove("Node", "", name)
        for pod in self.pods():
            if pod["spec"].get("nodeName") == name:
                self._end_engine(pod)
                self.remove("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])

    def kill_engine(self, pod: Manifest) -> None:
        """The container ends and is started again, as the kubelet does; whom it met hangs."""
        engine = self.engines.get(pod["metadata"]["uid"])
        if engine is None:
            return
        self._end_engine(pod)
        restarts = engine.restarts + 1
        again = Engine(self._now() + self.chance.uniform(1, 5), restarts=restarts)
        self.engines[pod["metadata"]["uid"]] = again
        self.phases_changed += 1
        self._write_pod(pod, lambda live: _restarted(live, restarts, self._stamp()))

    def delete_pod(self, pod: Manifest) -> None:
        """As an eviction does: the pod ends within its grace period."""
        if "deletionTimestamp" not in pod["metadata"]:
            self._write_pod(pod, lambda live: live["metadata"].update(deletionTimestamp=self._stamp()))

    def pods(self) -> list[Manifest]:
        return self.of_kind("Pod")

    def group_of(self, pod: Manifest) -> str:
        """The name of the StatefulSet."""
        return next((owner["name"] for owner in pod["metadata"].get("ownerReferences") or ()), "")

    def groups(self) -> Iterator[tuple[Manifest, list[Manifest]]]:
        """Every StatefulSet with its pods, by rank."""
        for workload in self.of_kind("StatefulSet"):
            uid = workload["metadata"]["uid"]
            owned = [pod for pod in self.pods() if _is_owned(pod, uid)]
            yield workload, sorted(owned, key=_rank)

    def phase_of(self, pod: Manifest) -> Phase:
        engine = self.engines.get(pod["metadata"]["uid"])
        return engine.phase if engine is not None else Phase.STARTING

    # ------------------------------------------------------------------ the cluster's own controllers

    async def control(self) -> None:
        """Garbage collector, volume controller and everything that runs pods, until cancelled."""
        await asyncio.gather(super().control(), self._run_pods())

    @property
    def changes(self) -> int:
        """How often an object or the phase of an engine has changed."""
        return len(self.happened) + self.phases_changed

    def _is_at_rest(self, changes: int) -> bool:
        """Whether nothing changed since then, and nothing is due by itself."""
        is_due = {Phase.STARTING, Phase.LOADING}
        starting = any(engine.phase in is_due for engine in self.engines.values())
        return changes == self.changes and not starting

    async def _run_pods(self) -> None:
        changes = -1
        while True:
            await asyncio.sleep(SECONDS)
            if self._is_at_rest(changes):
                continue
            changes = self.changes
            for workload, pods in list(self.groups()):
                self._replicate(workload, pods)
            self._schedule()
            for pod in self.pods():
                self._run(pod)
            for workload, pods in list(self.groups()):
                self._meet(pods, workload["spec"]["replicas"])
                self._report(workload, pods)

    def _creation_time(self) -> str:
        return self._stamp()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _stamp(self) -> str:
        try:
            seconds = self._now()
        except RuntimeError:
            seconds = 0.0
        return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _with_address(self, manifest: Manifest) -> None:
        """The API server gives every Service an address, and keeps it."""
        if manifest["kind"] == "Service" and "clusterIP" not in manifest["spec"]:
            self.addresses += 1
            manifest["spec"]["clusterIP"] = f"10.96.{self.addresses // 250}.{self.addresses % 250 + 1}"

    def _replicate(self, workload: Manifest, pods: list[Manifest]) -> None:
        replicas = int(workload["spec"]["replicas"])
        present = {_rank(pod): pod for pod in pods}
        for rank, pod in present.items():
            if rank >= replicas or (pod.get("status") or {}).get("phase") in {"Failed", "Succeeded"}:
                self.delete_pod(pod)
        for rank in range(replicas):
            name = (workload["metadata"]["namespace"], f"{workload['metadata']['name']}-{rank}")
            if rank not in present and ("Pod", *name) not in self.objects and not self.terminating:
                self.put(_pod_of(workload, rank))

    def _schedule(self) -> None:
        used_nodes = {pod["spec"].get("nodeName") for pod in self.pods()}
        free = [node["metadata"]["name"] for node in self.of_kind("Node") if node["metadata"]["name"] not in used_nodes]
        for pod in self.pods():
            if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
                continue
            if free:
                node = free.pop(0)
                self._write_pod(pod, partial(_bound, node=node, stamp=self._stamp()))
            elif not (pod.get("status") or {}).get("conditions"):
                self._write_pod(pod, lambda live: live.update(status=_unschedulable(self._stamp())))

    def _run(self, pod: Manifest) -> None:
        """The kubelet of one pod: it starts containers, and ends pods that are deleted."""
        uid, now = pod["metadata"]["uid"], self._now()
        if "deletionTimestamp" in pod["metadata"]:
            self.phases_changed += 1  # it ends by itself, sooner or later
            if self.chance.random() < 0.4:
                self._end_engine(pod)
                self.engines.pop(uid, None)
                self.remove("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
            return
        if not pod["spec"].get("nodeName"):
            return
        engine = self.engines.get(uid)
        if engine is None:
            self.phases_changed += 1
            self.engines[uid] = Engine(now + self.chance.choice([1, 3, 20]))
            return
        if engine.phase is Phase.STARTING and now >= engine.ready_to_join:
            self._enter(engine, Phase.JOINING)
            self._write_pod(pod, lambda live: _running(live, engine.restarts, self._stamp()))
            if _rank(pod) > 0:  # its probes are answered while its engine runs
                self._write_pod(pod, lambda live: _set_ready(live, "True", self._stamp()))

    def _meet(self, pods: list[Manifest], replicas: int) -> None:
        engines = [self.engines.get(pod["metadata"]["uid"]) for pod in pods]
        present = [engine for engine in engines if engine is not None]
        if len(present) != replicas or len(present) < 2:
            return
        if all(engine.phase is Phase.JOINING for engine in present):
            loaded_at = self._now() + self.chance.choice([2, 10, 60])
            for engine in present:
                engine.loaded_at = loaded_at
                self._enter(engine, Phase.LOADING)
        elif all(engine.phase is Phase.LOADING and self._now() >= engine.loaded_at for engine in present):
            for engine, pod in zip(present, pods, strict=True):
                self._enter(engine, Phase.SERVING)
                self._write_pod(pod, lambda live: _set_ready(live, "True", self._stamp()))

    def _end_engine(self, pod: Manifest) -> None:
        """Whom the engine met hangs from now on; a head among them still looks ready."""
        engine = self.engines.get(pod["metadata"]["uid"])
        if engine is None or engine.phase not in {Phase.LOADING, Phase.SERVING}:
            return
        for other in self.pods():
            peer = self.engines.get(other["metadata"]["uid"])
            is_peer = self.group_of(other) == self.group_of(pod) and peer is not engine
            if is_peer and peer is not None and peer.phase in {Phase.LOADING, Phase.SERVING}:
                self._enter(peer, Phase.HUNG)

    def _enter(self, engine: Engine, phase: Phase) -> None:
        engine.phase = phase
        self.phases_changed += 1

    def _report(self, workload: Manifest, pods: list[Manifest]) -> None:
        ready = sum(_is_ready(pod) for pod in pods)
        newest = revision(workload)
        status = {
            "observedGeneration": workload["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": sum(pod["metadata"]["labels"].get(REVISION) == newest for pod in pods),
            "updateRevision": newest,
        }
        if workload.get("status") != status:
            where = ("StatefulSet", workload["metadata"]["namespace"], workload["metadata"]["name"])
            self.edit(where, lambda live: live.update(status=status))

    def _write_pod(self, pod: Manifest, change: Any) -> None:
        where: Coordinates = ("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
        if where in self.objects and self.objects[where]["metadata"]["uid"] == pod["metadata"]["uid"]:
            self.edit(where, change)


def revision(workload: Manifest) -> str:
    """As the controller names a template: the name and a hash."""
    template = json.dumps(workload["spec"]["template"], sort_keys=True)
    return f"{workload['metadata']['name']}-{hashlib.sha256(template.encode()).hexdigest()[:10]}"


def _pod_of(workload: Manifest, rank: int) -> Manifest:
    template, metadata = copy.deepcopy(workload["spec"]["template"]), workload["metadata"]
    name = f"{metadata['name']}-{rank}"
    labels = {
        **(template["metadata"].get("labels") or {}),
        INDEX: str(rank),
        REVISION: revision(workload),
        "statefulset.kubernetes.io/pod-name": name,
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    stated = {"name": name, "namespace": metadata["namespace"], "labels": labels, "ownerReferences": [owner]}
    stated["annotations"] = template["metadata"].get("annotations") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": stated,
        "spec": template["spec"],
        "status": {"phase": "Pending"},
    }


def _rank(pod: Manifest) -> int:
    return int(pod["metadata"]["labels"].get(INDEX, -1))


def _is_owned(pod: Manifest, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or ())


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _bound(live: Manifest, node: str, stamp: str) -> None:
    live["spec"]["nodeName"] = node
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}]
    live["status"] = {"phase": "Pending", "conditions": conditions}


def _unschedulable(stamp: str) -> Manifest:
    message = f"0/4 nodes are available: 4 Insufficient {RESOURCE}."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [{**condition, "lastTransitionTime": stamp}]}


def _running(live: Manifest, restarts: int, stamp: str) -> None:
    """The containers run; the pod is not ready before its engine serves."""
    before = {status["name"]: status for status in live["status"].get("containerStatuses") or ()}
    engine = {**before.get("engine", {}), "name": "engine", "ready": False, "started": False, "restartCount": restarts}
    engine["state"] = {"running": {"startedAt": stamp}}
    scheduled = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}]
    live["status"] = {
        "phase": "Running",
        "startTime": stamp,
        "podIP": "10.244.0.7",
        "containerStatuses": [engine],
        "conditions": [*scheduled, {"type": "Ready", "status": "False", "lastTransitionTime": stamp}],
    }


def _restarted(live: Manifest, restarts: int, stamp: str) -> None:
    """What the kubelet writes when a container ended and is about to start again."""
    started = live["status"].get("startTime", stamp)
    ended = {"exitCode": 137, "reason": "Error", "startedAt": started, "finishedAt": stamp}
    _set_ready(live, "False", stamp)
    for status in live["status"].get("containerStatuses") or ():
        status.update(ready=False, started=False, restartCount=restarts)
        status["lastState"] = {"terminated": ended}
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}


def _set_ready(live: Manifest, status: str, stamp: str) -> None:
    for container in live["status"].get("containerStatuses") or ():
        container.update(ready=status == "True", started=True)
    conditions = [condition for condition in live["status"].get("conditions") or () if condition["type"] != "Ready"]
    live["status"]["conditions"] = [*conditions, {"type": "Ready", "status": status, "lastTransitionTime": stamp}]
