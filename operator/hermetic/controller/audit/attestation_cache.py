"""Cache of authenticated EgressAttestations: each is verified once per resourceVersion and set of trusted keys.

Verification takes tens of milliseconds and a report megabytes, so the report is kept only of the attestation that is
chosen; of the others only the fields that the choice needs.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import date, datetime

from hermetic.audit.attestation.choosing import Authenticated, ChosenAttestation, authenticated, choose_among
from hermetic.audit.attestation.imports import Imports, first_imports
from hermetic.audit.attestation.verification import Attestation, Expected
from hermetic.audit.model.findings import Finding, Verdict
from hermetic.controller.audit.faults import AuditFaults
from hermetic.errors import AttestationRefused
from hermetic.kinds import EGRESS_ATTESTATION
from hermetic.kube.store import Store
from hermetic.signing.faults import EnvelopeFault
from hermetic.signing.keys import TrustedKeys

Edition = tuple[str, int]  # (name, resourceVersion)


class Attestations:
    """Chooses among the attestations in the store; verifies one again when its version or the trusted keys change."""

    def __init__(self, store: Store, faults: AuditFaults) -> None:
        self._store = store
        self._faults = faults
        self._trusted: TrustedKeys = {}
        self._known: dict[Edition, Authenticated] = {}
        self._whole: dict[Edition, Authenticated] = {}

    async def choose(
        self, trusted: TrustedKeys, expected: Expected, remembered: Imports, now: datetime
    ) -> ChosenAttestation:
        """Return the newest attestation that counts for this cluster at `now`; `remembered`: earlier first imports."""
        if trusted != self._trusted:
            self._trusted, self._known, self._whole = trusted, {}, {}
        present = set(self._store.versions(EGRESS_ATTESTATION).items())
        self._known = {edition: one for edition, one in self._known.items() if edition in present}
        for edition in sorted(present - self._known.keys()):
            self._known[edition] = _without_report(self._read(edition))
            await asyncio.sleep(0)  # fifty in a row take seconds; the Lease must be renewed meanwhile
        candidates = {name: one for (name, _), one in self._known.items()}
        created = {name: self._created_at(name, now) for name in candidates}
        imports = first_imports(candidates, created, remembered, expected.cluster_arm_id)
        choice = choose_among(candidates, expected, now, imports)
        return choice if choice.accepted is None else replace(choice, accepted=self._in_full(choice))

    def _created_at(self, name: str, now: datetime) -> datetime:
        """When the object was created, by the clock of the API server; now where it does not say."""
        manifest = self._store.object(EGRESS_ATTESTATION, name) or {}
        created = (manifest.get("metadata") or {}).get("creationTimestamp")
        return datetime.fromisoformat(created) if created else now

    def _in_full(self, choice: ChosenAttestation) -> Attestation:
        edition = next(each for each in self._known if each[0] == choice.name)
        if edition not in self._whole:
            self._whole = {edition: self._read(edition)}
        whole = self._whole[edition]
        if not isinstance(whole, Attestation):
            raise whole  # deleted meanwhile: its watch event queues the audit again
        return whole

    def _read(self, edition: Edition) -> Authenticated:
        try:
            return authenticated(self._store.object(EGRESS_ATTESTATION, edition[0]) or {}, self._trusted)
        except Exception as error:  # noqa: BLE001 - an unreadable attestation must not block the others
            self._faults.met("attestation", error)
            return AttestationRefused(f"reading it failed: {error!r}", refusal=EnvelopeFault.MALFORMED)


def _without_report(one: Authenticated) -> Authenticated:
    if not isinstance(one, Attestation):
        return one
    decisive = [finding for finding in one.read_report.findings if _is_decisive_fail(finding.on(date.max))]
    bare = one.predicate.model_copy(update={"report": {}})
    return replace(one, predicate=bare, read_report=one.read_report.model_copy(update={"findings": decisive}))


def _is_decisive_fail(finding: Finding) -> bool:
    """Whether it closes the gate: exceptions are compared with those of a newer Fail."""
    return finding.verdict is Verdict.FAIL and finding.severity.decides
