"""State of the proof of isolation, from the EgressAudit: verdict, age, what is missing and how to provide it.

Pure: computed from the manifest in the cluster, written by any release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from hermetic.api.audit_reasons import RUNNING_OUT, AuditReason
from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.api.times import moment_in, timestamp
from hermetic.cli.status.remedies import Remedy, remedy_for

Manifest = Mapping[str, Any]

EVIDENCE = {
    ConditionType.ATTESTATION_ACCEPTED: "attestation",
    ConditionType.EVIDENCE_FRESH: "evidence age",
    ConditionType.CLUSTER_CHECKED: "cluster",
    ConditionType.PROBE_CURRENT: "probe",
    ConditionType.EXCEPTIONS_CURRENT: "exceptions",
}
NOT_EVALUATED = "NotJudged"
# The proof still holds, and should be renewed before it expires.
SOON = RUNNING_OUT


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One kind of evidence that the verdict rests on: `truth` is True, False or Unknown."""

    name: str
    truth: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding that fails or is unknown, as the status lists it."""

    check: str
    severity: str
    verdict: str
    resource: str
    reason: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """An EgressAttestation that is refused as evidence, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict on the cluster: Pass, Fail or Unknown, "" while there is none about the present spec.

    `findings` are those that the status lists, the worst first; `more` is the number that it leaves out. `refusals` and
    `more_refusals` are the same of refused attestations, those of trusted keys first.

    `remedy` is for the first evidence that is missing, refused, old or soon old; None where nothing is to be done.
    """

    verdict: str
    reason: str
    message: str
    evidence_rows: tuple[EvidenceRow, ...]
    attested: datetime | None
    expires: datetime | None
    probed: datetime | None
    remedy: Remedy | None
    findings: tuple[FindingRow, ...] = ()
    more: int = 0
    refusals: tuple[RefusalRow, ...] = ()
    more_refusals: int = 0
    blocking: int = 0
    warnings: int = 0


def open_findings(audit_proof: Proof) -> str:
    """The findings that fail or are unknown, counted as the columns of `kubectl get egressaudit` count them."""
    blocking = f"{audit_proof.blocking} blocking findings" if audit_proof.blocking != 1 else "1 blocking finding"
    warnings = f"{audit_proof.warnings} warnings" if audit_proof.warnings != 1 else "1 warning"
    counted = ((audit_proof.blocking, blocking), (audit_proof.warnings, warnings))
    return ", ".join(text for count, text in counted if count)


def proof(audit: Manifest) -> Proof:
    status, spec = audit.get("status") or {}, audit.get("spec") or {}
    observed_generation = status.get("observedGeneration")
    if observed_generation is None or observed_generation != audit["metadata"].get("generation", observed_generation):
        wait = Remedy("see whether the operator runs", ("kubectl get pods --namespace hermetic-system",))
        return Proof("", NOT_EVALUATED, "the operator has not evaluated it yet", (), None, None, None, wait)
    conditions = {str(condition.get("type")): condition for condition in status.get("conditions") or ()}
    rows = tuple(_row(name, conditions[kind]) for kind, name in EVIDENCE.items() if kind in conditions)
    ready = conditions.get(ConditionType.READY) or {}
    evidence = status.get("evidence") or {}
    lacking = next((row for row in rows if row.truth != "True" or row.reason in SOON), None)
    reason = str(ready.get("reason") or "")
    blamed = lacking.reason if lacking is not None and reason in {"", Reason.ISOLATION_PROVEN} else reason
    return Proof(
        verdict=str(status.get("verdict") or ""),
        reason=reason,
        message=str(status.get("message") or ""),
        evidence_rows=rows,
        attested=_moment(evidence, "azure", "observedAt"),
        expires=_moment(evidence, "azure", "expiresAt"),
        probed=_moment(evidence, "probe", "observedAt"),
        remedy=_remedy(blamed, str((status.get("refused") or {}).get("reason") or ""), str(spec.get("cluster") or "")),
        findings=tuple(_listed(finding) for finding in status.get("findings") or ()),
        more=int(status.get("moreFindings") or 0),
        refusals=tuple(_refusal(refusal) for refusal in status.get("refusals") or ()),
        more_refusals=int(status.get("moreRefusals") or 0),
        blocking=int((status.get("counts") or {}).get("blocking") or 0),
        warnings=int((status.get("counts") or {}).get("warnings") or 0),
    )


def _row(name: str, condition: Manifest) -> EvidenceRow:
    return EvidenceRow(name, *(str(condition.get(key) or "") for key in ("status", "reason", "message")))


def _listed(finding: Manifest) -> FindingRow:
    names = ("check", "severity", "verdict", "resource", "reason", "message", "remedy")
    return FindingRow(*(str(finding.get(name) or "") for name in names))


def _refusal(refusal: Manifest) -> RefusalRow:
    return RefusalRow(str(refusal.get("name") or ""), str(refusal.get("reason") or ""))


def _remedy(reason: str, refusal: str, cluster: str) -> Remedy | None:
    if reason == Reason.ISOLATION_PROVEN:
        return None
    remedy = remedy_for(reason, "", "cluster", "", cluster)
    if remedy is None or reason != AuditReason.ATTESTATION_REFUSED or not refusal:
        return remedy
    return Remedy(remedy.advice, (f"hermetic explain {refusal}", *remedy.commands))


def as_json(proof: Proof) -> dict[str, Any]:
    return {
        "verdict": proof.verdict,
        "reason": proof.reason,
        "message": proof.message,
        "attestationObservedAt": _stamp(proof.attested),
        "attestationExpiresAt": _stamp(proof.expires),
        "probeObservedAt": _stamp(proof.probed),
        "looks": [
            {"name": o.name, "status": o.truth, "reason": o.reason, "message": o.message} for o in proof.evidence_rows
        ],
        "fix": proof.remedy.advice if proof.remedy is not None else "",
        "commands": list(proof.remedy.commands) if proof.remedy is not None else [],
        "findings": [asdict(finding) for finding in proof.findings],
        "moreFindings": proof.more,
        "refusals": [asdict(refusal) for refusal in proof.refusals],
        "moreRefusals": proof.more_refusals,
    }


def _moment(evidence: Manifest, *path: str) -> datetime | None:
    return moment_in((evidence.get(path[0]) or {}).get(path[1]))


def _stamp(moment: datetime | None) -> str:
    return timestamp(moment) if moment is not None else ""
