"""The input of the admission policy 'hermetic-pod-gate': annotations of the operator's Lease.

A model's pod is admitted until the time given there, which is never later than the end of the evidence. The API server
compares it with the pod's creation time, so admission ends on time even when the operator is down.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from hermetic.api.configuration import Configuration
from hermetic.api.times import timestamp
from hermetic.plan.gate_results import Blocks
from hermetic.plan.isolation import CONFIRMED_FOR, evidence_counts
from hermetic.plan.snapshot import IsolationEvidence

PODS_UNTIL = "hermetic.dev/pods-until"
UNPROVEN = "hermetic.dev/unproven-pods"
ENFORCED = "hermetic.dev/enforced-models"
EVERY = "*"
MOST_MODELS = 2000
"""Most names in the annotation; with more of them, every model counts as one that asks for a proof."""


def unproven_namespaces(policy: Configuration) -> str:
    """Where pods are admitted without a proof: names, "*" for every namespace, "-" before the excluded ones."""
    isolation = policy.isolation
    if isolation.replacements == "Admit":
        return EVERY
    # All namespaces that no override names have the same answer.
    everywhere = isolation.minimum_of("") != "Enforce"
    named = {namespace for one in isolation.overrides for namespace in one.namespaces} - {EVERY}
    differing = sorted(name for name in named if (isolation.minimum_of(name) != "Enforce") != everywhere)
    return ",".join([EVERY, *(f"-{name}" for name in differing)] if everywhere else differing)


def enforced_models(policy: Configuration, asked: Iterable[tuple[str, str, str]]) -> str:
    """Models that ask for a proof where none is required, "namespace/name"; `asked`: (namespace, name, enforcement)."""
    isolation = policy.isolation
    if isolation.replacements == "Admit":
        return ""
    lenient = ((space, name) for space, name, enforcement in asked if enforcement == "Enforce")
    found = sorted(f"{space}/{name}" for space, name in lenient if isolation.minimum_of(space) != "Enforce")
    return ",".join(found) if len(found) <= MOST_MODELS else EVERY


def pods_until(policy: Configuration, evidence: IsolationEvidence | None, now: datetime) -> str:
    """Until when pods that need a proof are admitted; "" for not at all."""
    allowed = timedelta(seconds=policy.max_evidence_age_seconds)
    if evidence is None or isinstance(evidence_counts(evidence, allowed, now), Blocks):
        return ""
    by_age = evidence.observed_at and evidence.observed_at + allowed
    by_confirmation = evidence.confirmed_at and evidence.confirmed_at + CONFIRMED_FOR
    return timestamp(min(end for end in (by_age, by_confirmation, evidence.expires_at) if end is not None))
