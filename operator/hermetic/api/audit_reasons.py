"""Why a condition of an EgressAudit is what it is: one word for programs, its meaning, and what to do about it."""

from __future__ import annotations

from hermetic.signing.explained import ExplainedReason


class AuditReason(ExplainedReason):
    """What the evidence has and what it lacks. The verdict is in `reasons.py`: a model has it as well."""

    # attestations and the nodes that they cover
    ATTESTATION_COUNTS = (
        "AttestationCounts",
        "The newest attestation is signed by a trusted key, is about this cluster, and is valid now.",
        "Nothing to do.",
    )
    ATTESTATION_MISSING = (
        "AttestationMissing",
        "The cluster has no attestation from outside.",
        "Audit from the jump box with 'hermetic audit --azure CLUSTER --sign KEY --attestation FILE', "
        "then 'kubectl apply -f FILE'.",
        True,
    )
    ATTESTATION_REFUSED = (
        "AttestationRefused",
        "The cluster has attestations, and each is refused.",
        "Read the message. It names the refusal, and 'hermetic explain REFUSAL' shows what to do.",
        True,
    )
    ATTESTATION_CONTRADICTED = (
        "AttestationContradicted",
        "A trusted key signed a newer Fail about this cluster. It is refused as evidence, and the earlier Pass is no "
        "longer sufficient alone.",
        "Fix the findings of that audit. Then audit again from a jump box with a kubeconfig and a correct clock, and "
        "apply the new attestation. An accepted newer Pass resolves the contradiction.",
        True,
    )
    PLACES_ATTESTED = (
        "PlacesAttested",
        "Every ready node is in a pool and a subnet that the attestation covers.",
        "Nothing to do.",
    )
    POOL_CHANGED = (
        "PoolChanged",
        "Nodes of an attested pool run another image than the audit saw.",
        "Audit again from the jump box and apply the new attestation. The verdict stays until then.",
    )
    POOL_NOT_ATTESTED = (
        "PoolNotAttested",
        "A ready node is in a pool or a subnet that the attestation does not cover.",
        "Audit again from the jump box with 'hermetic audit --azure CLUSTER --sign KEY --attestation FILE', and apply "
        "the new attestation.",
        True,
    )
    EVIDENCE_YOUNG = "EvidenceYoung", "The attestation is recent.", "Nothing to do."
    EVIDENCE_AGING = (
        "EvidenceAging",
        "Three quarters of the attestation's time are over.",
        "Audit again from the jump box and apply the new attestation before the moment that the message names.",
    )
    EVIDENCE_EXPIRING = (
        "EvidenceExpiring",
        "Nine tenths of the attestation's time are over. When it expires, the gate closes for new pods.",
        "Audit again from the jump box now, and apply the new attestation.",
    )

    # exceptions
    EXCEPTIONS_COUNT = (
        "ExceptionsCount",
        "Every exception is in effect, and no exception expires soon.",
        "Nothing to do.",
    )
    EXCEPTION_EXPIRING = (
        "ExceptionExpiring",
        "An exception expires within two weeks. Its finding then counts again.",
        "Fix the finding, or renew the exception with a later last day: in the file of 'hermetic audit --exceptions', "
        "or in spec.exceptions of the EgressAudit.",
    )
    EXCEPTION_EXPIRED = (
        "ExceptionExpired",
        "An exception has expired. Its finding counts again.",
        "Fix the finding, or renew the exception with a later last day: in the file of 'hermetic audit --exceptions', "
        "or in spec.exceptions of the EgressAudit. Remove it where it is no longer needed.",
        True,
    )

    # the cluster's own objects, and the probe
    CLUSTER_SEEN = (
        "ClusterSeen",
        "The audit evaluates the cluster's own objects again at every change.",
        "Nothing to do.",
    )
    CLUSTER_NOT_SEEN = (
        "ClusterNotSeen",
        "The audit has not yet listed all of the cluster's own objects.",
        "Wait. If it stays, read the operator's log. It names the kind that the operator may not list.",
    )
    PROBE_RAN = "ProbeRan", "The probe recently tried every known egress path.", "Nothing to do."
    PROBE_NOT_CONFIGURED = (
        "ProbeNotConfigured",
        "spec.probe of the EgressAudit is not set, so the probe has never run.",
        "Set spec.probe.image to an image by digest that has python3, such as the operator's own image.",
        True,
    )
    PROBE_PENDING = (
        "ProbePending",
        "The first round of the probe has not ended yet.",
        "Wait a minute. If it stays, check the Jobs with the label app.kubernetes.io/component=egress-probe.",
    )
    PROBE_STALE = (
        "ProbeStale",
        "The last round of the probe ended more than two intervals ago, or is dated in the future.",
        "Look at the Jobs with the label app.kubernetes.io/component=egress-probe, and at the operator's log.",
        True,
    )
    PROBE_PLACE_NOT_COVERED = (
        "ProbePlaceNotCovered",
        "A pool or subnet has a ready node, and the last round of the probe did not run there.",
        "Wait for the next round. If it stays, check the probe pods on the nodes of that pool.",
    )
    PROBE_INCOMPLETE = (
        "ProbeIncomplete",
        "At least one node pool or subnet returned no probe result. A missing result is not a Pass.",
        "Check the probe pods that the message names: image, admission, scheduling.",
        True,
    )
    AUDIT_FAULT = (
        "AuditFault",
        "A part of the operator's own audit failed with an unexpected error. Running pods continue to serve. If no "
        "verdict is left, the gate closes.",
        "Report the traceback in the operator's log. The operator tries the audit again, with pauses of up to five "
        "minutes.",
    )


# Holds for now: a person should act soon.
RUNNING_OUT = frozenset({AuditReason.EVIDENCE_AGING, AuditReason.EVIDENCE_EXPIRING, AuditReason.EXCEPTION_EXPIRING})
