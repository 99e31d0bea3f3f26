"""A cluster with groups as a model of it: the operator's plans, a controller of StatefulSets, a scheduler and kubelets.

Pure: every part acts only when a test says so. Pods are kept as the store keeps them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hermetic.api.times import timestamp
from hermetic.engines.launch import RANK_LABEL
from hermetic.kube.projections import lean_pod
from hermetic.objects.groups import group_index
from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot, IsolationEvidence
from hermetic.plan.status import status
from hermetic.plan.writes import Plan
from tests.scenarios import Manifest, a_baked_model, changed
from tests.snapshots import NOW, a_snapshot, carried_out, evidence, owner_of, spec_of

STATEFUL_SET = "StatefulSet"
RUNNING: dict[str, Any] = {"phase": "Running"}


def a_group_model(name: str = "llama", *, nodes: int = 2, **spec: Any) -> Manifest:
    """A model of several nodes, without a share: the pods need no volume."""
    return a_baked_model(name, accelerator={"count": 8, "nodes": nodes}, **spec)


@dataclass
class GroupWorld:
    """One model of groups and the cluster around it. `pods` by name; `writes`: (name, replicas, mark) of each write."""

    manifest: Manifest
    now: datetime = NOW
    evidence: IsolationEvidence = field(default_factory=evidence)
    snapshot: ClusterSnapshot = field(init=False)
    pods: dict[str, Manifest] = field(default_factory=dict)
    writes: list[tuple[str, int, str]] = field(default_factory=list)
    on_write: Callable[[GroupWorld, Manifest], None] = lambda _world, _manifest: None
    _serial: int = 0

    def __post_init__(self) -> None:
        self.snapshot = a_snapshot(owner_of(self.manifest), evidence=self.evidence)

    # ------------------------------------------------------------------ the operator

    def planned(self) -> Plan:
        return plan(spec_of(self.manifest), self.seen(), self.now)

    def reconciled(self) -> Plan:
        """One pass of the operator; the API server takes all writes of the first wave that has any."""
        decided = self.planned()
        waves = [change for change in decided.apply if change.manifest["kind"] != STATEFUL_SET] or list(decided.apply)
        for change in waves:
            if change.manifest["kind"] == STATEFUL_SET:
                self.on_write(self, dict(change.manifest))
                name, count = change.manifest["metadata"]["name"], change.manifest["spec"]["replicas"]
                self.writes.append((name, count, mark_of(change.manifest)))
        self.snapshot = carried_out(self.snapshot, replace(decided, apply=tuple(waves), delete=()))
        for (kind, name), child in self.snapshot.children.items():
            if kind == "Service" and group_index(name, self.snapshot.owner.name) is not None:
                child["spec"]["clusterIP"] = f"10.0.0.{10 + (group_index(name, self.snapshot.owner.name) or 0)}"
            if kind == "Service" and name == self.snapshot.owner.name:
                child["status"] = {"loadBalancer": {"ingress": [{"ip": "10.13.76.40"}]}}
        return decided

    def seen(self) -> ClusterSnapshot:
        confirmed = replace(self.evidence, confirmed_at=self.now if self.evidence.verdict == "Pass" else None)
        pods = tuple(lean_pod(pod) for _, pod in sorted(self.pods.items()))
        return replace(self.snapshot, pods=pods, evidence=confirmed)

    def status(self) -> dict[str, Any]:
        return status(spec_of(self.manifest), self.seen(), self.planned(), (), self.now)

    def group(self, index: int = 0) -> dict[str, Any]:
        """The item of `status.groups` with this index."""
        name = f"{self.snapshot.owner.name}-group-{index}"
        return next((group for group in self.status()["groups"] if group["name"] == name), {})

    # ------------------------------------------------------------------ the controller of StatefulSets

    def sets(self) -> Iterator[Manifest]:
        yield from (child for (kind, _), child in sorted(self.snapshot.children.items()) if kind == STATEFUL_SET)

    def controlled(self) -> None:
        """Every StatefulSet gets the pods that it asks for, and reports them."""
        for stateful_set in self.sets():
            name, count = stateful_set["metadata"]["name"], stateful_set["spec"]["replicas"]
            for rank in range(count):
                if f"{name}-{rank}" not in self.pods:
                    self._make(stateful_set, rank)
            for pod in self.members(name):
                if int(pod["metadata"]["labels"][RANK_LABEL]) >= count:
                    self.deleted(pod["metadata"]["name"])
            self._report(stateful_set)

    def _report(self, stateful_set: Manifest) -> None:
        pods = list(self.members(stateful_set["metadata"]["name"]))
        stateful_set["status"] = {
            "observedGeneration": stateful_set["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": sum(is_ready(pod) for pod in pods),
        }

    def _make(self, stateful_set: Manifest, rank: int) -> None:
        name, template = stateful_set["metadata"]["name"], copy.deepcopy(stateful_set["spec"]["template"])
        self._serial += 1
        labels = {**template["metadata"]["labels"], RANK_LABEL: str(rank)}
        controller = {"kind": STATEFUL_SET, "name": name, "controller": True}
        self.pods[f"{name}-{rank}"] = {
            "metadata": {
                "name": f"{name}-{rank}",
                "namespace": self.snapshot.owner.namespace,
                "uid": f"pod-{self._serial}",
                "labels": labels,
                "creationTimestamp": timestamp(self.now),
                "ownerReferences": [controller],
            },
            "spec": template["spec"],
            "status": {"phase": "Pending"},
        }

    def members(self, name: str) -> Iterator[Manifest]:
        yield from (
            pod for _, pod in sorted(self.pods.items()) if pod["metadata"]["ownerReferences"][0]["name"] == name
        )

    # ------------------------------------------------------------------ scheduler, kubelets, people

    def deleted(self, name: str) -> None:
        """Somebody deletes the pod: it ends once its kubelet has ended it."""
        self.pods[name]["metadata"].setdefault("deletionTimestamp", timestamp(self.now))

    def ended(self, name: str) -> None:
        """The kubelet has ended a pod that is being deleted."""
        del self.pods[name]

    def removed(self, name: str) -> None:
        """Somebody deletes a StatefulSet: the garbage collector deletes its pods."""
        children = {key: child for key, child in self.snapshot.children.items() if key != (STATEFUL_SET, name)}
        self.snapshot = replace(self.snapshot, children=children)
        for pod in list(self.members(name)):
            self.deleted(pod["metadata"]["name"])

    def planted(self, kind: str, name: str, *, is_owned: bool) -> None:
        """A tenant makes an object with the name and the labels of one of the model, which runs pods of theirs."""
        owned = copy.deepcopy(self.snapshot.children["NetworkPolicy", self.snapshot.owner.name]["metadata"])
        metadata = {**owned, "name": name, "uid": "of-a-tenant", "creationTimestamp": timestamp(NOW)}
        if not is_owned:
            del metadata["ownerReferences"]
        counts = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
        planted = {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": metadata,
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
            },
            "status": {"observedGeneration": 99, **dict.fromkeys(counts, 2)},
        }
        self.snapshot = replace(self.snapshot, children={**self.snapshot.children, (kind, name): planted})

    def placed(self, name: str) -> None:
        pod = self.pods[name]
        pod["spec"]["nodeName"] = f"gpu-{pod['metadata']['labels'][RANK_LABEL]}"

    def begun(self, name: str) -> None:
        """The engine's container starts."""
        self.pods[name]["status"] = {
            "phase": "Running",
            "containerStatuses": [{"name": "engine", "state": {"running": {"startedAt": timestamp(self.now)}}}],
        }

    def ready(self, name: str) -> None:
        pod_status = self.pods[name]["status"]
        pod_status["containerStatuses"][0]["started"] = True
        since = {"lastTransitionTime": timestamp(self.now)}
        pod_status["conditions"] = [{"type": "Ready", "status": "True", **since}]

    def failed(self, name: str, *, code: int = 1, message: str = "") -> None:
        """The engine ends, and the kubelet starts it again."""
        pod_status = self.pods[name]["status"]
        engine = pod_status["containerStatuses"][0]
        began = engine["state"]["running"]["startedAt"]
        ended = {"exitCode": code, "startedAt": began, "finishedAt": timestamp(self.now), "message": message}
        engine |= {"lastState": {"terminated": ended}, "restartCount": 1, "started": False}
        pod_status["conditions"] = [{"type": "Ready", "status": "False", "lastTransitionTime": timestamp(self.now)}]

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def change(self, **spec: Any) -> None:
        """Another user changes the spec."""
        self.manifest = changed(self.manifest, **spec)
        self.snapshot = replace(self.snapshot, generation=self.snapshot.generation + 1)

    # ------------------------------------------------------------------ all of them

    def cluster_works(self, *, nodes: bool = True) -> None:
        """Whatever parts but the operator can do at once; without `nodes` no pod is placed."""
        for name, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"]:
                self.ended(name)
        self.controlled()
        for name, pod in self.pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                continue
            if nodes and "nodeName" not in pod["spec"]:
                self.placed(name)
            if "nodeName" in pod["spec"] and pod["status"]["phase"] == "Pending":
                self.begun(name)
            if pod["status"]["phase"] == "Running" and not pod["status"].get("conditions"):
                self.ready(name)
        for stateful_set in self.sets():
            self._report(stateful_set)

    def settle(self, rounds: int = 60, *, seconds: float = 15) -> int:
        """Let everything work until the operator has nothing to write and all is served; returns the rounds."""
        for number in range(rounds):
            wrote = bool(self.reconciled().apply)
            self.cluster_works()
            self.passes(seconds)
            if not wrote and not self.planned().apply and self.serves():
                return number
        raise AssertionError(f"not settled after {rounds} rounds: {self.status()['groups']}")

    def serves(self) -> bool:
        """Whether every group that the spec asks for serves, with the template of the spec, and nothing else runs."""
        replicas, nodes = self.manifest["spec"].get("replicas", 1), self.manifest["spec"]["accelerator"]["nodes"]
        serving = [item for item in self.sets() if item["spec"]["replicas"] == nodes]
        return (
            len(serving) == replicas and len(self.pods) == replicas * nodes and all(map(is_ready, self.pods.values()))
        )


def is_ready(pod: Manifest) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return "deletionTimestamp" not in pod["metadata"] and any(item["status"] == "True" for item in conditions)


def mark_of(stateful_set: Manifest) -> str:
    return str(stateful_set["spec"]["template"]["metadata"]["labels"][TEMPLATE_LABEL])


def a_serving_world(**model: Any) -> GroupWorld:
    """A model whose groups serve."""
    world = GroupWorld(a_group_model(**model))
    world.settle()
    world.writes.clear()
    return world
