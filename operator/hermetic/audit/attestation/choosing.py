"""Of all attestations in a cluster, the one that counts: the newest that nothing speaks against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermetic.audit.attestation.custom_resource import from_object
from hermetic.audit.attestation.keys import TrustedKeys
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.verification import Attestation, Expected, verify
from hermetic.errors import AttestationRefused


@dataclass(frozen=True, slots=True)
class Choice:
    """The attestation that counts, None where there is none, and why each other one does not, by name."""

    accepted: Attestation | None
    name: str
    refused: Mapping[str, AttestationRefused]
    older: tuple[str, ...]


def choose(objects: Iterable[Mapping[str, Any]], trusted: TrustedKeys, expected: Expected, now: datetime) -> Choice:
    """Judge every EgressAttestation (as the API server has it) and take the newest that counts.

    Of two observed in the same second the one further along its chain, then the greater digest: the same choice,
    whatever order they come in. `older` are those that would count if there were no newer one.
    """
    counting: list[tuple[Attestation, str]] = []
    refusals: dict[str, AttestationRefused] = {}
    for each in objects:
        name = str(each["metadata"]["name"])
        try:
            counting.append((verify(from_object(each), trusted, expected, now), name))
        except AttestationRefused as refusal:
            refusals[name] = refusal
    older_still = _surpassed(refusals, counting, expected)
    counting.sort(key=lambda pair: (pair[0].observed_at, pair[0].sequence, pair[0].digest, pair[1]), reverse=True)
    if not counting:
        return Choice(None, "", refusals, ())
    (newest, name), *older = counting
    still_refused = {name: refusal for name, refusal in refusals.items() if name not in older_still}
    return Choice(newest, name, still_refused, (*(name for _, name in older), *older_still))


def _surpassed(
    refusals: Mapping[str, AttestationRefused], counting: list[tuple[Attestation, str]], expected: Expected
) -> list[str]:
    """Objects from before the accepted one: history while that one is still there, a replay once it is gone."""
    newest = expected.newest
    if newest is None or all(attestation.digest != newest.digest for attestation, _ in counting):
        return []
    return [name for name, refusal in refusals.items() if refusal.refusal == Refusal.REPLAYED]
