"""Signs a report: the envelope that `hermetic audit --sign KEY --attestation FILE` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from hermetic.api.times import timestamp
from hermetic.audit.attestation.report_form import observed_at_of, read_report, report_digest, without_what_is_fine
from hermetic.audit.attestation.statement import (
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    Inputs,
    Omitted,
    Predicate,
    Scope,
    Statement,
    Subject,
    SubjectDigest,
    Tool,
    moment,
)
from hermetic.audit.attestation.verification import (
    Attestation,
    Expected,
    authenticate,
    must_be_same_cluster,
    must_count,
)
from hermetic.errors import AttestationRefused, ReportTooLarge, ReportUnusable
from hermetic.signing.canonical_json import canonical
from hermetic.signing.envelope import LARGEST_PAYLOAD, Envelope, signed_bytes
from hermetic.signing.keys import SigningKey, trusted
from hermetic.signing.signatures import sign

VALIDITY = timedelta(days=1)
"""Default validity of evidence: the default of EgressAudit.spec.maxEvidenceAgeSeconds."""
COMPACT_ABOVE = 190_000
"""Bytes of payload that `kubectl apply` still accepts: it stores a copy in an annotation, of 256 KiB at most."""
LARGEST = LARGEST_PAYLOAD // 4 * 3


@dataclass(frozen=True, slots=True)
class Provenance:
    """What the report is about, which program made it, and its input files."""

    scope: Scope
    tool: Tool
    inputs: Inputs


def sign_report(
    report: Mapping[str, Any],
    provenance: Provenance,
    key: SigningKey,
    *,
    now: datetime,
    previous: Attestation | None = None,
    valid_for: timedelta = VALIDITY,
) -> Envelope:
    """The signed envelope around an audit JSON (`hermetic.dev/audit/v1`), the next one after `previous`.

    It was observed when the audit started, and expires `valid_for` later (7 days at most), whenever it is signed.
    Pass and NotApplicable findings of a large report are only counted. Raises ReportTooLarge where the rest does not
    fit, ReportUnusable for a report that no verifier would accept now, and AttestationRefused where `previous` is about
    another cluster.
    """
    if previous is not None:
        must_be_same_cluster(previous.scope, provenance.scope)
    try:
        payload = _payload(report, provenance, previous, valid_for)
    except AttestationRefused as refusal:
        raise ReportUnusable(refusal.message) from refusal
    except (ValueError, ValidationError) as error:
        raise ReportUnusable(f"the report cannot be signed: {error}") from error
    envelope = Envelope(payload, key.public.keyid, sign(key, signed_bytes(payload)))
    _must_be_acceptable(envelope, key, previous, now)
    return envelope


def _payload(
    report: Mapping[str, Any], provenance: Provenance, previous: Attestation | None, valid_for: timedelta
) -> bytes:
    observed_at = observed_at_of(read_report(report))
    predicate = Predicate(
        scope=provenance.scope,
        sequence=1 if previous is None else previous.sequence + 1,
        previous=None if previous is None else previous.digest,
        observed_at=observed_at,
        expires_at=timestamp(moment(observed_at) + valid_for),
        tool=provenance.tool,
        inputs=provenance.inputs,
        report_digest=report_digest(report),
        omitted=Omitted(),
        report=dict(report),
    )
    if len(payload := _statement(predicate)) <= COMPACT_ABOVE:
        return payload
    short_report, omitted = without_what_is_fine(report)
    payload = _statement(predicate.model_copy(update={"report": short_report, "omitted": omitted}))
    if len(payload) > LARGEST:
        raise ReportTooLarge(
            f"{len(short_report['findings'])} findings that are not Pass need {len(payload)} bytes; an "
            "EgressAttestation "
            f"holds {LARGEST}"
        )
    return payload


def _statement(predicate: Predicate) -> bytes:
    subject = Subject(
        name=predicate.scope.cluster_arm_id,
        digest=SubjectDigest(sha256=predicate.inputs.snapshot.removeprefix("sha256:")),
    )
    statement = Statement(type_=STATEMENT_TYPE, subject=[subject], predicate_type=PREDICATE_TYPE, predicate=predicate)
    return canonical(statement.as_json())


def _must_be_acceptable(envelope: Envelope, key: SigningKey, previous: Attestation | None, now: datetime) -> None:
    """Verify before returning, so that an unusable attestation fails here and not in the cluster."""
    try:
        attestation = authenticate(envelope, trusted([key.public]))
        must_count(attestation, Expected(), now)
    except AttestationRefused as refusal:
        raise ReportUnusable(f"the report cannot be signed: {refusal.refusal}: {refusal.message}") from refusal
    if previous is not None and attestation.observed_at <= previous.observed_at:
        raise ReportUnusable(
            f"observed at {timestamp(attestation.observed_at)}, not after the previous attestation "
            f"({timestamp(previous.observed_at)})"
        )
