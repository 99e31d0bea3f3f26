"""Every kind that runs pods. A new one: a module beside this one, and one line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.kinds import Kind
from hermetic.objects.names import MODEL_LABEL, Owner, is_controlled_by
from hermetic.objects.workloads.deployment import DeploymentWorkload
from hermetic.objects.workloads.stateful_set import StatefulSetWorkload, whole_of
from hermetic.objects.workloads.workload_kind import Workload, WorkloadKind

WORKLOADS: tuple[WorkloadKind, ...] = (DeploymentWorkload(), StatefulSetWorkload())
WORKLOAD_KINDS: tuple[Kind, ...] = tuple(workload.resource for workload in WORKLOADS)
"""Their kinds in the API. A model has objects of one of them."""


def workload_kind(spec: ModelDeploymentSpec) -> WorkloadKind:
    """The kind that runs the pods of this spec."""
    return next(workload for workload in WORKLOADS if workload.runs(spec))


def expected_pods(spec: ModelDeploymentSpec) -> int:
    """How many pods all replicas of a spec have."""
    return spec.wanted_replicas * workload_kind(spec).pods_per_replica(spec)


def observed_workload(children: Mapping[tuple[str, str], Mapping[str, Any]], owner: Owner) -> Workload:
    """What runs the pods of a model. `children`: its live objects by (kind, name).

    Objects of another kind, or of another group, that somebody else made with the model's name do not count beside
    those of the model; of two kinds, the older object does. Without a live object, the counts are those of an absent
    one of the first kind.
    """
    named = {workload: list(_named(workload, children, owner)) for workload in WORKLOADS}
    own = {workload: [live for live in objects if is_own(live, owner)] for workload, objects in named.items()}
    for objects_of in (own, named):
        kinds = [workload for workload in WORKLOADS if objects_of[workload]]
        if kinds:
            workload = min(kinds, key=lambda kind: min(map(_creation, objects_of[kind])))
            parts = [workload.observe(live) for live in objects_of[workload]]
            return whole_of(parts) if workload.is_grouped else parts[0]
    return WORKLOADS[0].observe(None)


def _named(
    workload: WorkloadKind, children: Mapping[tuple[str, str], Mapping[str, Any]], owner: Owner
) -> Iterator[Mapping[str, Any]]:
    for (kind, name), live in children.items():
        if kind == workload.resource.kind and workload.names(name, owner.name):
            yield live


def is_own(live: Mapping[str, Any], owner: Owner) -> bool:
    """Whether the model controls it and its pods have the model's label: a policy refuses that to others."""
    template = (live.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    return is_controlled_by(live, owner) and labels.get(MODEL_LABEL) == owner.name


def _creation(live: Mapping[str, Any]) -> str:
    return str(live["metadata"].get("creationTimestamp") or "")


def is_controlled(pod: Mapping[str, Any], owner: Owner) -> bool:
    """Whether the pod has the controller of the pods of this model, by its ownerReferences."""
    return any(workload.revision_of(pod, owner) for workload in WORKLOADS)


def member_labels(pod: Mapping[str, Any], owner: Owner) -> Mapping[str, str]:
    """The labels that a pod of this model has by its name, which cannot change."""
    return next((labels for workload in WORKLOADS if (labels := workload.member_labels(pod, owner))), {})
