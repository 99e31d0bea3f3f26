"""The last steps of a remedy for an object of the cluster, where the remedy only says what to change.

A pod that runs cannot be changed (kubernetes.io/docs/concepts/workloads/pods: pod update and replacement); the template
of a controller can, and its pods are made again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hermetic.audit.remedies.steps import RemedyStep, steps_of

_OBJECT = re.compile(
    r"(?:[a-z0-9.-]+/)?v[a-z0-9]+/(?P<kind>[A-Z][A-Za-z0-9]*) (?P<namespace>[a-z0-9.-]+/)?[a-z0-9.:-]+"
)
# The template of a Job is immutable: kubernetes.io/docs/concepts/workloads/controllers/job.
_WITH_TEMPLATE = frozenset({"CronJob", "DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
_OF_A_POD = """A pod without a controller cannot be changed while it runs: save it, change the file, delete the pod, and
create it again from the file.
kubectl --namespace NAMESPACE get pod NAME --output yaml
Warning: the pod serves nothing until it exists again.
kubectl --namespace NAMESPACE delete pod NAME
"""
_OF_A_JOB = """The template of a Job cannot be changed: save it, change the file, delete the Job, and create it again.
kubectl --namespace NAMESPACE get job NAME --output yaml
Warning: its pods end.
kubectl --namespace NAMESPACE delete job NAME
"""
_OF_A_TEMPLATE = """Its pods are made again with the change.
kubectl --namespace NAMESPACE edit KIND NAME
"""
_IN_A_NAMESPACE = "kubectl --namespace NAMESPACE "


def with_object_steps(steps: Iterable[RemedyStep], resource: str) -> tuple[RemedyStep, ...]:
    """The steps; where none has a command, those for the finding's workload as well."""
    written, described = tuple(steps), _OBJECT.fullmatch(resource)
    if described is None or any(step.commands for step in written):
        return written
    kind = described["kind"]
    if kind in _WITH_TEMPLATE:
        return (*written, *steps_of(_OF_A_TEMPLATE))
    return (*written, *steps_of({"Pod": _OF_A_POD, "Job": _OF_A_JOB}.get(kind, "")))


def for_scope(text: str, resource: str) -> str:
    """The remedy without the option of a namespace, for an object of the whole cluster."""
    described = _OBJECT.fullmatch(resource)
    is_of_whole_cluster = described is not None and not described["namespace"]
    return text.replace(_IN_A_NAMESPACE, "kubectl ") if is_of_whole_cluster else text
