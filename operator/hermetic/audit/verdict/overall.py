"""One verdict from three inputs. A missing or stale one makes a Pass Unknown; an observed egress path is a Fail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType
from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.api.reasons import Reason
from hermetic.api.text import first_of
from hermetic.api.times import CLOCK_SKEW, timestamp
from hermetic.audit.attestation.choosing import ChosenAttestation
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.verification import Attestation
from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.exceptions import AcceptedRisk, Exceptions, Term, expiry_notes
from hermetic.audit.findings import Finding, Verdict, overall, worst_first
from hermetic.audit.run import settled
from hermetic.audit.verdict.inputs import (
    AGING,
    EXPIRING,
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
        return next((one for one in self.conditions if one.status != "True"), None)


def standing_of(spec: EgressAuditSpec, inputs: VerdictInputs, now: datetime) -> Standing:
    accepted = inputs.choice.accepted
    attested = attested_findings(accepted, now.date()) if accepted is not None else ()
    if inputs.kubernetes_at is not None:
        attested = (one for one in attested if one.check not in SEEN_BETTER_HERE)
    exceptions = _exceptions(spec)
    findings, _ = settled((*attested, *inputs.cluster_findings), exceptions, now.date())
    terms = (*exceptions.terms, *(attested_terms(accepted) if accepted is not None else ()))
    conditions = (_attestation(spec, inputs), _fresh(spec, inputs, now), _kubernetes(inputs), _probe(spec, inputs, now))
    verdict = overall(findings)
    if verdict is Verdict.PASS and any(one.status != "True" for one in conditions):
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
            kind, "True", Reason.EXCEPTIONS_COUNT, f"{len(set(terms))} exceptions count, and none ends soon"
        )
    message = first_of(notes, MOST_NAMED, "; ")
    if any(one.has_ended(today) for one in terms):
        return ConditionUpdate(kind, "False", Reason.EXCEPTION_EXPIRED, message)
    return ConditionUpdate(kind, "True", Reason.EXCEPTION_EXPIRING, message)


def _exceptions(spec: EgressAuditSpec) -> Exceptions:
    return Exceptions(exceptions=tuple(AcceptedRisk.model_validate(one.model_dump()) for one in spec.exceptions))


def _attestation(spec: EgressAuditSpec, inputs: VerdictInputs) -> ConditionUpdate:
    kind, choice = ConditionType.ATTESTATION_ACCEPTED, inputs.choice
    if choice.accepted is not None:
        at, key = timestamp(choice.accepted.observed_at), choice.accepted.signed_by.name
        return ConditionUpdate(
            kind, "True", Reason.ATTESTATION_COUNTS, f"{choice.name}, observed at {at}, signed by '{key}'"
        )
    if choice.expired is not None:
        others = _refusals(choice)
        message = _expired(spec, choice.expired) + (f"; {others}" if others else "")
        return ConditionUpdate(kind, "False", Reason.ISOLATION_EVIDENCE_STALE, message)
    if choice.refused:
        return ConditionUpdate(kind, "False", Reason.ATTESTATION_REFUSED, _refusals(choice))
    return ConditionUpdate(
        kind,
        "False",
        Reason.ATTESTATION_MISSING,
        f"no EgressAttestation is there. Bring one: hermetic audit --azure {spec.cluster} --sign KEY "
        "--attestation attestation.yaml, then kubectl apply -f attestation.yaml",
    )


def refused_one(choice: ChosenAttestation) -> tuple[str, AttestationRefused] | None:
    """The refused attestation that the status names: the last by name, as names begin with the time.

    None while another attestation counts. One that has only expired is reported as expired, not as refused.
    """
    if choice.accepted is not None:
        return None
    return max(_refused(choice).items(), default=None)


def _refused(choice: ChosenAttestation) -> dict[str, AttestationRefused]:
    but = Refusal.EXPIRED if choice.expired is not None else None
    return {name: one for name, one in choice.refused.items() if one.refusal != but}


def _refusals(choice: ChosenAttestation) -> str:
    """Text for the refused attestations; "" where there is none."""
    if (found := refused_one(choice)) is None:
        return ""
    name, refused = found
    others = len(_refused(choice)) - 1
    return f"{name} is refused: {refused.refusal}: {refused.message}" + (f" (and {others} more)" if others else "")


def _expired(spec: EgressAuditSpec, expired: Attestation) -> str:
    """The same message as the isolation gate has, so that the status does not change with the source."""
    return f"the evidence expired at {timestamp(age_of(expired, spec).ends_at)}"


def _fresh(spec: EgressAuditSpec, inputs: VerdictInputs, now: datetime) -> ConditionUpdate:
    kind, accepted, expired = ConditionType.EVIDENCE_FRESH, inputs.choice.accepted, inputs.choice.expired
    if accepted is None and expired is not None:
        return ConditionUpdate(kind, "False", Reason.ISOLATION_EVIDENCE_STALE, _expired(spec, expired))
    if accepted is None:
        return ConditionUpdate(kind, "Unknown", Reason.ATTESTATION_MISSING, "no valid attestation")
    age = age_of(accepted, spec)
    ends = f"the attestation is valid until {timestamp(age.ends_at)}"
    share = age.share(now)
    if share >= 1:
        return ConditionUpdate(kind, "False", Reason.ISOLATION_EVIDENCE_STALE, _expired(spec, accepted))
    if share >= EXPIRING:
        return ConditionUpdate(
            kind, "True", Reason.EVIDENCE_EXPIRING, f"{ends}; audit again now, or nothing new will start"
        )
    if share >= AGING:
        return ConditionUpdate(kind, "True", Reason.EVIDENCE_AGING, f"{ends}; audit again before that")
    return ConditionUpdate(kind, "True", Reason.EVIDENCE_YOUNG, ends)


def _kubernetes(inputs: VerdictInputs) -> ConditionUpdate:
    kind = ConditionType.CLUSTER_CHECKED
    if inputs.kubernetes_at is None:
        return ConditionUpdate(
            kind, "Unknown", Reason.CLUSTER_NOT_SEEN, "the cluster's own objects were not all listed yet"
        )
    return ConditionUpdate(
        kind, "True", Reason.CLUSTER_SEEN, "evaluated again at every change of the cluster's own objects"
    )


def _probe(spec: EgressAuditSpec, inputs: VerdictInputs, now: datetime) -> ConditionUpdate:
    kind, probe = ConditionType.PROBE_CURRENT, inputs.probe
    why = f": {inputs.probe_error}" if inputs.probe_error else ""
    if spec.probe is None:
        return ConditionUpdate(
            kind, "False", Reason.PROBE_NOT_CONFIGURED, "`spec.probe` is not set: no packet was ever tried"
        )
    if probe is None:
        return ConditionUpdate(kind, "Unknown", Reason.PROBE_PENDING, f"no round of the probe has ended yet{why}")
    if probe.observed_at > now + CLOCK_SKEW:
        at = timestamp(probe.observed_at)
        return ConditionUpdate(
            kind, "False", Reason.PROBE_STALE, f"the last round is dated {at}, which is still to come{why}"
        )
    ends_at = probe_ends_at(probe, spec)
    if ends_at is not None and now >= ends_at:
        at = timestamp(probe.observed_at)
        return ConditionUpdate(
            kind, "False", Reason.PROBE_STALE, f"the last round ended at {at}, two intervals ago or more{why}"
        )
    if probe.silent:
        named = ", ".join(probe.silent[:3]) + (" …" if len(probe.silent) > 3 else "")
        return ConditionUpdate(kind, "False", Reason.PROBE_INCOMPLETE, f"nothing came back from: {named}")
    return ConditionUpdate(kind, "True", Reason.PROBE_RAN, f"the last round ran on {probe.nodes} nodes")
