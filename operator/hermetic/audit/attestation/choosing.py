"""Chooses the attestation that counts of all those in a cluster: the newest that is not refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any

from hermetic.api.times import CLOCK_SKEW, timestamp
from hermetic.audit.attestation.custom_resource import from_object
from hermetic.audit.attestation.refusals import Refusal, refused
from hermetic.audit.attestation.verification import (
    LONGEST_VALIDITY,
    Attestation,
    Expected,
    must_be_before_end_of_key,
    must_count,
    read_signed,
)
from hermetic.errors import AttestationRefused
from hermetic.signing.keys import TrustedKeys

Authenticated = Attestation | AttestationRefused
"""The result for an object, valid while the keys are the same: what it attests, or why it is not authentic."""


@dataclass(frozen=True, slots=True)
class ChosenAttestation:
    """The attestation that counts, None where there is none, and why each other one is refused, by name.

    `older` are those that would count without a newer one; `expired` is the newest of those that are refused only
    because they have expired. `newer_fails` are authentic, say Fail about this cluster and are newer than the accepted
    one, whether or not they are refused as evidence: each with its name. `digests` of the authentic ones by name,
    `imports`: first import by digest, also of some that are gone.
    """

    accepted: Attestation | None
    name: str
    refused: Mapping[str, AttestationRefused]
    older: tuple[str, ...]
    expired: Attestation | None = None
    newer_fails: tuple[tuple[str, Attestation], ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, datetime] = field(default_factory=dict)


def authenticated(manifest: Mapping[str, Any], trusted: TrustedKeys) -> Authenticated:
    """Verify an EgressAttestation as the API server returns it. Signature checks are slow: cache the result."""
    try:
        return read_signed(from_object(manifest), trusted)
    except AttestationRefused as refusal:
        return refusal


def choose_among(
    candidates: Mapping[str, Authenticated],
    expected: Expected,
    now: datetime,
    imports: Mapping[str, datetime] | None = None,
) -> ChosenAttestation:
    """The newest that counts for `expected` at `now`, with the names of the objects.

    `imports` is when each digest was first imported, by the clock of the API server (`first_imports`).

    Of two observed in the same second the one with the higher sequence, then the greater digest: the choice does not
    depend on the order of the input.
    """
    imports = imports or {}
    digests = {name: entry.digest for name, entry in candidates.items() if isinstance(entry, Attestation)}
    counting: list[tuple[Attestation, str]] = []
    refusals: dict[str, AttestationRefused] = {}
    expired: list[Attestation] = []
    for name, candidate in candidates.items():
        refusal = (
            candidate if isinstance(candidate, AttestationRefused) else _objection(candidate, expected, now, imports)
        )
        if refusal is not None:
            refusals[name] = refusal
        elif isinstance(candidate, Attestation):
            counting.append((candidate, name))
        if isinstance(candidate, Attestation) and refusal is not None and refusal.refusal == Refusal.EXPIRED:
            expired.append(candidate)
    counting.sort(key=lambda pair: (*_rank(pair[0]), pair[1]), reverse=True)
    if not counting:
        newest_expired = max(expired, key=_rank, default=None)
        return ChosenAttestation(None, "", refusals, (), newest_expired, digests=digests, imports=imports)
    (newest, name), *older = counting
    # Replays are older than the accepted one: superseded while it is there, refused once it is gone.
    older_still = [name for name, refusal in refusals.items() if refusal.refusal == Refusal.REPLAYED]
    still_refused = {name: refusal for name, refusal in refusals.items() if name not in older_still}
    fails = _newer_fails(candidates, newest, expected, imports)
    names = (*(name for _, name in older), *older_still)
    return ChosenAttestation(newest, name, still_refused, names, newer_fails=fails, digests=digests, imports=imports)


def _newer_fails(
    candidates: Mapping[str, Authenticated],
    accepted: Attestation,
    expected: Expected,
    imports: Mapping[str, datetime],
) -> tuple[tuple[str, Attestation], ...]:
    """Authentic Fails about this ARM id that are newer than the accepted one, by name."""
    arm_id = expected.cluster_arm_id
    attestations = {name: entry for name, entry in candidates.items() if isinstance(entry, Attestation)}
    earlier = _earlier_in_chain(accepted, attestations)
    fails = []
    for name, candidate in attestations.items():
        if candidate.digest == accepted.digest or candidate.read_report.verdict != "Fail":
            continue
        if arm_id is not None and candidate.scope.cluster_arm_id.casefold() != arm_id.casefold():
            continue
        if candidate.digest not in earlier and _is_newer(candidate, accepted, imports):
            fails.append((name, candidate))
    return tuple(sorted(fails, key=itemgetter(0)))


def _is_newer(candidate: Attestation, accepted: Attestation, imports: Mapping[str, datetime]) -> bool:
    """Whether it follows the accepted one in its chain, was observed no earlier, or was first imported later.

    Times have whole seconds: of two that were observed in the same one, neither is known to be the older.
    The clock of the host that signed it may be wrong. Nothing is observed after its import, so that a clock that is
    ahead makes no statement newer than that; a clock that is behind makes none older than the accepted one. A statement
    that was observed longer before its import than any validity is an old one, from an archive for example.
    """
    imported_at, accepted_at = imports.get(candidate.digest), imports.get(accepted.digest)
    observed_at = min(candidate.observed_at, imported_at or candidate.observed_at)
    if candidate.previous == accepted.digest or observed_at >= accepted.observed_at:
        return True
    if imported_at is None or accepted_at is None or imported_at - candidate.observed_at > LONGEST_VALIDITY:
        return False
    return imported_at > accepted_at


def _earlier_in_chain(accepted: Attestation, attestations: Mapping[str, Attestation]) -> set[str]:
    """Digests that the accepted one follows, as far as the attestations before it are here."""
    previous = {attestation.digest: attestation.previous for attestation in attestations.values()}
    earlier: set[str] = set()
    digest = accepted.previous
    while digest is not None and digest not in earlier:
        earlier.add(digest)
        digest = previous.get(digest)
    return earlier


def _objection(
    attestation: Attestation, expected: Expected, now: datetime, imports: Mapping[str, datetime]
) -> AttestationRefused | None:
    try:
        must_be_before_end_of_key(attestation)
        must_count(attestation, expected, now)
        _must_be_observed_before_import(attestation, imports.get(attestation.digest))
    except AttestationRefused as refusal:
        return refusal
    return None


def _must_be_observed_before_import(attestation: Attestation, imported_at: datetime | None) -> None:
    """A clock that is ahead must not make a statement count later than it was made, nor for longer."""
    if imported_at is not None and attestation.observed_at > imported_at + CLOCK_SKEW:
        observed, imported = timestamp(attestation.observed_at), timestamp(imported_at)
        raise refused(
            Refusal.FROM_THE_FUTURE,
            f"observed at {observed}, and imported before that, at {imported}: the clock of the host that signed it is "
            f"ahead, or that of the API server was behind. Correct the clock and audit again",
        )


def _rank(attestation: Attestation) -> tuple[datetime, int, str]:
    return (attestation.observed_at, attestation.sequence, attestation.digest)
