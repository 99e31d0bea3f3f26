"""Schedules of faults around a gate that closes: pods that wait, late nodes, lost writes, operators that are killed.

The plan, the moment in the Lease and the names in it are the product's. Stood in for are the controllers: a ReplicaSet
that deletes pods without a node first, then pods that have not started (kubernetes: pkg/controller/controller_utils.go,
`ActivePodsWithRanks`), a scheduler, a kubelet, and the policies of manifests/policies/pod-gate.yaml, which
tests/controlplane/test_binding_gate.py compares with a real API server. Time passes in steps of one second.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hermetic.kube.projections import lean_pod
from hermetic.plan.planning import plan
from hermetic.plan.pod_gate import enforced_models, pods_until
from hermetic.plan.snapshot import ClusterSnapshot
from tests.planning import running
from tests.scenarios import Manifest, a_baked_model
from tests.schedules.schedule import Ended
from tests.snapshots import NOW, carried_out, evidence, serving, spec_of

PROMISED_SECONDS = 10
"""After so many seconds of a closed gate with a running operator no pod starts (docs/security.md)."""
CONFIRMED_SECONDS = 900
"""For so long a verdict counts that no operator evaluates again."""
REPLICAS = 4
MODEL: Manifest = a_baked_model("llama", replicas=REPLICAS)


@dataclass
class Pod:
    """A pod of the model. `starts_in`: seconds from its node to its engine."""

    name: str
    starts_in: int
    has_node: bool = False
    is_started: bool = False


@dataclass
class ClosedGate:
    """One cluster in which the gate closes at second `closes_at`, by a Fail or because the evidence ends."""

    seed: int
    second: int = 0
    is_alive: bool = True
    evaluated_at: int | None = None
    is_fail_observed: bool = False
    until: str = ""
    names: str = ""
    nodes: int = 1
    healthy_seconds: int = 0
    made: int = 0
    planned: object = None
    pods: list[Pod] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    faults_injected: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"closed gate {self.seed}")
        self.closes_at = self.chance.randint(5, 40)
        self.by_fail = self.chance.random() < 0.5
        self.trouble = self.chance.choice([0.0, 0.1, 0.4])
        self.snapshot = running(MODEL, 0)

    @property
    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.second)

    def live(self, seconds: int) -> Ended:
        """Let so many seconds pass."""
        for _ in range(seconds):
            self.second += 1
            self._befall()
            if self.is_alive:
                self._operate()
            self._replicate()
            self._schedule()
            self._start()
            is_closed = self.second >= self.closes_at
            self.healthy_seconds = self.healthy_seconds + 1 if is_closed and self.is_alive and not self.trouble else 0
        return Ended(tuple(self.wrong), self.faults_injected)

    # ------------------------------------------------------------------ what befalls it

    def _befall(self) -> None:
        draw = self.chance.random()
        if draw < 0.03:
            self._count("operator killed" if self.is_alive else "operator started")
            self.is_alive, self.evaluated_at, self.is_fail_observed = not self.is_alive, None, False
        elif draw < 0.06:
            self._count("node added")
            self.nodes += 1
        elif draw < 0.09:
            self._count("network better or worse")
            self.trouble = self.chance.choice([0.0, 0.1, 0.4])

    def _is_lost(self) -> bool:
        if self.chance.random() < self.trouble:
            self._count("write lost")
            return True
        return False

    def _count(self, fault: str) -> None:
        self.faults_injected[fault] += 1

    # ------------------------------------------------------------------ the operator

    def _operate(self) -> None:
        """Evaluate, renew the Lease, and plan, as a process does within a second where nothing is lost."""
        if not self._is_lost():
            self.is_fail_observed = self.by_fail and self.second >= self.closes_at
            self.evaluated_at = self.second
        if self.evaluated_at is None:
            return  # a Pass of an earlier process opens nothing, and the Lease stays as it is
        evaluated = self._evidence()
        policy = self.snapshot.policy
        until = pods_until(policy, evaluated, self.now)
        if not self._is_lost():
            self.until = until
            self.names = enforced_models(policy, [(self.snapshot.owner.namespace, "llama", "Enforce")])
        basis = (bool(until), id(self.snapshot), [(pod.name, pod.has_node, pod.is_started) for pod in self.pods])
        if basis == self.planned:
            return  # the plan had nothing to apply
        decided = plan(spec_of(MODEL), replace(self._observed(), evidence=evaluated), self.now)
        if decided.apply and not self._is_lost():
            self.snapshot = carried_out(self.snapshot, decided)
        self.planned = basis if not decided.apply else None

    def _evidence(self) -> Any:
        confirmed_at = NOW + timedelta(seconds=self.evaluated_at or 0)
        expires_at = NOW + timedelta(seconds=self.closes_at if not self.by_fail else 86_000)
        verdict = "Fail" if self.is_fail_observed else "Pass"
        return evidence(verdict, expires_at=expires_at, confirmed_at=confirmed_at)

    def _observed(self) -> ClusterSnapshot:
        started = sum(pod.is_started for pod in self.pods)
        template = self.snapshot.workload.template
        pods = tuple(_as_stored(pod, self.snapshot, template) for pod in self.pods)
        return replace(
            serving(self.snapshot, started, replicas=len(self.pods), updatedReplicas=len(self.pods)), pods=pods
        )

    # ------------------------------------------------------------------ the cluster

    @property
    def _is_admitted(self) -> bool:
        return bool(self.until) and self.now < datetime.fromisoformat(self.until)

    def _replicate(self) -> None:
        replicas = self.snapshot.workload.replicas
        ranked = sorted(self.pods, key=lambda pod: (pod.has_node, pod.is_started))
        for pod in ranked[: max(0, len(ranked) - replicas)]:
            self.nodes += pod.has_node
            self.pods.remove(pod)
        while len(self.pods) < replicas and self._is_admitted:
            self.made += 1
            self.pods.append(Pod(f"llama-5d9c-{self.made}", self.chance.choice([0, 2, 8, 60])))

    def _schedule(self) -> None:
        is_named = f"{self.snapshot.owner.namespace}/llama" in self.names.split(",")
        for pod in self.pods:
            if pod.has_node or not self.nodes or (is_named and not self._is_admitted):
                continue
            pod.has_node, self.nodes = True, self.nodes - 1
            if not self.by_fail and self.second >= self.closes_at:
                self.wrong.append(
                    f"{pod.name} was given a node {self.second - self.closes_at} s after the evidence ended"
                )
            if self.second >= self.closes_at + CONFIRMED_SECONDS:
                self.wrong.append(f"{pod.name} was given a node {self.second - self.closes_at} s after the Fail")

    def _start(self) -> None:
        for pod in self.pods:
            if not pod.has_node or pod.is_started:
                continue
            pod.starts_in -= 1
            if pod.starts_in >= 0:
                continue
            pod.is_started = True
            if self.healthy_seconds >= PROMISED_SECONDS:
                self.wrong.append(
                    f"{pod.name} started after {self.healthy_seconds} s of a closed gate with an operator"
                )


def _as_stored(pod: Pod, snapshot: ClusterSnapshot, template: Mapping[str, Any]) -> Manifest:
    owners = [{"kind": "ReplicaSet", "name": f"{snapshot.owner.name}-5d9c", "controller": True}]
    metadata = {"name": pod.name, "uid": pod.name, "labels": template["metadata"]["labels"], "ownerReferences": owners}
    phase = "Running" if pod.is_started else "Pending"
    return lean_pod({"metadata": metadata, "spec": template["spec"], "status": {"phase": phase}})


def closed_gate(seed: int) -> Ended:
    """Live through the schedule of this seed: two minutes, or, where no operator is left, until no verdict counts."""
    world = ClosedGate(seed)
    ended = world.live(120)
    if world.is_alive:
        return ended
    world.second += CONFIRMED_SECONDS
    return world.live(30)
