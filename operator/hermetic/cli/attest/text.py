"""Output of `hermetic attest` about one attestation and about a chain, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from hermetic.api.times import timestamp
from hermetic.audit.attestation.chain import ChainLink, ChainReport
from hermetic.audit.attestation.verification import Attestation
from hermetic.audit.model.findings import Verdict

CHECK_SCHEMA = "hermetic.dev/attestation-check/v1"
CHAIN_SCHEMA = "hermetic.dev/attestation-chain/v1"


def attested(attestation: Attestation, now: datetime) -> dict[str, Any]:
    """The content of a valid attestation; `verdict` is that of today, `signedVerdict` the one that was signed."""
    predicate = attestation.predicate
    return {
        "digest": attestation.digest,
        "cluster": predicate.scope.cluster_arm_id,
        "apiServerCaFingerprint": predicate.scope.api_server_ca_fingerprint,
        "kubeSystemUid": predicate.scope.kube_system_uid,
        "verdict": attestation.verdict_on(now.date()).value,
        "signedVerdict": attestation.read_report.verdict,
        "profile": attestation.read_report.profile,
        "sources": list(attestation.read_report.sources),
        "summary": _counts(attestation),
        "observedAt": predicate.observed_at,
        "expiresAt": predicate.expires_at,
        "signedBy": {"name": attestation.signed_by.name, "keyid": attestation.signed_by.keyid},
        "sequence": predicate.sequence,
        "previous": predicate.previous,
        "reportDigest": predicate.report_digest,
        "coverage": _coverage(attestation),
        "inputs": predicate.inputs.model_dump(by_alias=True),
        "tool": predicate.tool.model_dump(by_alias=True),
    }


def lines(
    file: str, attestation: Attestation, now: datetime, *, cluster_compared: bool, report_compared: bool
) -> Iterator[str]:
    """A valid attestation as text, with notes on what was not compared."""
    predicate, report = attestation.predicate, attestation.read_report
    yield f"{file}: authentic, and valid until {predicate.expires_at}"
    yield f"  verdict    {_verdict(attestation, now)}"
    yield f"  findings   {', '.join(f'{count} {name}' for name, count in _counts(attestation).items())}"
    yield f"  sources    {', '.join(report.sources)}, profile {report.profile}"
    yield f"  cluster    {predicate.scope.cluster_arm_id}{'' if cluster_compared else '  (not compared: --cluster)'}"
    yield f"  CA         {predicate.scope.api_server_ca_fingerprint or 'not read'}"
    yield f"  uid        {predicate.scope.kube_system_uid or 'not read'}"
    yield from _coverage_lines(attestation)
    yield f"  policy     {predicate.inputs.policy or 'no policy file'}"
    yield f"  observed   {predicate.observed_at}"
    yield f"  signed by  {attestation.signed_by.name} ({attestation.signed_by.keyid})"
    yield f"  digest     {attestation.digest}"
    yield f"  chain      number {predicate.sequence}, {_follows(attestation)}"
    yield f"  report     {predicate.report_digest}{'  (the file that was given)' if report_compared else ''}"
    omitted = sum(predicate.omitted.passed.values()) + sum(predicate.omitted.not_applicable.values())
    if omitted:
        yield f"  left out   {omitted} Pass and NotApplicable findings; they stand in the whole report"


def chain_as_json(report: ChainReport) -> dict[str, Any]:
    """The links in their order, and all findings about the chain."""
    return {
        "intact": report.intact,
        "head": report.head,
        "attestations": [_link(link) for link in report.links],
        "findings": [
            {
                "finding": issue.finding.value,
                "breaks": issue.finding.breaks,
                "file": issue.name,
                "message": issue.message,
                "fix": issue.finding.remedy,
            }
            for issue in report.issues
        ],
    }


def chain_lines(report: ChainReport, *, head_known: bool) -> Iterator[str]:
    """The links, notes and the verdict; findings that break the chain are reported as errors."""
    for link in report.links:
        attestation = link.attestation
        row = attestation.predicate.observed_at, attestation.read_report.verdict, attestation.signed_by.name, link.name
        yield f"{attestation.sequence:>6}  {'  '.join(row)}"
    for note in (issue for issue in report.issues if not issue.finding.breaks):
        yield f"note: {note.name}: {note.finding.value}: {note.message}"
    if report.intact:
        yield f"intact: {len(report.links)} attestations, the newest is {report.head}"
        if not head_known:
            yield "note: an end that was cut off is seen only with --head: keep the newest digest elsewhere"


def _counts(attestation: Attestation) -> dict[str, int]:
    """Sorted as in the contract: canonical JSON does not keep that order."""
    return {verdict.value: attestation.read_report.summary[verdict] for verdict in Verdict}


def _coverage(attestation: Attestation) -> dict[str, Any] | None:
    coverage = attestation.read_report.coverage
    return coverage.model_dump(by_alias=True) if coverage is not None else None


def _coverage_lines(attestation: Attestation) -> Iterator[str]:
    """The pools and subnets that were audited: in the cluster a ready node elsewhere makes the verdict Unknown."""
    coverage = attestation.read_report.coverage
    if coverage is None:
        yield "  covers     no pools and subnets are listed: an earlier release signed it"
        return
    for pool in coverage.pools:
        image = f", image {pool.node_image}" if pool.node_image else ""
        yield f"  pool       {pool.name}{image}: {', '.join(pool.subnets) or 'no subnet named'}"
    for subnet in coverage.subnets:
        yield f"  subnet     {subnet.id} ({', '.join(subnet.prefixes) or 'no prefix named'})"
    for subnet_id in coverage.provisioned_subnets:
        yield f"  provisions {subnet_id}: node auto provisioning makes nodes here"


def _verdict(attestation: Attestation, now: datetime) -> str:
    signed, today = attestation.read_report.verdict, attestation.verdict_on(now.date()).value
    return signed if today == signed else f"{today}  (signed as {signed}; an exception has expired since)"


def _follows(attestation: Attestation) -> str:
    return f"follows {attestation.previous}" if attestation.previous is not None else "the first one"


def _link(link: ChainLink) -> dict[str, Any]:
    attestation = link.attestation
    return {
        "file": link.name,
        "digest": attestation.digest,
        "sequence": attestation.sequence,
        "previous": attestation.previous,
        "observedAt": timestamp(attestation.observed_at),
        "expiresAt": timestamp(attestation.expires_at),
        "signedBy": {"name": attestation.signed_by.name, "keyid": attestation.signed_by.keyid},
        "verdict": attestation.read_report.verdict,
    }
