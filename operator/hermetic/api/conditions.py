"""Conditions: the types that Hermetic sets, and the shape that kubectl, Flux and kstatus read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.field_types import Timestamp
from hermetic.api.rules import ApiModel

Truth = Literal["True", "False", "Unknown"]


class ConditionType(StrEnum):
    """Every type that can appear, in the order in which they are written, and what it means that it is True."""

    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> ConditionType:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    READY = "Ready", "Everything that was asked for holds; its message is that of the first thing that does not."
    RECONCILING = "Reconciling", "Work is going on, or something that may pass by itself is waited for."
    STALLED = "Stalled", "Nothing but a person helps; there only while Ready is not True."
    IMAGES_PINNED = "ImagesPinned", "Every image is named by digest and comes from a registry that may be used here."
    WEIGHTS_VERIFIED = "WeightsVerified", "The weights are exactly those that were published."
    MODEL_FITS = "ModelFits", "The model fits the memory of its GPUs; there only where the spec has `weights.facts`."
    CACHES_USED = "CachesUsed", "The engine gets staged compile caches; there only where the spec has `weights.caches`."
    ISOLATION_VERIFIED = "IsolationVerified", "Fresh evidence shows that the node subnets have no egress path."
    ENDPOINT_PRIVATE = "EndpointPrivate", "The address that clients use is private."
    AVAILABLE = "Available", "As many replicas serve as were asked for."
    ATTESTATION_ACCEPTED = "AttestationAccepted", "An attestation from outside is there, and it is accepted."
    EVIDENCE_FRESH = "EvidenceFresh", "The attestation is not too old; its reason says when it will be soon."
    CLUSTER_CHECKED = "ClusterChecked", "The cluster's own objects were evaluated as they are now."
    PROBE_CURRENT = "ProbeCurrent", "The probe has tried every known egress path from every pool, not long ago."
    EXCEPTIONS_CURRENT = "ExceptionsCurrent", "Every exception still counts; there only where there are exceptions."
    AUDIT_FAULTY = "AuditFaulty", "A part of the operator's own audit failed; there only while it is True."


class Condition(ApiModel):
    """One observation about the object, as metav1.Condition."""

    type: Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Z][A-Za-z]*$")]
    """What is observed."""
    status: Truth
    """Whether it holds: True, False or Unknown."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Z][A-Za-z0-9]*$")]
    """One word for programs; `hermetic explain REASON` says what it means and what to do."""
    message: Annotated[str, StringConstraints(max_length=2048)] = ""
    """One sentence for people."""
    last_transition_time: Timestamp
    """When `status` last changed."""
    observed_generation: Annotated[int, Field(ge=0)]
    """The metadata.generation that this is about."""
