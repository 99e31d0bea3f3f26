"""Projections: reduce each object to the fields that a decision may read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from hermetic.api.conditions import ConditionType
from hermetic.api.egressaudit import EgressAuditStatus
from hermetic.api.text import cut_middle, one_line
from hermetic.kube.metadata import lean_metadata
from hermetic.kube.size_limits import LABELS
from hermetic.objects.child_projection import lean_conditions
from hermetic.plan.node_faults import gpu_faults
from hermetic.plan.snapshot import IsolationEvidence, NodeFacts, Warned
from hermetic.plan.tampering.container_digests import CONTAINERS, contents
from hermetic.plan.tampering.field_owners import labellers

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
LONGEST_WARNING = 1024
LONGEST_OWNER = 253
MOST_CONTAINERS = 4
LONGEST_MESSAGE = 4096  # characters; the kubelet's limit for a termination message
LONGEST_IMAGE = 512
READ_OF_A_CONTAINER = ("name", "image", "ready", "started", "restartCount")
READ_STATES = frozenset({"waiting", "running", "terminated"})
READ_CONDITIONS = frozenset({"PodScheduled", "Ready"})
READ_OF_A_LISTENER = ("name", "hostname", "port", "protocol", "allowedRoutes")
MOST_LISTENERS = 64  # of the CRD
GPU_RESOURCES = ("nvidia.com/", "amd.com/")


def lean(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The object without managedFields and without kubectl's copy of it (last-applied-configuration)."""
    metadata = lean_metadata(manifest["metadata"])
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != LAST_APPLIED}
    return {**manifest, "metadata": metadata}


def lean_pod(pod: Mapping[str, Any], *, longest: int = LONGEST_MESSAGE) -> dict[str, Any]:
    """Identity and state of a pod, and the fields of its spec that are compared with a template; messages are cut."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name in LABELS}
    controllers = [
        {name: str(owner.get(name))[:LONGEST_OWNER] for name in ("kind", "name")} | {"controller": True}
        for owner in metadata.get("ownerReferences") or ()
        if owner.get("controller")
    ]
    book = labellers(metadata.get("managedFields"))
    parts = (("labels", labels), ("ownerReferences", controllers), ("managedFields", book))
    return {
        "kind": "Pod",
        "metadata": {key: metadata[key] for key in fields if key in metadata} | {n: part for n, part in parts if part},
        **({"spec": _contents(pod["spec"])} if (pod.get("spec") or {}).get("containers") else {}),
        "status": _state(status, longest),
    }


def _state(status: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Status of a pod as kubelet and scheduler write it; it holds texts of the pod's author (images, messages)."""
    lean_status: dict[str, Any] = {"phase": status["phase"]} if "phase" in status else {}
    if conditions := status.get("conditions"):
        lean_status["conditions"] = [
            _cut(condition, longest) for condition in conditions if condition.get("type") in READ_CONDITIONS
        ]
    for name in ("containerStatuses", "initContainerStatuses"):
        if statuses := status.get(name):
            lean_status[name] = [
                _of_container(container_status, longest) for container_status in statuses[:MOST_CONTAINERS]
            ]
    return lean_status


def _of_container(status: Mapping[str, Any], longest: int) -> dict[str, Any]:
    lean_status = _cut({name: status[name] for name in READ_OF_A_CONTAINER if name in status}, LONGEST_IMAGE)
    for name in ("state", "lastState"):
        if container_state := status.get(name):
            states = container_state.keys() & READ_STATES
            lean_status[name] = {
                state: _of_state(state, container_state[state] or {}, longest) for state in sorted(states)
            }
    return lean_status


def _of_state(state: str, inner: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """A container's state. What a container leaves at its end begins with its first errors, and keeps them."""
    message = inner.get("message")
    if state == "terminated" and isinstance(message, str):
        inner = {**inner, "message": message[:longest]}
    return _cut(inner, longest)


def _cut(fields: Mapping[str, Any], longest: int) -> dict[str, Any]:
    return {name: cut_middle(value, longest) if isinstance(value, str) else value for name, value in fields.items()}


def _contents(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The node, and the first containers; a pod with more than are kept differs from every template all the same."""
    first = {kind: spec[kind][:MOST_CONTAINERS] for kind in CONTAINERS if spec.get(kind)}
    node_name = {"nodeName": str(spec["nodeName"])} if spec.get("nodeName") else {}
    return {**contents({**spec, **first}), **node_name}


def listed_gateway(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Identity, listeners, addresses and conditions of a Gateway, and those of its listeners."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    fields = ("name", "namespace", "uid", "resourceVersion")
    listeners = [
        {name: listener[name] for name in READ_OF_A_LISTENER if name in listener}
        for listener in (spec.get("listeners") or ())[:MOST_LISTENERS]
    ]
    return {
        "kind": manifest["kind"],
        "metadata": {name: metadata[name] for name in fields if name in metadata},
        "spec": {"listeners": listeners, "addresses": spec.get("addresses") or []},
        "status": {
            "addresses": status.get("addresses") or [],
            "conditions": lean_conditions(status.get("conditions") or ()),
            "listeners": [
                {"name": listener.get("name"), "conditions": lean_conditions(listener.get("conditions") or ())}
                for listener in (status.get("listeners") or ())[:MOST_LISTENERS]
            ],
        },
    }


def node(manifest: Mapping[str, Any]) -> NodeFacts:
    """The pool, size, runtime, kubelet, GPUs and labels of a node."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    labels, reported = metadata.get("labels") or {}, status.get("nodeInfo") or {}
    return NodeFacts(
        name=metadata["name"],
        pool=labels.get("kubernetes.azure.com/agentpool") or labels.get("agentpool") or "",
        instance_type=labels.get("node.kubernetes.io/instance-type", ""),
        runtime_version=reported.get("containerRuntimeVersion", ""),
        kubelet_version=reported.get("kubeletVersion", ""),
        gpus={
            resource: int(count)
            for resource, count in (status.get("allocatable") or {}).items()
            if resource.startswith(GPU_RESOURCES) and str(count).isdigit()
        },
        labels=dict(labels),
        faults=gpu_faults(manifest),
    )


def warned(event: Mapping[str, Any]) -> Warned:
    """Reason and message of a warning event, in one line each and cut: a tenant may write a megabyte into either."""
    reason, message = str(event.get("reason") or ""), str(event.get("message") or event.get("note") or "")
    return Warned(reason=one_line(reason[:LONGEST_WARNING]), message=one_line(cut_middle(message, LONGEST_WARNING)))


def evidence(audit: Mapping[str, Any]) -> IsolationEvidence:
    """The evidence in an EgressAudit's status; None for an unreadable status or one of an earlier spec."""
    generation = audit["metadata"].get("generation", 0)
    try:
        status = EgressAuditStatus.model_validate(audit.get("status") or {}, extra="ignore")
    except ValidationError:
        return IsolationEvidence(verdict=None)
    # A verdict about an earlier spec (other keys, other exceptions) is no verdict about this one.
    if status.observed_generation != generation or audit["metadata"].get("deletionTimestamp"):
        return IsolationEvidence(verdict=None)
    sources = status.evidence
    azure = sources.azure if sources is not None else None
    present = {
        name for name in ("azure", "kubernetes", "probe") if sources is not None and getattr(sources, name) is not None
    }
    return IsolationEvidence(
        verdict=status.verdict,
        message=status.message or "",
        reason=next((condition.reason for condition in status.conditions if condition.type == ConditionType.READY), ""),
        observed_at=as_utc(azure.observed_at) if azure is not None else None,
        expires_at=as_utc(azure.expires_at) if azure is not None else None,
        sources=frozenset(present),
    )


def as_utc(moment: datetime) -> datetime:
    """The time with its zone; without one it is UTC, not the zone of this process."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
