"""`hermetic attest`: whether evidence is what a trusted key signed, and whether it counts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from hermetic.api.egressaudit import CLUSTER_ARM_ID
from hermetic.audit.attestation.chain import ChainIssue, ChainReport, verify_chain
from hermetic.audit.attestation.refusals import Refusal, refused
from hermetic.audit.attestation.report_form import report_digest
from hermetic.audit.attestation.verification import Attestation, Expected, verify
from hermetic.cli.attest.files import SUFFIXES, read_attestation, read_public_keys, read_report
from hermetic.cli.attest.text import CHAIN_SCHEMA, CHECK_SCHEMA, attested, chain_as_json, chain_lines, lines
from hermetic.cli.exit_codes import SeveralErrors
from hermetic.cli.options import common_options
from hermetic.cli.terminal import echo_fitted, write_json
from hermetic.errors import AttestationRefused, ChainBroken, InputError, Unreachable
from hermetic.signing.envelope import Envelope

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_public_keys = click.option(
    "--public-key",
    "public_keys",
    multiple=True,
    required=True,
    metavar="FILE[@UNTIL]",
    help="PEM of a key that is trusted; with @2026-12-31T23:59:59Z for what was observed until then. May be repeated.",
)


@click.group(
    "attest",
    epilog="Example: hermetic attest verify attestation.yaml --public-key platform.pub\n\n"
    "Example: hermetic attest chain attestations/ --public-key platform.pub\n\n"
    "'hermetic attest COMMAND --help' shows the options.",
)
@common_options(cluster=False)
@click.pass_context
def command(ctx: click.Context, output: str) -> None:
    """Verify signed evidence. Works offline; docs/attestation.md describes how keys are made and changed."""
    # the common options are accepted before and after the subcommand
    ctx.default_map = {name: {"output": output} for name in command.commands}


@command.command("verify", short_help="Check one attestation.")
@click.argument("file", metavar="FILE")
@_public_keys
@click.option("--cluster", metavar="ARM_ID", help="The cluster that it must be about. Default: not asked.")
@click.option("--report", metavar="FILE", help="Audit JSON that must be the whole report that was signed.")
@common_options(cluster=False)
def verify_command(
    file: str, public_keys: tuple[str, ...], cluster: str | None, report: str | None, output: str
) -> None:
    """Check one attestation: an EgressAttestation, or a DSSE envelope in JSON; '-' is standard input.

    Ends with 0 where it is authentic and counts now, whatever its verdict is; with 1 where it is not or does not.
    """
    trusted = read_public_keys(public_keys)
    expected = Expected(cluster_arm_id=_arm_id(cluster))
    now = datetime.now(UTC)
    try:
        attestation = verify(read_attestation(file), trusted, expected, now)
        if report is not None:
            _must_be_the_report(report, attestation)
    except AttestationRefused as refusal:
        if output == "json":
            write_json({"schema": CHECK_SCHEMA, "file": file, "valid": False, **_refusal(refusal)})
        raise _named(file, refusal) from refusal
    if output == "json":
        fields = attested(attestation, now)
        write_json({"schema": CHECK_SCHEMA, "file": file, "valid": True, **_refusal(None), **fields})
        return
    for line in lines(file, attestation, now, cluster_compared=cluster is not None, report_compared=report is not None):
        echo_fitted(line)


@command.command("chain", short_help="Check that the attestations of a folder form one chain.")
@click.argument("named", metavar="DIR")
@_public_keys
@click.option("--head", metavar="DIGEST", help="Digest of the newest one, kept elsewhere. Default: not known.")
@common_options(cluster=False)
def chain_command(named: str, public_keys: tuple[str, ...], head: str | None, output: str) -> None:
    """Check that the attestations of a folder follow each other from the first on.

    Every .yaml, .yml and .json file of the folder must be an attestation; names and order of the files do not matter.
    Only with --head is it seen when the end of the chain was cut off.
    """
    folder, trusted = Path(named), read_public_keys(public_keys)
    if head is not None and not _DIGEST.fullmatch(head):
        raise InputError(f"--head {head}: is not a digest", fix="--head sha256:<64 lower-case hex digits>")
    attestations = [(file.name, _envelope_or_refusal(file)) for file in _files(folder)]
    report = verify_chain(attestations, trusted, head=head, ordered=False)
    if output == "json":
        write_json({"schema": CHAIN_SCHEMA, "folder": str(folder), **chain_as_json(report)})
    else:
        for line in chain_lines(report, head_known=head is not None):
            echo_fitted(line)
    _must_be_intact(folder, report)


def _arm_id(cluster: str | None) -> str | None:
    if cluster is not None and re.fullmatch(CLUSTER_ARM_ID, cluster) is None:
        raise InputError(
            f"--cluster {cluster}: is not the ARM id of an AKS cluster",
            fix="--cluster /subscriptions/.../managedClusters/NAME",
        )
    return cluster


def _must_be_the_report(file: str, attestation: Attestation) -> None:
    try:
        digest = report_digest(read_report(file))
    except ValueError as error:
        raise refused(Refusal.OTHER_REPORT, f"{file} holds {error}") from None
    if digest != attestation.predicate.report_digest:
        signed = attestation.predicate.report_digest
        raise refused(Refusal.OTHER_REPORT, f"{file} has the digest {digest}; {signed} was signed")


def _refusal(refusal: AttestationRefused | None) -> dict[str, Any]:
    if refusal is None:
        return {"refusal": "", "message": "", "fix": ""}
    return {"refusal": refusal.refusal, "message": refusal.message, "fix": refusal.fix}


def _named(file: str, refusal: AttestationRefused) -> AttestationRefused:
    message = f"{file}: {refusal.refusal}: {refusal.message}"
    return AttestationRefused(message, refusal=refusal.refusal, fix=refusal.fix)


def _files(folder: Path) -> list[Path]:
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    except NotADirectoryError:
        raise InputError(f"{folder}: is a file", fix="'hermetic attest verify' takes a file") from None
    except FileNotFoundError:
        raise InputError(f"{folder}: No such file or directory", fix="name a folder that exists") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        problem = getattr(error, "strerror", "") or str(error)
        raise Unreachable(f"{folder}: {problem}", fix="name a folder that can be read") from None
    if not files:
        endings = ", ".join(sorted(SUFFIXES))
        raise InputError(f"{folder}: holds no file that ends in {endings}", fix="name a folder of attestations")
    return files


def _envelope_or_refusal(file: Path) -> Envelope | AttestationRefused:
    try:
        return read_attestation(str(file))
    except AttestationRefused as refusal:
        return refusal


def _must_be_intact(folder: Path, report: ChainReport) -> None:
    if not report.intact:
        raise SeveralErrors([_broken(folder, issue) for issue in report.issues if issue.finding.breaks])


def _broken(folder: Path, issue: ChainIssue) -> ChainBroken:
    where = str(folder / issue.name) if issue.name else str(folder)
    return ChainBroken(f"{where}: {issue.finding.value}: {issue.message}", fix=issue.finding.remedy)
