"""Verifies an envelope: what it attests, or the one reason for refusal.

Two steps, in this order: is it authentic (`authenticate`: complete, signed by a trusted key, consistent), and does it
count (`must_count`: this cluster, in time, not older than what was accepted before).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

from hermetic.api.text import first_of
from hermetic.api.times import CLOCK_SKEW, timestamp
from hermetic.audit.attestation.refusals import Refusal, as_attestation, refused
from hermetic.audit.attestation.report_form import (
    AuditReport,
    must_agree_with_itself,
    observed_at_of,
    read_report,
    report_digest,
    verdict_on,
)
from hermetic.audit.attestation.statement import Predicate, Scope, Statement, moment, read_statement
from hermetic.audit.model.findings import Verdict
from hermetic.errors import AttestationRefused
from hermetic.signing.envelope import Envelope
from hermetic.signing.faults import EnvelopeFault
from hermetic.signing.keys import PublicKey, TrustedKeys
from hermetic.signing.signatures import is_signed_by, key_named_by

LONGEST_VALIDITY = timedelta(days=7)
MOST_NAMED = 3
"""Digests that a message names."""


@dataclass(frozen=True, slots=True)
class Attestation:
    """What a trusted key attests. `digest` identifies the attestation; times are aware, in UTC."""

    digest: str
    signed_by: PublicKey
    observed_at: datetime
    expires_at: datetime
    predicate: Predicate
    read_report: AuditReport

    @property
    def scope(self) -> Scope:
        """The cluster it is about."""
        return self.predicate.scope

    @property
    def sequence(self) -> int:
        """Its number in the chain, from 1."""
        return self.predicate.sequence

    @property
    def previous(self) -> str | None:
        """The digest of the previous attestation of the chain."""
        return self.predicate.previous

    @property
    def report(self) -> Mapping[str, Any]:
        """The audit JSON, without the findings that `predicate.omitted` counts."""
        return self.predicate.report

    def verdict_on(self, day: date) -> Verdict:
        """Pass, Fail or Unknown on a day (UTC): an exception may have expired since the audit."""
        return verdict_on(self.read_report, self.predicate.omitted, day)


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest attestation that this cluster accepted before."""

    digest: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class Expected:
    """What an attestation is checked against; None skips that check.

    `profile` "sealed" refuses evidence of the profile "filtered". `policy_digests` refuses evidence of every other
    policy file; it is not compared where there are none. `max_age_seconds` may only shorten expiresAt.
    """

    cluster_arm_id: str | None = None
    api_server_ca_fingerprint: str | None = None
    kube_system_uid: str | None = None
    profile: Literal["sealed", "filtered"] | None = None
    max_age_seconds: int | None = None
    newest: Newest | None = None
    policy_digests: tuple[str, ...] = ()


def verify(envelope: Envelope, trusted: TrustedKeys, expected: Expected, now: datetime) -> Attestation:
    """The attestation of an envelope that is authentic and counts at `now`. Raises AttestationRefused."""
    attestation = authenticate(envelope, trusted)
    must_count(attestation, expected, now)
    return attestation


def authenticate(envelope: Envelope, trusted: TrustedKeys) -> Attestation:
    """The attestation of an envelope that a key signed while it was trusted. Raises AttestationRefused."""
    attestation = read_signed(envelope, trusted)
    must_be_before_end_of_key(attestation)
    return attestation


def read_signed(envelope: Envelope, trusted: TrustedKeys) -> Attestation:
    """The attestation of an envelope that a trusted key signed at any time. Raises AttestationRefused."""
    with as_attestation():
        key = key_named_by(envelope, trusted)
        matches = is_signed_by(key, envelope)
    if not matches:
        raise _diagnosis(envelope, key)
    return _attestation(envelope, key)


def must_be_before_end_of_key(attestation: Attestation) -> None:
    """Check `notAfter` of the key. Raises AttestationRefused."""
    key = attestation.signed_by
    if key.not_after is not None and attestation.observed_at > key.not_after:
        at = timestamp(attestation.observed_at)
        raise refused(
            Refusal.KEY_EXPIRED, f"observed at {at}; '{key.name}' is trusted until {timestamp(key.not_after)}"
        )


def must_count(attestation: Attestation, expected: Expected, now: datetime) -> None:
    """Check cluster, profile, policy, time and replay. Raises AttestationRefused."""
    _must_be_about(attestation.scope, expected)
    if expected.profile == "sealed" and attestation.read_report.profile != "sealed":
        raise refused(Refusal.OTHER_PROFILE, "evaluated with the profile 'filtered', and 'sealed' is required")
    _must_be_of_policy(attestation, expected.policy_digests)
    _must_be_in_time(attestation, expected, now)
    _must_not_be_older(attestation, expected.newest)


def must_be_same_cluster(scope: Scope, other: Scope) -> None:
    """Raises AttestationRefused where ARM ids or known kube-system uids differ. A CA may be renewed: not compared."""
    _must_be_about(scope, Expected(other.cluster_arm_id))
    if None not in (scope.kube_system_uid, other.kube_system_uid):
        _must_be_about(scope, Expected(kube_system_uid=other.kube_system_uid))


def _attestation(envelope: Envelope, key: PublicKey) -> Attestation:
    statement = read_statement(envelope.payload)
    observed_at, expires_at = _times(statement.predicate)
    report = _consistent_report(statement)
    return Attestation(envelope.digest, key, observed_at, expires_at, statement.predicate, report)


def _diagnosis(envelope: Envelope, key: PublicKey) -> AttestationRefused:
    """Why the signature does not match, as far as the payload shows. Its content is not trusted."""
    try:
        _attestation(envelope, key)
    except AttestationRefused as error:
        refusal = EnvelopeFault.TRUNCATED if error.refusal == EnvelopeFault.TRUNCATED else Refusal.EDITED
        return refused(refusal, f"the signature of '{key.name}' does not match, and {error.message}")
    return refused(EnvelopeFault.BAD_SIGNATURE, f"the signature does not match the payload and the key '{key.name}'")


def _times(predicate: Predicate) -> tuple[datetime, datetime]:
    try:
        observed_at, expires_at = moment(predicate.observed_at), moment(predicate.expires_at)
    except ValueError as error:
        raise refused(EnvelopeFault.MALFORMED, f"a time of the payload is malformed: {error}") from None
    if expires_at <= observed_at:
        raise refused(Refusal.CONTRADICTORY, f"it expires at {predicate.expires_at}, before it was observed")
    if expires_at - observed_at > LONGEST_VALIDITY:
        longest = f"{LONGEST_VALIDITY.days} days"
        raise refused(Refusal.EXPIRY_TOO_FAR, f"it expires at {predicate.expires_at}; {longest} is the longest")
    return observed_at, expires_at


def _consistent_report(statement: Statement) -> AuditReport:
    predicate, subject = statement.predicate, statement.subject[0]
    report = read_report(predicate.report)
    if not report.cluster.casefold() == predicate.scope.cluster_arm_id.casefold() == subject.name.casefold():
        raise refused(Refusal.CONTRADICTORY, "subject, scope and report name different clusters")
    if f"sha256:{subject.digest.sha256}" != predicate.inputs.snapshot:
        raise refused(Refusal.CONTRADICTORY, "subject and inputs name different snapshots")
    if (predicate.previous is None) != (predicate.sequence == 1):
        raise refused(
            Refusal.CONTRADICTORY, f"number {predicate.sequence} of a chain, previous is {predicate.previous}"
        )
    if observed_at_of(report) != predicate.observed_at:
        raise refused(Refusal.CONTRADICTORY, f"observedAt is {predicate.observed_at}, the report's {report.started_at}")
    omitted = predicate.omitted
    if not (omitted.passed or omitted.not_applicable) and report_digest(predicate.report) != predicate.report_digest:
        raise refused(Refusal.CONTRADICTORY, "the report does not have the digest that the payload names")
    must_agree_with_itself(report, omitted)
    if predicate.sequence == 1 and any(private_subnet.basis != "audit" for private_subnet in report.private_subnets):
        raise refused(
            Refusal.CONTRADICTORY, "the first of a chain states about a subnet what only an earlier one could show"
        )
    return report


def _must_be_about(scope: Scope, expected: Expected) -> None:
    expected_id, attested_id = expected.cluster_arm_id, scope.cluster_arm_id
    if expected_id is not None and attested_id.casefold() != expected_id.casefold():
        raise refused(Refusal.OTHER_CLUSTER, f"about {attested_id}, not {expected_id}")
    for subject, here, attested in (
        ("the CA of the API server", expected.api_server_ca_fingerprint, scope.api_server_ca_fingerprint),
        ("the uid of kube-system", expected.kube_system_uid, scope.kube_system_uid),
    ):
        if here is None:
            continue
        if attested is None:
            raise refused(Refusal.SCOPE_INCOMPLETE, f"{subject} is {here} here, and is not named")
        if attested != here:
            raise refused(Refusal.OTHER_CLUSTER, f"{subject} is {attested} there and {here} here")


def _must_be_of_policy(attestation: Attestation, allowed: tuple[str, ...]) -> None:
    digest = attestation.predicate.inputs.policy
    if not allowed or digest in allowed:
        return
    evaluated = f"evaluated with the policy file {digest}" if digest is not None else "evaluated without a policy file"
    raise refused(Refusal.OTHER_POLICY, f"{evaluated}; `spec.policyDigests` lists {first_of(allowed, MOST_NAMED)}")


def _must_be_in_time(attestation: Attestation, expected: Expected, now: datetime) -> None:
    # No message contains the current time: it becomes part of a status, which would then change every second.
    observed_at, expires_at = attestation.observed_at, attestation.expires_at
    if observed_at > now + CLOCK_SKEW:
        raise refused(Refusal.FROM_THE_FUTURE, f"observed at {timestamp(observed_at)}, which is still to come")
    if now >= expires_at:
        raise refused(Refusal.EXPIRED, f"expired at {timestamp(expires_at)}")
    oldest = expected.max_age_seconds
    if oldest is not None and now >= observed_at + timedelta(seconds=oldest):
        raise refused(Refusal.EXPIRED, f"observed at {timestamp(observed_at)}; {oldest} s is the oldest allowed")


def _must_not_be_older(attestation: Attestation, newest: Newest | None) -> None:
    if newest is None or attestation.digest == newest.digest or attestation.observed_at > newest.observed_at:
        return
    at, accepted = timestamp(attestation.observed_at), timestamp(newest.observed_at)
    raise refused(Refusal.REPLAYED, f"observed at {at}; one of {accepted} was accepted before ({newest.digest})")
