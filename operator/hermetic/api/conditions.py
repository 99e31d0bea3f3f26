"""Conditions: the types that Hermetic sets, and the shape that kubectl, Flux and kstatus read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.field_types import Timestamp
from hermetic.api.rules import ApiModel

Truth = Literal["True", "False", "Unknown"]
LONGEST_MESSAGE = 2048
"""Characters of a message in a status: the API server rejects a longer one, and the old status would stay."""


class ConditionType(StrEnum):
    """Every type that can appear, in the order in which they are written, and what it means that it is True."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> ConditionType:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    READY = "Ready", "Every condition of the model is met. If not, the message names the first one that is not met."
    RECONCILING = "Reconciling", "Work is in progress, or Hermetic waits for a state that may clear by itself."
    STALLED = "Stalled", "Progress needs user action. Present only while Ready is not True."
    IMAGES_PINNED = "ImagesPinned", "Every image is named by digest and comes from an allowed registry."
    WEIGHTS_VERIFIED = "WeightsVerified", "The weights are identical to the published weights."
    MODEL_FITS = "ModelFits", "The model fits the memory of its GPUs. Present only if the spec has `weights.facts`."
    CACHES_USED = "CachesUsed", "The engine gets staged compile caches. Present only if the spec has `weights.caches`."
    ACCELERATORS_HEALTHY = "AcceleratorsHealthy", "The GPUs of the pods passed the checks before their engines started."
    ISOLATION_VERIFIED = "IsolationVerified", "Fresh evidence shows that the node subnets have no egress path."
    ENDPOINT_PRIVATE = "EndpointPrivate", "The address that clients use is private."
    ROUTE_SERVED = "RouteServed", "The gateway serves the route to the model. Present only with `endpoint.gateway`."
    AVAILABLE = "Available", "All requested replicas serve."
    AUTOSCALER_ACTIVE = (
        "AutoscalerActive",
        "The autoscaler reads the engine's queue, and Hermetic adds the pods that it requests. Present only if the "
        "spec has `autoscaling`.",
    )
    ATTESTATION_ACCEPTED = "AttestationAccepted", "The cluster has an accepted attestation from outside."
    EVIDENCE_FRESH = "EvidenceFresh", "The attestation is not too old. The reason warns before it expires."
    NODES_ATTESTED = "NodesAttested", "Every ready node is in a pool and a subnet that the attestation covers."
    CLUSTER_CHECKED = "ClusterChecked", "The audit evaluated the cluster's own objects in their present state."
    PROBE_CURRENT = "ProbeCurrent", "The probe recently tried every known egress path from every pool."
    EXCEPTIONS_CURRENT = (
        "ExceptionsCurrent",
        "Every exception is in effect. Present only if the cluster has exceptions.",
    )
    AUDIT_FAULTY = "AuditFaulty", "A part of the operator's own audit failed. Present only while it is True."


class Condition(ApiModel):
    """One observation about the object, as metav1.Condition."""

    type: Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Z][A-Za-z]*$")]
    """What is observed."""
    status: Truth
    """Whether it holds: True, False or Unknown."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    """One word for programs; `hermetic explain REASON` says what it means and what to do."""
    message: Annotated[str, StringConstraints(max_length=LONGEST_MESSAGE)] = ""
    """One sentence for people."""
    last_transition_time: Timestamp
    """When `status` last changed."""
    observed_generation: Annotated[int, Field(ge=0)]
    """The metadata.generation that this is about."""
