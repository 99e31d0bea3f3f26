"""The condition NodesAttested: whether the accepted attestation covers the place of every ready node."""

from __future__ import annotations

from hermetic.api.audit_reasons import AuditReason
from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType
from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.api.text import first_of
from hermetic.audit.verdict.inputs import VerdictInputs
from hermetic.audit.verdict.node_places import changed_images, problems_of_places

MOST_NAMED = 3
"""Places that the message names."""


def audit_again(spec: EgressAuditSpec, *, with_kubernetes: bool = False) -> str:
    """The commands that bring a new attestation of this cluster."""
    kubernetes = " --kube" if with_kubernetes else ""
    return (
        f"hermetic audit --azure {spec.cluster}{kubernetes} --sign KEY --attestation attestation.yaml, "
        "then kubectl apply -f attestation.yaml"
    )


def nodes_attested(spec: EgressAuditSpec, inputs: VerdictInputs) -> ConditionUpdate:
    """False where a ready node is elsewhere: no audit evaluated the network of its pool or subnet."""
    kind, accepted = ConditionType.NODES_ATTESTED, inputs.choice.accepted
    if accepted is None:
        return ConditionUpdate(kind, "Unknown", AuditReason.ATTESTATION_MISSING, "no valid attestation")
    coverage = accepted.read_report.coverage
    if coverage is None and inputs.nodes:
        message = (
            f"{inputs.choice.name} does not list the pools and subnets that it covers: an earlier release signed it. "
            f"Audit again with this release: {audit_again(spec)}"
        )
        return ConditionUpdate(kind, "False", AuditReason.POOL_NOT_ATTESTED, message)
    if coverage is None:
        return ConditionUpdate(kind, "True", AuditReason.PLACES_ATTESTED, "no node is ready")
    problems = tuple(problems_of_places(inputs.nodes, coverage))
    if problems:
        listed = first_of([problem.message for problem in problems], MOST_NAMED, "; ")
        command = audit_again(spec, with_kubernetes=any(problem.is_provisioned for problem in problems))
        message = f"{listed}. No audit evaluated the network there; audit again: {command}"
        return ConditionUpdate(kind, "False", AuditReason.POOL_NOT_ATTESTED, message)
    if changed := tuple(changed_images(inputs.nodes, coverage)):
        return ConditionUpdate(kind, "True", AuditReason.POOL_CHANGED, first_of(changed, MOST_NAMED, "; "))
    message = f"the attestation covers every ready node; it lists {len(coverage.pools)} pools"
    return ConditionUpdate(kind, "True", AuditReason.PLACES_ATTESTED, message)
