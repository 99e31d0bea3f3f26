"""The isolation gate: no pod without fresh evidence that the node subnets have no egress path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from hermetic.api.audit_reasons import AuditReason
from hermetic.api.conditions import ConditionType
from hermetic.api.isolation import ENFORCEMENTS, Enforcement
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.api.times import CLOCK_SKEW, timestamp
from hermetic.plan.gate_results import HOLDS, Blocks, Holds
from hermetic.plan.snapshot import ClusterSnapshot, IsolationEvidence

# A verdict needs all three: Azure configuration, cluster objects and packets.
NEEDED_SOURCES = frozenset({"azure", "kubernetes", "probe"})
CONFIRMED_FOR = timedelta(minutes=15)
"""How long a Pass counts without confirmation: two evaluations in a row (every five minutes) may fail, not three."""
# The audit's reason for Unknown -> the gate's: evidence that a person must provide, pending evidence, old evidence.
OF_THE_AUDIT: Mapping[str, Reason] = {
    AuditReason.ATTESTATION_MISSING: Reason.ISOLATION_EVIDENCE_MISSING,
    AuditReason.ATTESTATION_REFUSED: Reason.ISOLATION_EVIDENCE_MISSING,
    AuditReason.PROBE_NOT_CONFIGURED: Reason.ISOLATION_EVIDENCE_MISSING,
    AuditReason.CLUSTER_NOT_SEEN: Reason.ISOLATION_EVIDENCE_PENDING,
    AuditReason.PROBE_PENDING: Reason.ISOLATION_EVIDENCE_PENDING,
    Reason.ISOLATION_EVIDENCE_STALE: Reason.ISOLATION_EVIDENCE_STALE,
}


def isolation_is_proven(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, now: datetime) -> Holds | Blocks:
    """Whether the evidence counts for this deployment."""
    return evidence_counts(snapshot.evidence, allowed_age(spec, snapshot), now)


def evidence_counts(evidence: IsolationEvidence | None, allowed: timedelta, now: datetime) -> Holds | Blocks:
    """Holds if evidence exists, is complete and fresh, and says Pass. Else Unknown, or False for a verdict Fail."""
    if evidence is None:
        return _unknown(
            Reason.ISOLATION_EVIDENCE_MISSING,
            "there is no EgressAudit named 'cluster': no evidence that the node subnets have no egress path",
        )
    if evidence.verdict == "Fail":
        message = evidence.message or "the audit found an egress path of the node subnets"
        return Blocks(Reason.ISOLATION_BROKEN, message, ConditionType.ISOLATION_VERIFIED)
    if evidence.verdict is None:
        return _unknown(Reason.ISOLATION_EVIDENCE_PENDING, "the EgressAudit 'cluster' has not been evaluated yet")
    if evidence.verdict == "Unknown":
        message = evidence.message or "the audit could not see enough to rule out an egress path"
        return _unknown(OF_THE_AUDIT.get(evidence.reason, Reason.ISOLATION_UNKNOWN), message)
    if missing := NEEDED_SOURCES - evidence.sources:
        return _unknown(
            Reason.ISOLATION_EVIDENCE_MISSING, f"the verdict lacks evidence from: {', '.join(sorted(missing))}"
        )
    stale = _fresh(evidence, allowed, now)
    return stale if isinstance(stale, Blocks) else _confirmed(evidence, now)


def enforcement(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Enforcement:
    """The effective enforcement: a deployment may ask for more than its namespace's minimum, never for less."""
    minimum = snapshot.policy.isolation.minimum_of(snapshot.owner.namespace)
    return ENFORCEMENTS.strictest(spec.isolation.enforcement, minimum)


def gate(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, now: datetime) -> Holds | Blocks | None:
    """The gate's verdict under the enforcement in effect; None when that is Off."""
    effective = enforcement(spec, snapshot)
    if effective == "Off":
        return None
    verdict = isolation_is_proven(spec, snapshot, now)
    requested = spec.isolation.enforcement
    if requested == effective or not isinstance(verdict, Blocks):
        return verdict
    raised = (
        f"`isolation.enforcement` {requested} is raised to {effective}, the minimum that the operator's configuration "
    )
    message = f"{raised}sets for namespace '{snapshot.owner.namespace}', and isolation is not proven: {verdict.message}"
    return replace(verdict, reason=Reason.ENFORCEMENT_RAISED, message=message)


def allowed_age(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> timedelta:
    """The oldest evidence that counts: a deployment may demand fresher evidence than the cluster does, not older."""
    return timedelta(seconds=min(spec.isolation.max_evidence_age_seconds, snapshot.policy.max_evidence_age_seconds))


def closes_at(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> datetime | None:
    """When the evidence stops counting for this deployment; None without evidence."""
    evidence = snapshot.evidence
    if evidence is None or evidence.observed_at is None:
        return None
    by_age = evidence.observed_at + allowed_age(spec, snapshot)
    return by_age if evidence.expires_at is None else min(by_age, evidence.expires_at)


def _fresh(evidence: IsolationEvidence, allowed: timedelta, now: datetime) -> Holds | Blocks:
    if evidence.observed_at is None:
        return _unknown(Reason.ISOLATION_EVIDENCE_MISSING, "the evidence has no time of observation")
    if evidence.observed_at > now + timedelta(minutes=5):
        return _unknown(Reason.ISOLATION_UNKNOWN, "the evidence is dated in the future: check the auditor's clock")
    if evidence.expires_at is not None and now >= evidence.expires_at:
        return _unknown(Reason.ISOLATION_EVIDENCE_STALE, f"the evidence expired at {timestamp(evidence.expires_at)}")
    # A time in the message, not an age: an age would change the message, and cause a write, every second.
    if now >= evidence.observed_at + allowed:
        return _unknown(
            Reason.ISOLATION_EVIDENCE_STALE,
            f"the evidence was observed at {timestamp(evidence.observed_at)}, and "
            f"{_hours(allowed)} is the oldest allowed",
        )
    return HOLDS


def _confirmed(evidence: IsolationEvidence, now: datetime) -> Holds | Blocks:
    """A status may be of an earlier process or another writer: a Pass counts only if this process confirmed it."""
    at = evidence.confirmed_at
    if at is not None and at - CLOCK_SKEW <= now < at + CONFIRMED_FOR:  # earlier: the clock was set back since
        return HOLDS
    since = "it started" if at is None else timestamp(at)
    return _unknown(
        Reason.ISOLATION_EVIDENCE_PENDING,
        f"the verdict of the EgressAudit 'cluster' is Pass, and the operator could not confirm that since {since}",
    )


def _hours(age: timedelta) -> str:
    return f"{age.total_seconds() / 3600:g} h"


def _unknown(reason: Reason, message: str) -> Blocks:
    return Blocks(reason, message, ConditionType.ISOLATION_VERIFIED, truth="Unknown")
