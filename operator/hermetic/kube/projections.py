"""Projections: reduce each object to the fields that a decision may read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from hermetic.api.conditions import ConditionType
from hermetic.api.egressaudit import EgressAuditStatus
from hermetic.api.text import one_line
from hermetic.kube.metadata import lean_metadata
from hermetic.kube.size_limits import LABELS
from hermetic.plan.container_digests import CONTAINERS, contents
from hermetic.plan.field_owners import labellers
from hermetic.plan.snapshot import IsolationEvidence, NodeFacts, Warned

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
LONGEST_WARNING = 1024
LONGEST_OWNER = 253
MOST_CONTAINERS = 4
LONGEST_MESSAGE = 4096  # characters; the kubelet's limit for a termination message
LONGEST_IMAGE = 512
READ_OF_A_CONTAINER = ("name", "image", "ready", "started", "restartCount")
READ_STATES = frozenset({"waiting", "running", "terminated"})
READ_CONDITIONS = frozenset({"PodScheduled", "Ready"})
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
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name in LABELS}
    controllers = [
        {name: str(one.get(name))[:LONGEST_OWNER] for name in ("kind", "name")} | {"controller": True}
        for one in metadata.get("ownerReferences") or ()
        if one.get("controller")
    ]
    book = labellers(metadata.get("managedFields"))
    parts = (("labels", labels), ("ownerReferences", controllers), ("managedFields", book))
    return {
        "kind": "Pod",
        "metadata": {key: metadata[key] for key in kept if key in metadata} | {n: part for n, part in parts if part},
        **({"spec": _contents(pod["spec"])} if (pod.get("spec") or {}).get("containers") else {}),
        "status": _state(status, longest),
    }


def _state(status: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Status of a pod as kubelet and scheduler write it; it holds texts of the pod's author (images, messages)."""
    kept: dict[str, Any] = {"phase": status["phase"]} if "phase" in status else {}
    if conditions := status.get("conditions"):
        kept["conditions"] = [_cut(one, longest) for one in conditions if one.get("type") in READ_CONDITIONS]
    for name in ("containerStatuses", "initContainerStatuses"):
        if found := status.get(name):
            kept[name] = [_of_container(one, longest) for one in found[:MOST_CONTAINERS]]
    return kept


def _of_container(status: Mapping[str, Any], longest: int) -> dict[str, Any]:
    kept = _cut({name: status[name] for name in READ_OF_A_CONTAINER if name in status}, LONGEST_IMAGE)
    for name in ("state", "lastState"):
        if found := status.get(name):
            kept[name] = {state: _cut(inner or {}, longest) for state, inner in found.items() if state in READ_STATES}
    return kept


def _cut(found: Mapping[str, Any], longest: int) -> dict[str, Any]:
    return {name: value[:longest] if isinstance(value, str) else value for name, value in found.items()}


def _contents(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The first containers; a pod with more than are kept differs from every template all the same."""
    return contents({**spec, **{kind: spec[kind][:MOST_CONTAINERS] for kind in CONTAINERS if spec.get(kind)}})


def node(manifest: Mapping[str, Any]) -> NodeFacts:
    """The pool, size, runtime and GPUs of a node."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    labels = metadata.get("labels") or {}
    return NodeFacts(
        name=metadata["name"],
        pool=labels.get("kubernetes.azure.com/agentpool") or labels.get("agentpool") or "",
        instance_type=labels.get("node.kubernetes.io/instance-type", ""),
        runtime_version=(status.get("nodeInfo") or {}).get("containerRuntimeVersion", ""),
        gpus={
            resource: int(count)
            for resource, count in (status.get("allocatable") or {}).items()
            if resource.startswith(GPU_RESOURCES) and str(count).isdigit()
        },
    )


def warned(event: Mapping[str, Any]) -> Warned:
    """Reason and message of a warning event, in one line each and cut: a tenant may write a megabyte into either."""
    reason, message = str(event.get("reason") or ""), str(event.get("message") or event.get("note") or "")
    return Warned(reason=one_line(reason[:LONGEST_WARNING]), message=one_line(message[:LONGEST_WARNING]))


def evidence(audit: Mapping[str, Any]) -> IsolationEvidence:
    """The evidence in an EgressAudit's status; None for an unreadable status or one of an earlier spec."""
    generation = audit["metadata"].get("generation", 0)
    try:
        found = EgressAuditStatus.model_validate(audit.get("status") or {}, extra="ignore")
    except ValidationError:
        return IsolationEvidence(verdict=None)
    # A verdict about an earlier spec (other keys, other exceptions) is no verdict about this one.
    if found.observed_generation != generation or audit["metadata"].get("deletionTimestamp"):
        return IsolationEvidence(verdict=None)
    sources = found.evidence
    azure = sources.azure if sources is not None else None
    present = {
        name for name in ("azure", "kubernetes", "probe") if sources is not None and getattr(sources, name) is not None
    }
    return IsolationEvidence(
        verdict=found.verdict,
        message=found.message or "",
        reason=next((one.reason for one in found.conditions if one.type == ConditionType.READY), ""),
        observed_at=as_utc(azure.observed_at) if azure is not None else None,
        expires_at=as_utc(azure.expires_at) if azure is not None else None,
        sources=frozenset(present),
    )


def as_utc(moment: datetime) -> datetime:
    """The time with its zone; without one it is UTC, not the zone of this process."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
