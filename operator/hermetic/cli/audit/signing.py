"""A report, signed for the cluster: what `hermetic audit --sign KEY --attestation FILE` writes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hermetic
from hermetic import __version__
from hermetic.audit.attestation.report_form import finished_at_of
from hermetic.audit.attestation.signing import Provenance, sign_report
from hermetic.audit.attestation.statement import Inputs, Scope, Tool
from hermetic.audit.attestation.verification import Attestation, authenticate
from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.snapshot import to_json
from hermetic.audit.policy.declarations import AttestedPrivate
from hermetic.audit.report.json_form import document
from hermetic.audit.result.report import Report
from hermetic.cli.attest.files import load_signing_key, read_attestation, read_public_keys, write_attestation
from hermetic.cli.audit.files import content_of, digest_of
from hermetic.cli.cluster_identity import ServerIdentity, not_tied, tie_to
from hermetic.cli.terminal import note
from hermetic.controller.clock import SystemClock
from hermetic.errors import AttestationRefused, InputError
from hermetic.signing.keys import SigningKey, trusted

if TYPE_CHECKING:
    from hermetic.cli.audit.sources import Collected


@dataclass(frozen=True, slots=True)
class Signing:
    """The inputs of signing except the report."""

    key: SigningKey
    file: Path
    previous: Attestation | None
    valid_for: timedelta
    tie: ServerIdentity


def signing_of(options: dict[str, Any]) -> Signing:
    """Key, previous attestation and cluster, read before the audit, which takes minutes.

    Raises InputError for files that cannot be used, or a kubeconfig of another cluster, Unreachable for missing files.
    """
    content_of(options["sign"])
    key = load_signing_key(options["sign"])
    previous = _previous(options["previous"], options["previous_keys"], key)
    tie = _tie(options)
    if options["azure"]:
        _must_be_about(options["azure"], previous, tie)
    return Signing(key, options["attestation"], previous, timedelta(hours=options["valid_hours"]), tie)


def attested_private(previous: Attestation) -> tuple[AttestedPrivate, ...]:
    """The subnets of the previous attestation: since when each is private, and when that was last observed."""
    return tuple(
        AttestedPrivate(
            private_subnet.subnet,
            private_subnet.at,
            previous.observed_at,
            finished_at_of(previous.read_report),
            previous.digest,
        )
        for private_subnet in previous.read_report.private_subnets
    )


def sign(signing: Signing, collected: Collected, report: Report, options: dict[str, Any]) -> None:
    """Writes the attestation. Raises InputError for a report that cannot be signed, Unreachable for the file."""
    from hermetic.audit.checks.registry import PAGES

    signing.tie.declared.must_be_about(report.cluster)
    scope = Scope(
        cluster_arm_id=report.cluster,
        api_server_ca_fingerprint=signing.tie.ca_fingerprint,
        kube_system_uid=signing.tie.kube_system_uid,
    )
    inputs = Inputs(
        snapshot=f"sha256:{hashlib.sha256(to_json(collected.snapshot).encode()).hexdigest()}",
        policy=digest_of(options["policy"]),
        exceptions=digest_of(options["exceptions"]),
    )
    try:
        envelope = sign_report(
            document(report, PAGES),
            Provenance(scope, this_tool(), inputs),
            signing.key,
            now=SystemClock().now(),
            previous=signing.previous,
            valid_for=signing.valid_for,
        )
    except AttestationRefused as refusal:
        raise InputError(f"--previous {options['previous']}: {refusal.message}") from refusal
    write_attestation(signing.file, envelope)
    attestation = authenticate(envelope, trusted([signing.key.public]))
    until = f"{attestation.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    if inputs.policy is not None:
        note(f"policy: {inputs.policy}; `spec.policyDigests` of the EgressAudit may list it")
    note(f"signed: {signing.file}, number {attestation.sequence} of its chain, valid until {until}")


def _must_be_about(cluster: str, previous: Attestation | None, tie: ServerIdentity) -> None:
    tie.declared.must_be_about(cluster)
    if previous is not None and not same_id(previous.scope.cluster_arm_id, cluster.strip()):
        raise InputError(
            f"--previous is about {previous.scope.cluster_arm_id}, not {cluster}",
            fix="every cluster has a chain of its own: name its newest attestation, or none",
        )


def _tie(options: dict[str, Any]) -> ServerIdentity:
    if options["snapshot"] is not None and not (options["kubeconfig"] or options["context"]):
        return not_tied("a snapshot is evaluated without any request; --kubeconfig or --context names its API server")
    return asyncio.run(tie_to(options["kubeconfig"], options["context"]))


def _previous(file: Path | None, keys: Iterable[str], key: SigningKey) -> Attestation | None:
    """The previous attestation, signed by the same key or a given one: a chain continues when keys change."""
    if file is None:
        return None
    try:
        other_keys = [
            public_key for public_key in read_public_keys(keys).values() if public_key.keyid != key.public.keyid
        ]
        return authenticate(read_attestation(str(file)), trusted([key.public, *other_keys]))
    except AttestationRefused as refusal:
        raise InputError(
            f"--previous {file}: {refusal.refusal}: {refusal.message}",
            fix=f"'hermetic explain {refusal.refusal}'; --previous-key FILE names the public key of an earlier signer",
        ) from refusal


def this_tool() -> Tool:
    """Name, version and digest: SHA-256 over the paths and digests of all files of the package, in order of path."""
    root = Path(hermetic.__file__).parent
    files = sorted(
        file.relative_to(root).as_posix()
        for file in root.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )
    listed = "".join(f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n" for name in files)
    return Tool(name="hermetic", version=__version__, digest=f"sha256:{hashlib.sha256(listed.encode()).hexdigest()}")
