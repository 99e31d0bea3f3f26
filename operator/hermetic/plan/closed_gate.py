"""What of the pods may be written while isolation is not proven, or while the spec is blocked.

No write may start a pod. A live workload keeps its template; a change that would create pods waits. Pods that have
not started are removed, and a template that others changed is corrected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.registry import engine_of
from hermetic.objects.names import template_mark
from hermetic.objects.workloads.registry import workload_kind
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.drift import holds_template
from hermetic.plan.tampering.foreign_fields import foreign_to_template
from hermetic.plan.tampering.pods_of_template import not_of_the_changed, were_started_with_a_proof
from hermetic.plan.tampering.runtime_drift import all_of
from hermetic.plan.waiting_pods import without_waiting_pods

Manifest = Mapping[str, Any]


def workload_behind_closed_gate(
    rendered: Manifest, live: Manifest, spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, *, removes_pods: bool
) -> Manifest | None:
    """The workload to apply behind a closed gate; None where the live one stays as it is.

    A template that others changed is corrected at once, with at most as many replicas as running pods that are not
    shown to be of the changed template.
    """
    if spec.wanted_replicas == 0:
        return rendered
    engine, is_same = engine_of(spec).name, _is_same_template(rendered, live)
    workload, most = snapshot.workload, _most_replicas(rendered, live, spec, snapshot)
    if most is not None and not (removes_pods and is_same):
        replicas = min(spec.wanted_replicas, workload.replicas, most)
        is_rendered = workload.kind.observe(rendered).replicas == replicas
        return rendered if is_rendered else workload.kind.scaled(rendered, replicas, snapshot.owner, engine)
    if removes_pods:
        # With the rendered manifest, so that the next plan finds nothing to change.
        return without_waiting_pods(spec, snapshot, rendered if is_same else live)
    return None


def workload_of_blocked_spec(
    live: Manifest, spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, *, removes_pods: bool
) -> Manifest | None:
    """The scale-down of the live workload, which a blocked spec may ask for; None where it stays as it is."""
    if removes_pods:
        return without_waiting_pods(spec, snapshot, live)
    workload = snapshot.workload
    if spec.wanted_replicas < workload.replicas:
        return workload.kind.scaled(live, spec.wanted_replicas, snapshot.owner, engine_of(spec).name)
    return None


def _most_replicas(
    rendered: Manifest, live: Manifest, spec: ModelDeploymentSpec, snapshot: ClusterSnapshot
) -> int | None:
    """The most replicas with which the manifest can be applied without starting a pod; None: only 0.

    None for a template that the spec changed: the running pods are of the earlier template, and keep it. None for one
    that others changed and rolled out before the gate closed: to correct it would end every pod.
    """
    replicas, template = snapshot.workload.replicas, rendered["spec"]["template"]
    if replicas == 0 or _is_same_template(rendered, live):
        return replicas
    is_changed_by_others = template_mark(live) == template_mark(rendered) or all_of(template, snapshot)
    if not is_changed_by_others:
        return None
    pods = not_of_the_changed(template, snapshot)
    if pods is None or (pods == 0 and were_started_with_a_proof(template, snapshot)):
        return None
    return pods // workload_kind(spec).pods_per_replica(spec)


def _is_same_template(rendered: Manifest, live: Manifest) -> bool:
    """Whether applying the manifest would create no new pods."""
    return (
        template_mark(live) == template_mark(rendered)
        and holds_template(rendered, live)
        and not foreign_to_template(rendered, live)
    )
