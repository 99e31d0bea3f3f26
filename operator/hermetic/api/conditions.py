"""Conditions: the types that Hermetic sets, and the shape that kubectl, Flux and kstatus read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.rules import ApiModel
from hermetic.api.values import Timestamp

Truth = Literal["True", "False", "Unknown"]


class ConditionType(StrEnum):
    """Every type that can appear, in the order in which they are written."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    IMAGES_PINNED = "ImagesPinned"
    WEIGHTS_VERIFIED = "WeightsVerified"
    ISOLATION_VERIFIED = "IsolationVerified"
    ENDPOINT_PRIVATE = "EndpointPrivate"
    AVAILABLE = "Available"


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
    """The metadata.generation that this was said about."""
