"""Every kind that runs pods. A new one: a module beside this one, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.kinds import Kind
from hermetic.objects.names import Owner
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


def observed_workload(children: Mapping[tuple[str, str], Mapping[str, Any]], name: str) -> Workload:
    """What runs the pods of the model of this name. `children`: its live objects by (kind, name).

    Without a live object, the counts are those of an absent one of the first kind.
    """
    for workload in WORKLOADS:
        parts = [
            workload.observe(live)
            for (kind, object_name), live in children.items()
            if kind == workload.resource.kind and workload.names(object_name, name)
        ]
        if parts:
            return whole_of(parts) if workload.is_grouped else parts[0]
    return WORKLOADS[0].observe(None)


def is_controlled(pod: Mapping[str, Any], owner: Owner) -> bool:
    """Whether the pod has the controller of the pods of this model, by its ownerReferences."""
    return any(workload.revision_of(pod, owner) for workload in WORKLOADS)
