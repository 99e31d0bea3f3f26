"""The input of the admission policies 'hermetic-pod-gate' and 'hermetic-binding-gate': annotations of the Lease.

A model's pod is admitted, and is given a node, until the time given there, which is never later than the end of the
evidence. The API server compares it with its own clock, so both end on time even when the operator is down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

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
"""Most names in the annotation: 256,000 characters, where the API server allows 262,144 in all annotations.

With more models, namespaces are named instead of their models, those with the most models first. With more namespaces,
every model counts as one that asks for a proof.
"""


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


def enforcement_of(model: Mapping[str, Any]) -> str:
    """The enforcement that the spec of a ModelDeployment asks for."""
    spec = model.get("spec") or {}
    return str((spec.get("isolation") or {}).get("enforcement") or "Enforce")


def is_proof_asked(policy: Configuration, namespace: str, enforcement: str) -> bool:
    """Whether pods of a model with this `enforcement` in its spec wait for a proof in this namespace."""
    isolation = policy.isolation
    return isolation.replacements != "Admit" and "Enforce" in {enforcement, isolation.minimum_of(namespace)}


def enforced_models(policy: Configuration, models: Iterable[tuple[str, str, str]]) -> str:
    """Models whose pods wait for a proof, "namespace/name"; `models`: (namespace, name, enforcement).

    "namespace/*" stands for every model of a namespace, "*" for every model.
    """
    names: dict[str, list[str]] = {}
    for namespace, name, enforcement in models:
        if is_proof_asked(policy, namespace, enforcement):
            names.setdefault(namespace, []).append(name)
    excess = sum(map(len, names.values())) - MOST_MODELS
    for namespace in sorted(names, key=lambda namespace: (-len(names[namespace]), namespace)):
        if excess <= 0:
            break
        excess -= len(names[namespace]) - 1
        names[namespace] = [EVERY]
    return EVERY if excess > 0 else ",".join(sorted(f"{space}/{name}" for space in names for name in names[space]))


def pods_until(policy: Configuration, evidence: IsolationEvidence | None, now: datetime) -> str:
    """Until when pods that need a proof are admitted; "" for not at all."""
    allowed = timedelta(seconds=policy.max_evidence_age_seconds)
    if evidence is None or isinstance(evidence_counts(evidence, allowed, now), Blocks):
        return ""
    by_age = evidence.observed_at and evidence.observed_at + allowed
    by_confirmation = evidence.confirmed_at and evidence.confirmed_at + CONFIRMED_FOR
    return timestamp(min(end for end in (by_age, by_confirmation, evidence.expires_at) if end is not None))
