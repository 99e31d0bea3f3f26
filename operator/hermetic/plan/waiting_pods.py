"""Pods that have not started when the isolation gate closes: the workload is applied so that they are removed.

The operator may write workloads and delete no pod. So `replicas` becomes the number of replicas whose pods have
started, and the controller of the workload removes the others: `scaled` and `held` of its kind say how
(objects/workloads/).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.registry import engine_of
from hermetic.objects.names import template_of
from hermetic.objects.pod import ENGINE
from hermetic.objects.workloads.registry import is_controlled, workload_kind
from hermetic.objects.workloads.workload_kind import HOLD
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.runtime_drift import running

Manifest = Mapping[str, Any]
Pod = Mapping[str, Any]


def has_started(pod: Pod) -> bool:
    """Whether the engine's container has started once: also one that ended, and one that is about to start again.

    In phase Running every container has been created (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle).
    """
    status = pod.get("status") or {}
    if status.get("phase") == "Running":
        return True
    statuses = status.get("containerStatuses") or ()
    engine: Mapping[str, Any] = next((status for status in statuses if status.get("name") == ENGINE), {})
    states = engine.get("state") or {}
    return bool({"running", "terminated"} & states.keys() or engine.get("lastState") or engine.get("restartCount"))


def started_pods(snapshot: ClusterSnapshot) -> int:
    """How many pods of the workload have started: by the pods, and at least as many as its controller says serve."""
    return max(sum(has_started(pod) for pod in _pods(snapshot)), snapshot.workload.serving_pods)


def waiting_pods(snapshot: ClusterSnapshot) -> int:
    """How many pods of the workload exist and have not started."""
    return sum(not has_started(pod) for pod in _pods(snapshot))


def pods_must_go(snapshot: ClusterSnapshot) -> bool:
    """Whether pods wait that may not start behind a closed gate.

    Not while more pods have the labels than are read: the number of those that have started is not known then.
    """
    admitted = snapshot.policy.isolation.replacements == "Admit"
    return not admitted and not snapshot.pods_truncated and waiting_pods(snapshot) > 0


def without_waiting_pods(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, base: Manifest) -> Manifest:
    """The workload, changed so that its waiting pods are removed and the others stay, as far as the spec asks for them.

    `base`: the live object, or the rendered manifest where both have the same pod template.
    """
    workload, owner, engine = snapshot.workload, snapshot.owner, engine_of(spec).name
    started_replicas = started_pods(snapshot) // workload_kind(spec).pods_per_replica(spec)
    replicas = min(spec.wanted_replicas, workload.replicas, started_replicas)
    if replicas == 0 or not _is_rolling_out(snapshot):
        return workload.kind.scaled(base, replicas, owner, engine)
    return workload.kind.held(base, replicas, waiting_pods(snapshot), owner, engine)


def _pods(snapshot: ClusterSnapshot) -> Iterator[Pod]:
    """The pods of the workload that were not ended, without those of the template that starts nothing."""
    return (pod for pod in running(snapshot) if is_controlled(pod, snapshot.owner) and template_of(pod) != HOLD)


def _is_rolling_out(snapshot: ClusterSnapshot) -> bool:
    """Whether pods of more than one template exist, or pods of earlier templates are left."""
    workload = snapshot.workload
    revisions = {workload.kind.revision_of(pod, snapshot.owner) for pod in _pods(snapshot)}
    return len(revisions) > 1 or (workload.is_observed and workload.existing_pods > workload.updated_pods)
