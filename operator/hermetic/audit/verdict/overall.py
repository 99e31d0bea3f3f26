"""One verdict from three inputs. A missing or stale one makes a Pass Unknown; an observed egress path is a Fail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from hermetic.api.audit_reasons import AuditReason
from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType
from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.api.reasons import Reason
from hermetic.api.text import first_of
from hermetic.api.times import CLOCK_SKEW, timestamp
from hermetic.audit.attestation.choosing import ChosenAttestation
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.renewal import renewal_commands
from hermetic.audit.attestation.verification import Attestation
from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.model.findings import Finding, Verdict, overall, worst_first
from hermetic.audit.policy.exceptions import AcceptedRisk, Exceptions, Term, expiry_notes
from hermetic.audit.result.run import settled
from hermetic.audit.verdict.attested_nodes import audit_again, nodes_attested
from hermetic.audit.verdict.inputs import (
    AGING,
    EXPIRING,
    ProbeRound,
    VerdictInputs,
    age_of,
    attested_findings,
    attested_terms,
    probe_ends_at,
)
from hermetic.errors import AttestationRefused

MOST_NAMED = 3
"""How many exceptions a condition names; the report has all of them."""
SEEN_BETTER_HERE = frozenset(check.page.id for check in CHECKS if check.needs == {"kube"})
"""Checks with source kube only: once the operator has evaluated them itself, the attested findings are ignored.

Not those of the probe: an attested egress path stays a Fail until the attestation is replaced.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """The verdict, the findings it rests on, and a condition for each input, in order of importance.

    `exceptions` is the condition of the exceptions; None where there are none. It does not affect the verdict.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    conditions: tuple[ConditionUpdate, ...]
    notes: tuple[str, ...] = ()
    exceptions: ConditionUpdate | None = None

    @property
    def lacking(self) -> ConditionUpdate | None:
        """The first input that is missing or does not count."""
        return next((condition for condition in self.conditions if condition.status != "True"), None)


def standing_of(spec: EgressAuditSpec, inputs: VerdictInputs, now: datetime) -> Standing:
    accepted = inputs.choice.accepted
    attested = attested_findings(accepted, now.date()) if accepted is not None else ()
    if inputs.kubernetes_at is not None:
        attested = (finding for finding in attested if finding.check not in SEEN_BETTER_HERE)
    exceptions = exceptions_of(spec)
    findings, _ = settled((*attested, *inputs.cluster_findings), exceptions, now.date())
    terms = (*exceptions.terms, *(attested_terms(accepted) if accepted is not None else ()))
    conditions = (
        _attestation(spec, inputs, now.date()),
        _fresh(spec, inputs, now),
        nodes_attested(spec, inputs),
        _kubernetes(inputs),
        _probe(spec, inputs, now),
    )
    verdict = overall(findings)
    if verdict is Verdict.PASS and any(condition.status != "True" for condition in conditions):
        verdict = Verdict.UNKNOWN
    notes = expiry_notes(terms, now.date())
    return Standing(verdict, tuple(worst_first(findings)), conditions, notes, _terms(terms, notes, now.date()))


def _terms(terms: tuple[Term, ...], notes: tuple[str, ...], today: date) -> ConditionUpdate | None:
    """Condition for exceptions: one that has ended accepts nothing, and is named until renewed or removed."""
    kind = ConditionType.EXCEPTIONS_CURRENT
    if not terms:
        return None
    if not notes:
        return ConditionUpdate(
            kind, "True", AuditReason.EXCEPTIONS_COUNT, f"{len(set(terms))} exceptions count, and none ends soon"
        )
    message = first_of(notes, MOST_NAMED, "; ")
    if any(term.has_ended(today) for term in terms):
        return ConditionUpdate(kind, "False", AuditReason.EXCEPTION_EXPIRED, message)
    return ConditionUpdate(kind, "True", AuditReason.EXCEPTION_EXPIRING, message)


def exceptions_of(spec: EgressAuditSpec) -> Exceptions:
    return Exceptions(
        exceptions=tuple(AcceptedRisk.model_validate(exception.model_dump()) for exception in spec.exceptions)
    )


def _attestation(spec: EgressAuditSpec, inputs: VerdictInputs, today: date) -> ConditionUpdate:
    kind, choice = ConditionType.ATTESTATION_ACCEPTED, inputs.choice
    if choice.accepted is not None:
        at, key = timestamp(choice.accepted.observed_at), choice.accepted.signed_by.name
        if (fail := _newer_fail(spec, inputs, today)) is not None:
            return ConditionUpdate(
                kind, "False", AuditReason.ATTESTATION_CONTRADICTED, _contradiction(spec, choice, fail)
            )
        refusals = [f"{name} ({refusal.refusal})" for name, refusal in refused_in_order(choice)]
        refused_text = f"; refused: {first_of(refusals, MOST_NAMED)}" if refusals else ""
        message = f"{choice.name}, observed at {at}, signed by '{key}'{refused_text}"
        return ConditionUpdate(kind, "True", AuditReason.ATTESTATION_COUNTS, message)
    if choice.expired is not None:
        refused_text = _refusals(choice)
        message = _expired(spec, choice.expired) + (f"; {refused_text}" if refused_text else "")
        return ConditionUpdate(kind, "False", Reason.ISOLATION_EVIDENCE_STALE, message)
    if choice.refused:
        return ConditionUpdate(kind, "False", AuditReason.ATTESTATION_REFUSED, _refusals(choice))
    return ConditionUpdate(
        kind,
        "False",
        AuditReason.ATTESTATION_MISSING,
        f"no EgressAttestation is there. Bring one: {audit_again(spec)}",
    )


def _newer_fail(spec: EgressAuditSpec, inputs: VerdictInputs, today: date) -> tuple[str, Attestation] | None:
    """The first newer Fail whose findings no exception of the spec accepts.

    A Fail of checks that the operator evaluates itself is left to its own newer observation.
    """
    exceptions = exceptions_of(spec)
    for name, fail in inputs.choice.newer_fails:
        findings = [finding.on(today) for finding in fail.read_report.findings]
        if inputs.kubernetes_at is not None:
            findings = [finding for finding in findings if finding.check not in SEEN_BETTER_HERE]
        if overall(settled(findings, exceptions, today)[0]) is Verdict.FAIL:
            return name, fail
    return None


def _contradiction(spec: EgressAuditSpec, choice: ChosenAttestation, fail: tuple[str, Attestation]) -> str:
    name, attestation = fail
    refusal = choice.refused.get(name)
    because = f", refused as evidence ({refusal.refusal}: {refusal.message})," if refusal is not None else ""
    imported, imported_at = "", choice.imports.get(attestation.digest)
    if (
        imported_at is not None
        and choice.accepted is not None
        and attestation.observed_at <= choice.accepted.observed_at
    ):
        # Its own clock says otherwise: the reader must see why it counts as the newer one.
        imported = f" by the clock of its host, and first imported at {timestamp(imported_at)}"
    return (
        f"{name}{because} says Fail and is newer than {choice.name}; it was signed by '{attestation.signed_by.name}' "
        f"and observed at {timestamp(attestation.observed_at)}{imported}. Mend what it found, then bring a newer Pass: "
        f"{audit_again(spec)}"
    )


def refused_one(choice: ChosenAttestation) -> tuple[str, AttestationRefused] | None:
    """The refused attestation that the status names: the last by name, as names begin with the time.

    None while another attestation counts. One that has only expired is reported as expired, not as refused.
    """
    if choice.accepted is not None:
        return None
    return max(_refused(choice).items(), default=None)


def _refused(choice: ChosenAttestation) -> dict[str, AttestationRefused]:
    """Each refused attestation by name, without those that have only expired where no other counts."""
    but = Refusal.EXPIRED if choice.expired is not None else None
    return {name: refusal for name, refusal in choice.refused.items() if refusal.refusal != but}


def refused_in_order(choice: ChosenAttestation) -> list[tuple[str, AttestationRefused]]:
    """Each refused statement once: those of trusted keys first, the latest by name first, as names begin with the time.

    Of objects with the same signed statement the last by name stands for all.
    """
    refusals = sorted(_refused(choice).items(), reverse=True)
    authentic = {
        choice.digests[name]: (name, refusal) for name, refusal in reversed(refusals) if name in choice.digests
    }
    unauthentic = [(name, refusal) for name, refusal in refusals if name not in choice.digests]
    return [*sorted(authentic.values(), reverse=True), *unauthentic]


def refusal_updates(choice: ChosenAttestation) -> dict[tuple[str, str], ConditionUpdate]:
    """What AttestationAccepted would say of each refused attestation alone, by its name and refusal, in their order."""
    kind, reason = ConditionType.ATTESTATION_ACCEPTED, AuditReason.ATTESTATION_REFUSED
    return {
        (name, refusal.refusal): ConditionUpdate(kind, "False", reason, _refusal_sentence(name, refusal))
        for name, refusal in refused_in_order(choice)
    }


def _refusals(choice: ChosenAttestation) -> str:
    """Text for the refused attestations; "" where there is none."""
    if (first_refusal := refused_one(choice)) is None:
        return ""
    name, refused = first_refusal
    other_count = len(_refused(choice)) - 1
    return _refusal_sentence(name, refused) + (f" (and {other_count} more)" if other_count else "")


def _refusal_sentence(name: str, refusal: AttestationRefused) -> str:
    return f"{name} is refused: {refusal.refusal}: {refusal.message}"


def _expired(spec: EgressAuditSpec, expired: Attestation) -> str:
    """The same message as the isolation gate has, so that the status does not change with the source."""
    return f"the evidence expired at {timestamp(age_of(expired, spec).ends_at)}"


def _fresh(spec: EgressAuditSpec, inputs: VerdictInputs, now: datetime) -> ConditionUpdate:
    kind, accepted, expired = ConditionType.EVIDENCE_FRESH, inputs.choice.accepted, inputs.choice.expired
    if accepted is None and expired is not None:
        return ConditionUpdate(kind, "False", Reason.ISOLATION_EVIDENCE_STALE, _expired(spec, expired))
    if accepted is None:
        return ConditionUpdate(kind, "Unknown", AuditReason.ATTESTATION_MISSING, "no valid attestation")
    age = age_of(accepted, spec)
    ends = f"the attestation is valid until {timestamp(age.ends_at)}"
    share = age.share(now)
    if share >= 1:
        return ConditionUpdate(kind, "False", Reason.ISOLATION_EVIDENCE_STALE, _expired(spec, accepted))
    commands = " && ".join(renewal_commands(spec.cluster))
    if share >= EXPIRING:
        message = f"{ends}; audit again now, or nothing new will start: {commands}"
        return ConditionUpdate(kind, "True", AuditReason.EVIDENCE_EXPIRING, message)
    if share >= AGING:
        message = f"{ends}; audit again before that: {commands}"
        return ConditionUpdate(kind, "True", AuditReason.EVIDENCE_AGING, message)
    return ConditionUpdate(kind, "True", AuditReason.EVIDENCE_YOUNG, ends)


def _kubernetes(inputs: VerdictInputs) -> ConditionUpdate:
    kind = ConditionType.CLUSTER_CHECKED
    if inputs.kubernetes_at is None:
        return ConditionUpdate(
            kind, "Unknown", AuditReason.CLUSTER_NOT_SEEN, "the cluster's own objects were not all listed yet"
        )
    return ConditionUpdate(
        kind, "True", AuditReason.CLUSTER_SEEN, "evaluated again at every change of the cluster's own objects"
    )


def _probe(spec: EgressAuditSpec, inputs: VerdictInputs, now: datetime) -> ConditionUpdate:
    kind, probe = ConditionType.PROBE_CURRENT, inputs.probe
    why = f": {inputs.probe_error}" if inputs.probe_error else ""
    if spec.probe is None:
        return ConditionUpdate(
            kind, "False", AuditReason.PROBE_NOT_CONFIGURED, "`spec.probe` is not set: no packet was ever tried"
        )
    if probe is None:
        return ConditionUpdate(kind, "Unknown", AuditReason.PROBE_PENDING, f"no round of the probe has ended yet{why}")
    if probe.observed_at > now + CLOCK_SKEW:
        at = timestamp(probe.observed_at)
        return ConditionUpdate(
            kind, "False", AuditReason.PROBE_STALE, f"the last round is dated {at}, which is still to come{why}"
        )
    ends_at = probe_ends_at(probe, spec)
    if ends_at is not None and now >= ends_at:
        at = timestamp(probe.observed_at)
        return ConditionUpdate(
            kind, "False", AuditReason.PROBE_STALE, f"the last round ended at {at}, two intervals ago or more{why}"
        )
    return _probe_coverage(probe, why)


def _probe_coverage(probe: ProbeRound, why: str) -> ConditionUpdate:
    """Whether the round that counts has an answer of every pool and subnet that it must cover."""
    kind = ConditionType.PROBE_CURRENT
    if probe.silent:
        named = ", ".join(probe.silent[:3]) + (" …" if len(probe.silent) > 3 else "")
        return ConditionUpdate(kind, "False", AuditReason.PROBE_INCOMPLETE, f"nothing came back from: {named}")
    if probe.uncovered:
        message = f"no packet was tried yet from {first_of(probe.uncovered, MOST_NAMED, '; ')}: a round follows{why}"
        return ConditionUpdate(kind, "Unknown", AuditReason.PROBE_PLACE_NOT_COVERED, message)
    return ConditionUpdate(kind, "True", AuditReason.PROBE_RAN, f"the last round ran on {probe.nodes} nodes")
