"""What waits when a gate closes: one model in a namespace of its own, in a situation that its seed draws.

And what others do to it behind the closed gate: `kubectl scale`, a HorizontalPodAutoscaler, a new spec.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from testbed.errors import ApiError
from tests.controlplane.deployments import Deployments, failing
from tests.controlplane.sealed_cluster import SealedCluster
from tests.scenarios import Manifest, a_baked_model
from tests.schedules.gate_records import MODEL

NAME = "llama"
UPDATE = "rolling update"
PULLS, VERIFIES = "slow-pull", "slow-verify"
"""Failure modes of kwok: the pod starts, after twelve seconds."""


@dataclass
class GateModel:
    """The model of one seed."""

    sealed: SealedCluster
    seed: int
    namespace: Deployments = field(init=False)
    situation: str = field(init=False)
    act: str = field(init=False)
    wanted: Manifest = field(init=False)

    def __post_init__(self) -> None:
        self.chance = _chance_of(self.seed)
        self.situation = self.chance.choice(sorted(SITUATIONS))
        self.act = self.chance.choice(sorted(ACTS))
        self.act_after = self.chance.uniform(0.0, 15.0)
        self.rollout = "Replace"
        self.namespace = self.sealed.namespace()

    @staticmethod
    def situation_of(seed: int) -> str:
        """The situation that this seed draws."""
        return _chance_of(seed).choice(sorted(SITUATIONS))

    def prepare(self) -> None:
        """Let serve what must serve before anything waits."""
        if self.situation == UPDATE:
            self.rollout = self.chance.choice(("Replace", "Surge"))
            self.apply(_a_model(replicas=2, rollout=self.rollout))
            self.namespace.wait("serving", self.is_served, timeout=PATIENCE_SECONDS)

    def begin(self) -> None:
        """Apply what waits when the gate closes."""
        SITUATIONS[self.situation](self)

    def has_pods(self) -> bool:
        """Whether a pod is there, of the former or of the present spec."""
        return bool(self.namespace.pods(NAME))

    def apply(self, manifest: Manifest) -> None:
        """Apply the spec, which is the one that is wanted from now on."""
        self.wanted = manifest
        self.namespace.apply(manifest)

    def disturb(self) -> None:
        """What others do to it while the gate is closed; the API server may refuse it."""
        with contextlib.suppress(ApiError):
            ACTS[self.act](self)

    def calm(self) -> None:
        """Take away what others added."""
        with contextlib.suppress(ApiError):
            self.namespace.api.delete(self._scaler)

    def is_served(self) -> bool:
        """Whether as many pods have started as the spec asks for, and no other is left."""
        pods = self.namespace.pods(NAME)
        started = [pod for pod in pods if pod["status"].get("phase") == "Running"]
        return len(pods) == len(started) == self.wanted["spec"]["replicas"]

    def exists(self) -> bool:
        """Whether its namespace is there, also one that ends."""
        name = self.namespace.namespace
        return any(item["metadata"]["name"] == name for item in self.sealed.api.get("/api/v1/namespaces")["items"])

    @property
    def _deployment(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace.namespace}/deployments/{NAME}"

    @property
    def _scaler(self) -> str:
        namespace = self.namespace.namespace
        return f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/theirs"

    # ------------------------------------------------------------------ situations

    def _wait_for_a_node(self) -> None:
        self.apply(_a_model(replicas=self._free_nodes() + self.chance.randint(1, 2)))

    def _pull(self) -> None:
        self.apply(failing(_a_model(replicas=self.chance.randint(1, 2)), PULLS))

    def _verify(self) -> None:
        self.apply(failing(_a_model(replicas=self.chance.randint(1, 2)), VERIFIES))

    def _update(self) -> None:
        mode = self.chance.choice((PULLS, VERIFIES))
        self.apply(failing(_a_model(replicas=2, rollout=self.rollout, drainSeconds=6), mode))

    def _free_nodes(self) -> int:
        """How many nodes have no pod of a model: each has one GPU."""
        nodes = {node["metadata"]["name"] for node in self.sealed.api.get("/api/v1/nodes")["items"]}
        pods = self.sealed.api.get("/api/v1/pods", labelSelector=MODEL)["items"]
        return len(nodes - {pod["spec"].get("nodeName") for pod in pods})

    # ------------------------------------------------------------------ what others do

    def _leave_alone(self) -> None:
        pass

    def _scale(self) -> None:
        more = self.wanted["spec"]["replicas"] + self.chance.randint(1, 3)
        self.namespace.api.merge(f"{self._deployment}/scale", {"spec": {"replicas": more}})

    def _autoscale(self) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}
        least = self.wanted["spec"]["replicas"] + 1
        spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": least + 2}
        self.namespace.api.create(self._scaler.rpartition("/")[0], {"metadata": {"name": "theirs"}, "spec": spec})

    def _change(self) -> None:
        spec = self.wanted["spec"]
        self.apply({**self.wanted, "spec": {**spec, "drainSeconds": 7, "replicas": spec["replicas"] + 1}})


PATIENCE_SECONDS = 900.0
"""Of people: a machine that others use as well is slow."""

SITUATIONS: dict[str, Callable[[GateModel], None]] = {
    "pods without a node": GateModel._wait_for_a_node,
    "pods that pull": GateModel._pull,
    "pods that verify": GateModel._verify,
    UPDATE: GateModel._update,
}
ACTS: dict[str, Callable[[GateModel], None]] = {
    "left alone": GateModel._leave_alone,
    "Deployment scaled": GateModel._scale,
    "HorizontalPodAutoscaler": GateModel._autoscale,
    "spec changed": GateModel._change,
}


def _chance_of(seed: int) -> random.Random:
    return random.Random(f"model behind a closed gate {seed}")


def _a_model(**spec: Any) -> Manifest:
    return a_baked_model(NAME, **{"endpoint": {}, "drainSeconds": 5, **spec})
