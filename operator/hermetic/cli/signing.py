"""What `hermetic audit --sign KEY --attestation FILE [--previous FILE]` does once there is a report."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hermetic.audit.attestation.envelope import Envelope
from hermetic.audit.attestation.keys import PublicKey, trusted
from hermetic.audit.attestation.signing import VALIDITY, Provenance, sign_report
from hermetic.audit.attestation.statement import Inputs, Scope
from hermetic.audit.attestation.verification import Attestation, authenticate
from hermetic.cli.attestation_files import load_signing_key, read_attestation, read_public_keys, write_attestation
from hermetic.cli.tool import this_tool
from hermetic.errors import AttestationRefused


@dataclass(frozen=True, slots=True)
class Signing:
    """What was asked for: `previous_keys` are public keys (FILE[@UNTIL]) that may have signed the previous one."""

    key: Path
    attestation: Path
    previous: Path | None = None
    previous_keys: tuple[str, ...] = ()
    valid_for: timedelta = VALIDITY


def sign_to_file(report: Mapping[str, Any], scope: Scope, inputs: Inputs, asked: Signing, now: datetime) -> Envelope:
    """Sign the audit JSON and write it: YAML for kubectl, a bare envelope where the file's name ends in .json.

    Raises Unreachable, KeyUnusable, ReportUnusable and ReportTooLarge, and AttestationRefused where the previous one is
    not authentic or about another cluster. Nothing is written then.
    """
    key = load_signing_key(asked.key)
    previous = _previous(asked, key.public)
    envelope = sign_report(
        report, Provenance(scope, this_tool(), inputs), key, now=now, previous=previous, valid_for=asked.valid_for
    )
    write_attestation(asked.attestation, envelope)
    return envelope


def digest_of(content: bytes) -> str:
    """The digest of an input file, as a statement has it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _previous(asked: Signing, own: PublicKey) -> Attestation | None:
    """The chain may be carried on by a new key, but only from what some key is known to have signed."""
    if asked.previous is None:
        return None
    others = read_public_keys(asked.previous_keys).values()
    known = trusted((own, *(each for each in others if each.keyid != own.keyid)))
    try:
        return authenticate(read_attestation(str(asked.previous)), known)
    except AttestationRefused as refusal:
        message = f"{asked.previous}: {refusal.refusal}: {refusal.message}"
        raise AttestationRefused(message, refusal=refusal.refusal, fix=refusal.fix) from refusal
