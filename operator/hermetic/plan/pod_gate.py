"""What the admission policy 'hermetic-pod-gate' goes by: the operator keeps it in annotations of its Lease.

A pod of a model is let in until the moment that is named there, which is never later than the evidence counts: the API
server compares it with the pod's own creation time, so that it ends by itself when the operator is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from hermetic.api.configuration import Configuration
from hermetic.api.times import timestamp
from hermetic.plan.gates import Blocks
from hermetic.plan.isolation import CONFIRMED_FOR, evidence_counts
from hermetic.plan.snapshot import IsolationEvidence

PODS_UNTIL = "hermetic.dev/pods-until"
UNPROVEN = "hermetic.dev/unproven-pods"
ENFORCED = "hermetic.dev/enforced-models"
EVERY = "*"
MOST_MODELS = 2000
"""Names that the annotation holds; with more of them, every model counts as one that asks for a proof."""


def unproven_namespaces(policy: Configuration) -> str:
    """Where pods are let in without a proof: names, "*" for every namespace, "-" before those that it is not about."""
    isolation = policy.isolation
    if isolation.replacements == "Admit":
        return EVERY
    # Of a namespace that no override names, the answer is that of any other such name.
    everywhere = isolation.minimum_of("") != "Enforce"
    named = {namespace for one in isolation.overrides for namespace in one.namespaces} - {EVERY}
    differing = sorted(name for name in named if (isolation.minimum_of(name) != "Enforce") != everywhere)
    return ",".join([EVERY, *(f"-{name}" for name in differing)] if everywhere else differing)


def enforced_models(policy: Configuration, asked: Iterable[tuple[str, str, str]]) -> str:
    """The models that ask for a proof where none is demanded, as "namespace/name"; `asked` says (both, enforcement)."""
    isolation = policy.isolation
    if isolation.replacements == "Admit":
        return ""
    lenient = ((space, name) for space, name, enforcement in asked if enforcement == "Enforce")
    found = sorted(f"{space}/{name}" for space, name in lenient if isolation.minimum_of(space) != "Enforce")
    return ",".join(found) if len(found) <= MOST_MODELS else EVERY


def pods_until(policy: Configuration, evidence: IsolationEvidence | None, now: datetime) -> str:
    """Until when pods are let in that must be proven; "" not at all."""
    allowed = timedelta(seconds=policy.max_evidence_age_seconds)
    if evidence is None or isinstance(evidence_counts(evidence, allowed, now), Blocks):
        return ""
    by_age = evidence.observed_at and evidence.observed_at + allowed
    by_look = evidence.confirmed_at and evidence.confirmed_at + CONFIRMED_FOR
    return timestamp(min(end for end in (by_age, by_look, evidence.expires_at) if end is not None))
