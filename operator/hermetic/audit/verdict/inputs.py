"""The inputs of the verdict inside a cluster: attestation, cluster findings and probe, each with its age."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.audit.attestation.choosing import ChosenAttestation
from hermetic.audit.attestation.verification import Attestation
from hermetic.audit.model.findings import AcceptedException, Evidence, Finding, Severity, Verdict
from hermetic.audit.model.hops import read_path
from hermetic.audit.policy.exceptions import Term
from hermetic.audit.verdict.node_places import PlacedNodes

AGING, EXPIRING = 0.75, 0.90
"""Fractions of its validity after which evidence is reported as aging and as expiring."""
PROBE_ROUNDS_LEFT_OUT = 2
"""A probe counts until it is this many intervals old: one round may be missed, two in a row may not."""


@dataclass(frozen=True, slots=True)
class ProbeRound:
    """The round that counts: when it ended, on how many nodes it ran, and the nodes that sent no answer.

    `uncovered` are the pools and subnets that have a ready node, and from which the round has no complete answer.
    """

    observed_at: datetime
    nodes: int
    silent: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictInputs:
    """All inputs at one moment. `cluster_findings` are those of the kube and probe checks, before exceptions.

    `kubernetes_at` is None until every list was read once, `probe` until a round has ended; `probe_error` is why the
    next one cannot run. `nodes` are the places of the ready nodes.
    """

    choice: ChosenAttestation
    cluster_findings: tuple[Finding, ...] = ()
    kubernetes_at: datetime | None = None
    probe: ProbeRound | None = None
    probe_error: str = ""
    nodes: tuple[PlacedNodes, ...] = ()


@dataclass(frozen=True, slots=True)
class Age:
    """The validity of evidence, from `observed_at` to `ends_at`."""

    observed_at: datetime
    ends_at: datetime

    def share(self, now: datetime) -> float:
        """0 when it was observed, 1 when it ends."""
        return (now - self.observed_at) / (self.ends_at - self.observed_at)

    def moments(self) -> Iterator[datetime]:
        """When the status must be computed again because of it."""
        lifetime = self.ends_at - self.observed_at
        yield from (self.observed_at + lifetime * AGING, self.observed_at + lifetime * EXPIRING, self.ends_at)


def age_of(attestation: Attestation, spec: EgressAuditSpec) -> Age:
    """It ends at `expiresAt`, or at the maximum age of the spec if that is earlier."""
    oldest = attestation.observed_at + timedelta(seconds=spec.max_evidence_age_seconds)
    return Age(attestation.observed_at, min(attestation.expires_at, oldest))


def probe_ends_at(probe: ProbeRound, spec: EgressAuditSpec) -> datetime | None:
    """When the round stops counting; None where the spec has no probe."""
    if spec.probe is None:
        return None
    return probe.observed_at + timedelta(seconds=PROBE_ROUNDS_LEFT_OUT * spec.probe.interval_seconds)


def attested_findings(attestation: Attestation, day: date) -> Iterator[Finding]:
    """The findings of the attestation as of a day; those that were left out of it when signed are not included."""
    for document, read in zip(attestation.report["findings"], attestation.read_report.findings, strict=True):
        verdict = read.on(day).verdict
        accepted = document.get("exception") if verdict is Verdict.EXCEPTED else None
        yield Finding(
            check=read.check,
            resource=read.resource,
            verdict=verdict,
            severity=Severity(read.severity),
            reason=str(document.get("reason", "")),
            message=str(document.get("message", "")),
            remedy=str(document.get("remedy", "")),
            paths=tuple(read_path(str(path)) for path in document.get("paths") or ()),
            evidence=tuple(
                Evidence(str(exchange.get("request")), exchange.get("status"), exchange.get("sha256"))
                for exchange in document.get("evidence") or ()
            ),
            exception=_accepted(accepted) if accepted else None,
            derived_from=read.derived_from.parts if read.derived_from is not None else None,
        )


def attested_terms(attestation: Attestation) -> Iterator[Term]:
    """The exceptions of the attestation, expired ones included, as named by its findings and its list of ended ones."""
    for document, read in zip(attestation.report["findings"], attestation.read_report.findings, strict=True):
        if read.exception is not None and read.derived_from is None:
            owner = str((document.get("exception") or {}).get("owner", ""))
            yield Term(read.check, read.resource, owner, read.exception.expiry.isoformat())
    for ended in attestation.read_report.ended_exceptions:
        yield Term(ended.check, ended.resource, ended.owner, ended.expiry.isoformat())


def _accepted(document: Mapping[str, Any]) -> AcceptedException:
    return AcceptedException(
        str(document["reason"]),
        str(document["owner"]),
        str(document["expiry"]),
        accepted=Verdict(document.get("accepted", "Fail")),
    )
