"""Chooses the attestation that counts of all those in a cluster: the newest that is not refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermetic.audit.attestation.custom_resource import from_object
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.verification import Attestation, Expected, authenticate, must_count
from hermetic.errors import AttestationRefused
from hermetic.signing.keys import TrustedKeys

Authenticated = Attestation | AttestationRefused
"""The result for an object, valid while the keys are the same: what it attests, or why it is not authentic."""


@dataclass(frozen=True, slots=True)
class ChosenAttestation:
    """The attestation that counts, None where there is none, and why each other one is refused, by name.

    `older` are those that would count without a newer one; `expired` is the newest of those that are refused only
    because they have expired.
    """

    accepted: Attestation | None
    name: str
    refused: Mapping[str, AttestationRefused]
    older: tuple[str, ...]
    expired: Attestation | None = None


def authenticated(manifest: Mapping[str, Any], trusted: TrustedKeys) -> Authenticated:
    """Verify an EgressAttestation as the API server returns it. Signature checks are slow: cache the result."""
    try:
        return authenticate(from_object(manifest), trusted)
    except AttestationRefused as refusal:
        return refusal


def choose_among(candidates: Mapping[str, Authenticated], expected: Expected, now: datetime) -> ChosenAttestation:
    """The newest that counts for `expected` at `now`, with the names of the objects.

    Of two observed in the same second the one with the higher sequence, then the greater digest: the choice does not
    depend on the order of the input.
    """
    counting: list[tuple[Attestation, str]] = []
    refusals: dict[str, AttestationRefused] = {}
    expired: list[Attestation] = []
    for name, one in candidates.items():
        refusal = one if isinstance(one, AttestationRefused) else _objection(one, expected, now)
        if refusal is not None:
            refusals[name] = refusal
        elif isinstance(one, Attestation):
            counting.append((one, name))
        if isinstance(one, Attestation) and refusal is not None and refusal.refusal == Refusal.EXPIRED:
            expired.append(one)
    older_still = _surpassed(refusals, counting, expected)
    counting.sort(key=lambda pair: (*_rank(pair[0]), pair[1]), reverse=True)
    if not counting:
        return ChosenAttestation(None, "", refusals, (), max(expired, key=_rank, default=None))
    (newest, name), *older = counting
    still_refused = {name: refusal for name, refusal in refusals.items() if name not in older_still}
    return ChosenAttestation(newest, name, still_refused, (*(name for _, name in older), *older_still))


def _objection(attestation: Attestation, expected: Expected, now: datetime) -> AttestationRefused | None:
    try:
        must_count(attestation, expected, now)
    except AttestationRefused as refusal:
        return refusal
    return None


def _rank(attestation: Attestation) -> tuple[datetime, int, str]:
    return (attestation.observed_at, attestation.sequence, attestation.digest)


def _surpassed(
    refusals: Mapping[str, AttestationRefused], counting: list[tuple[Attestation, str]], expected: Expected
) -> list[str]:
    """Refused objects older than the accepted one: superseded while that one exists, replays once it is gone."""
    newest = expected.newest
    if newest is None or all(attestation.digest != newest.digest for attestation, _ in counting):
        return []
    return [name for name, refusal in refusals.items() if refusal.refusal == Refusal.REPLAYED]
