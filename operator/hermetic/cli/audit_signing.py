"""A report, signed for the cluster: what `hermetic audit --sign KEY --attestation FILE` writes."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

from hermetic.audit.attestation.keys import trusted
from hermetic.audit.attestation.signing import Provenance, sign_report
from hermetic.audit.attestation.statement import Inputs
from hermetic.audit.attestation.verification import Attestation, authenticate
from hermetic.audit.findings import Report
from hermetic.audit.report.machine import document
from hermetic.cli.attestation_files import load_signing_key, read_attestation, read_public_keys, write_attestation
from hermetic.cli.audit_files import digest_of
from hermetic.cli.cluster_identity import scope_of
from hermetic.cli.output import note
from hermetic.cli.tool import this_tool
from hermetic.controller.clock import SystemClock

if TYPE_CHECKING:
    from hermetic.audit.attestation.keys import SigningKey
    from hermetic.cli.audit import Signing
    from hermetic.cli.audit_sources import Collected, Wish


def sign(wish: Wish, collected: Collected, report: Report, signing: Signing, said: dict[str, Any]) -> None:
    """Write the attestation. Raises what reading the key, the previous one or writing raises."""
    key = load_signing_key(signing.key)
    scope = asyncio.run(scope_of(report.cluster, wish.kubeconfig, wish.context))
    inputs = Inputs(
        snapshot=f"sha256:{hashlib.sha256(collected.snapshot.encode()).hexdigest()}",
        policy=digest_of(said["policy"]),
        exceptions=digest_of(said["exceptions"]),
    )
    envelope = sign_report(
        document(report),
        Provenance(scope, this_tool(), inputs),
        key,
        now=SystemClock().now(),
        previous=_previous(signing, key),
        valid_for=signing.valid_for,
    )
    write_attestation(signing.attestation, envelope)
    found = authenticate(envelope, trusted([key.public]))
    until = f"{found.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    note(f"signed: {signing.attestation}, number {found.sequence} of its chain, counts until {until}")


def _previous(signing: Signing, key: SigningKey) -> Attestation | None:
    """The one before, signed by the same key or by one that is named: keys are changed, chains go on."""
    if signing.previous is None:
        return None
    others = [one for one in read_public_keys(signing.previous_keys).values() if one.keyid != key.public.keyid]
    return authenticate(read_attestation(str(signing.previous)), trusted([key.public, *others]))
