"""How many running pods are still of the rendered template, when others changed the template of a workload.

A mutating webhook may have changed every pod, so that none equals what was rendered. A pod counts as one of the changed
template only where that is shown: by its content, or by the counts of the workload's controller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from hermetic.api.conditions import ConditionType
from hermetic.objects.names import template_of
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.container_digests import completed, containers, contents
from hermetic.plan.tampering.runtime_drift import running

Place = tuple[str, ...]
LATEST = "9999-12-31T23:59:59Z"


def not_of_the_changed(template: Mapping[str, Any], snapshot: ClusterSnapshot) -> int | None:
    """How many of the running pods may be of this rendered template: not shown to be of the live, changed one.

    None where pods of the live template run and no compared field differs from what was rendered, for example an
    annotation only: such pods need not be replaced.
    """
    rendered = _places(contents(completed(template["spec"])))
    changed = _places(contents(completed(snapshot.workload.template.get("spec") or {})))
    differing = {path for path in {*rendered, *changed} if rendered.get(path) != changed.get(path)}
    pods = [_places(pod.get("spec") or {}) for pod in running(snapshot) if template_of(pod) == template_of(template)]
    older = _of_earlier_templates(snapshot)
    if not differing:
        return len(pods) if older is None or older >= len(pods) else None
    # Every place: a webhook that changes workloads is in the pods of the rendered template as well.
    theirs = [pod for pod in pods if all(pod.get(path) == changed.get(path) for path in differing)]
    ours = [pod for pod in pods if pod not in theirs and all(pod.get(at) == rendered.get(at) for at in differing)]
    unclear = len(pods) - len(theirs) - len(ours)
    return len(ours) + (unclear if older is None else min(unclear, max(0, older - len(ours))))


def were_started_with_a_proof(template: Mapping[str, Any], snapshot: ClusterSnapshot) -> bool:
    """Whether every running pod is of the live template, by the controller's count, and older than the gate's closing.

    Such a template starts no pod. A webhook that changes workloads leads to it, and would change the correction too.
    """
    pods = [pod for pod in running(snapshot) if template_of(pod) == template_of(template)]
    if not pods or _of_earlier_templates(snapshot) != 0:
        return False
    condition = snapshot.condition(ConditionType.ISOLATION_VERIFIED)
    if condition is None or condition.get("status") == "True":  # the status does not say yet that the gate is closed
        return condition is not None
    closed = datetime.fromisoformat(condition["lastTransitionTime"])
    return all(_created(pod) <= closed for pod in pods)


def _created(pod: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(pod["metadata"].get("creationTimestamp") or LATEST)


def _of_earlier_templates(snapshot: ClusterSnapshot) -> int | None:
    """How many pods the workload's controller counts that are not of the live template; None until it observed that."""
    workload = snapshot.workload
    return workload.existing_pods - workload.updated_pods if workload.is_observed else None


def _places(content: Mapping[str, Any]) -> dict[Place, str]:
    return dict(_each_place(content))


def _each_place(content: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from (((name,), mark) for name, mark in (content.get("marks") or {}).items())
    for kind, container in containers(content):
        at = (kind, container["name"])
        yield (*at, "image"), container["image"]
        yield from (((*at, name), mark) for name, mark in container["marks"].items())
