"""The gate of `spec.scheduling`: priority classes and node labels that the configuration allows in the namespace."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.strictness import covers
from hermetic.api.text import first_of
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.source_suggestions import closest

_MOST_NAMED = 5
SYSTEM_CLASSES = "system-"
"""Prefix of the classes that put pods of the system aside; an admission policy refuses them as well."""


def scheduling_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Priority class and node labels are ones that this namespace may name. Nothing is allowed that is not listed."""
    for field, message in _objections(spec, snapshot):
        return Blocks(SpecReason.SCHEDULING_NOT_ALLOWED, message, field=field)
    return HOLDS


def _objections(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    """(field, message) of everything that may not be named."""
    if spec.scheduling is None:
        return
    name = spec.scheduling.priority_class_name
    if name is not None and (objection := _of_class(name, snapshot)):
        yield "spec.scheduling.priorityClassName", objection
    for key, value in spec.scheduling.node_selector.items():
        if objection := _of_label(key, value, snapshot):
            yield "spec.scheduling.nodeSelector", objection


def _of_class(name: str, snapshot: ClusterSnapshot) -> str:
    namespace = snapshot.owner.namespace
    if name.startswith(SYSTEM_CLASSES):
        return f"`scheduling.priorityClassName` '{name}' is a class of the system, which no model may have"
    listed = [entry.name for entry in snapshot.policy.priority_classes if covers(entry.namespaces, namespace)]
    allowed = [entry for entry in listed if not entry.startswith(SYSTEM_CLASSES)]
    if name in allowed:
        return ""
    line = f"- {{name: {name}, namespaces: [{namespace}]}}"
    return f"`scheduling.priorityClassName` '{name}' may not be named in namespace '{namespace}'; " + _advice(
        name, allowed, "priorityClasses", line
    )


def _of_label(key: str, value: str, snapshot: ClusterSnapshot) -> str:
    namespace = snapshot.owner.namespace
    entries = [entry for entry in snapshot.policy.node_labels if covers(entry.namespaces, namespace)]
    named = [entry for entry in entries if entry.key == key]
    if any(not entry.values or value in entry.values for entry in named):
        return ""
    subject = f"`scheduling.nodeSelector` '{key}: {value}' may not be selected in namespace '{namespace}'; "
    if named:
        return subject + _advice(value, [label for entry in named for label in entry.values], "nodeLabels", "")
    line = f"- {{key: {key}, values: ['{value}'], namespaces: [{namespace}]}}"
    return subject + _advice(key, [entry.key for entry in entries], "nodeLabels", line)


def _advice(name: str, allowed: list[str], key: str, line: str) -> str:
    """The closest allowed name, or those that are; the platform team last, and no line that allows a typo."""
    platform = f"ask the platform team to list it under `{key}` of the operator's configuration"
    if near := closest(name, allowed):
        return f"did you mean '{near}', which is allowed there? If not, {platform}"
    listed = f"choose one of {first_of(sorted(set(allowed)), _MOST_NAMED)}, or " if allowed else ""
    return f"{listed}{platform}{line and f': {line}'}"
