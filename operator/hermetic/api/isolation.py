"""`spec.isolation` and the operator's `isolation`: the proof that is asked of the node subnets before a pod starts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hermetic.api.field_types import Namespaces
from hermetic.api.rules import ApiModel
from hermetic.api.strictness import Strictness

Enforcement = Literal["Enforce", "Report", "Off"]
ENFORCEMENTS: Strictness[Enforcement] = Strictness(("Enforce", "Report", "Off"))


class Isolation(ApiModel):
    """What the deployment asks of the proof that the node subnet has no egress path."""

    enforcement: Enforcement = "Enforce"
    """Enforce: no pod is created without fresh evidence of isolation. Report: pods start without it, and the status
    reports that. "Off" (quote it, YAML reads a bare Off as false): evidence is not read. The operator's configuration
    sets the least that counts, by namespace: less is raised to it. Default: Enforce."""
    max_evidence_age_seconds: Annotated[int, Field(ge=300, le=604800)] = 86400
    """Oldest evidence that still counts, in seconds, 300 to 604800. Default: 86400 (a day)."""


class EnforcementOverride(ApiModel):
    """Another least enforcement for some namespaces."""

    minimum_enforcement: Enforcement
    """The least `isolation.enforcement` that counts in these namespaces: Enforce, Report or "Off"."""
    namespaces: Namespaces
    """Namespaces that it is about; '*' means every namespace. Of several that name one, the strictest counts."""


class IsolationFloor(ApiModel):
    """The least that any deployment may ask of the proof of isolation."""

    minimum_enforcement: Enforcement = "Enforce"
    """The least `isolation.enforcement` that counts: a deployment that asks for less is treated as if it asked for
    this, and its status says so. Enforce, Report or "Off" (quote it). Default: Enforce."""
    overrides: Annotated[list[EnforcementOverride], Field(max_length=64)] = []
    """Namespaces with another minimum, for example a sandbox without a proof. Default: none."""

    replacements: Literal["Refuse", "Admit"] = "Refuse"
    """Pods that take the place of pods that ended, while isolation is not proven: Refuse keeps them from starting,
    Admit lets them start, since the Deployment they are of was proven when it was written. It is kept by the admission
    policy 'hermetic-pod-gate'. Default: Refuse."""

    def minimum_of(self, namespace: str) -> Enforcement:
        named = ((override.namespaces, override.minimum_enforcement) for override in self.overrides)
        return ENFORCEMENTS.minimum(named, namespace, self.minimum_enforcement)
