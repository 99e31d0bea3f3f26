"""The status of an EgressAudit: the verdict, what it rests on, the worst findings, and conditions.

An object of the cluster must stay small, and the API server rejects the whole status if a text is longer than the CRD
allows. The status has the number of findings that were left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from hermetic.api.condition_updates import ConditionUpdate, dated, pointing_to_ready
from hermetic.api.conditions import LONGEST_MESSAGE, ConditionType
from hermetic.api.egressaudit import LONGEST_LISTED_TEXT, MOST_LISTED, MOST_REFUSALS, EgressAuditSpec
from hermetic.api.reasons import Reason
from hermetic.api.text import cut, one_line, printable
from hermetic.api.times import timestamp
from hermetic.audit.attestation.choosing import ChosenAttestation
from hermetic.audit.attestation.imports import status_imports
from hermetic.audit.model.findings import Finding, Verdict, worst_first
from hermetic.audit.remedies.steps import steps_of
from hermetic.audit.verdict.inputs import VerdictInputs, age_of, probe_ends_at
from hermetic.audit.verdict.overall import Standing, refused_in_order, refused_one

KEPT_SECONDS = 3600
"""How long `evidence.kubernetes.observedAt` is kept while nothing changes: one write an hour, not one a pass."""
LONGEST_NAME = 64
"""Characters: the maximum length in the CRD."""
_OPEN = frozenset({Verdict.FAIL, Verdict.UNKNOWN})

Status = dict[str, Any]


def status_of(
    spec: EgressAuditSpec,
    generation: int,
    inputs: VerdictInputs,
    standing: Standing,
    before: Mapping[str, Any],
    now: datetime,
) -> Status:
    """The whole status. `evidence.kubernetes.observedAt` is kept for an hour: equal inputs then give equal status."""
    ready = _ready(standing)
    of_exceptions = (standing.exceptions,) if standing.exceptions is not None else ()
    conditions = (ready, *_kstatus(ready), _isolation(standing), *standing.conditions, *of_exceptions)
    status = {
        "observedGeneration": generation,
        "conditions": [dated(condition, generation, before, now) for condition in conditions],
        "verdict": standing.verdict.value,
        "message": _cut(_message(standing)),
        "counts": _counts(inputs, standing),
        "evidence": _evidence(spec, inputs, before, now),
        **listed(standing.findings),
    }
    if (refused := refused_one(inputs.choice)) is not None:
        status["refused"] = {"name": refused[0], "reason": refused[1].refusal}
    status |= _refusals(inputs.choice)
    newest = inputs.choice.accepted
    if imports := status_imports(inputs.choice.imports, newest.digest if newest else None):
        status["imports"] = imports
    accepted = {"digest": newest.digest, "observedAt": timestamp(newest.observed_at)} if newest else None
    if remembered := accepted or before.get("newestAccepted"):
        status["newestAccepted"] = dict(remembered)
    return status


def status_unreadable(generation: int, before: Mapping[str, Any], message: str, now: datetime) -> Status:
    """The status of an EgressAudit that this version cannot process: verdict Unknown, which closes the gate."""
    return _without_verdict(generation, before, Reason.SPEC_INVALID, message, now)


def status_unfounded(generation: int, before: Mapping[str, Any], message: str, now: datetime) -> Status:
    """The status where nothing could be evaluated: verdict Unknown regardless of `before`, which closes the gate."""
    return _without_verdict(generation, before, Reason.ISOLATION_UNKNOWN, message, now)


def _without_verdict(generation: int, before: Mapping[str, Any], reason: Reason, message: str, now: datetime) -> Status:
    ready = ConditionUpdate(ConditionType.READY, "False", reason, message)
    status: Status = {
        "observedGeneration": generation,
        "conditions": [dated(condition, generation, before, now) for condition in (ready, *_kstatus(ready))],
        "verdict": Verdict.UNKNOWN.value,
        "message": _cut(message),
    }
    if before.get("newestAccepted"):
        status["newestAccepted"] = dict(before["newestAccepted"])
    if before.get("imports"):
        status["imports"] = list(before["imports"])
    return status


def next_change(spec: EgressAuditSpec, inputs: VerdictInputs, now: datetime) -> datetime | None:
    """When the status changes next without any event; None where it does not."""
    moments: list[datetime] = []
    if inputs.choice.accepted is not None:
        moments += age_of(inputs.choice.accepted, spec).moments()
    if inputs.probe is not None and spec.probe is not None:
        ends_at = probe_ends_at(inputs.probe, spec)
        moments += [ends_at] if ends_at else []
    # Exceptions end at midnight.
    moments.append(now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1))
    return min((moment for moment in moments if moment > now), default=None)


def _ready(standing: Standing) -> ConditionUpdate:
    if standing.verdict is Verdict.PASS:
        return ConditionUpdate(ConditionType.READY, "True", Reason.ISOLATION_PROVEN, _message(standing))
    if standing.verdict is Verdict.FAIL:
        return ConditionUpdate(ConditionType.READY, "False", Reason.ISOLATION_BROKEN, _message(standing))
    lacking = standing.lacking
    reason = lacking.reason if lacking is not None else Reason.ISOLATION_UNKNOWN
    return ConditionUpdate(ConditionType.READY, "False", reason, _message(standing))


def _kstatus(ready: ConditionUpdate) -> Iterator[ConditionUpdate]:
    if ready.status == "True":
        return
    kind = ConditionType.STALLED if ready.reason.needs_human else ConditionType.RECONCILING
    yield ConditionUpdate(kind, "True", ready.reason, pointing_to_ready(ready.reason))


def _isolation(standing: Standing) -> ConditionUpdate:
    kind, message = ConditionType.ISOLATION_VERIFIED, _message(standing)
    if standing.verdict is Verdict.PASS:
        return ConditionUpdate(kind, "True", Reason.ISOLATION_PROVEN, message)
    if standing.verdict is Verdict.FAIL:
        return ConditionUpdate(kind, "False", Reason.ISOLATION_BROKEN, message)
    return ConditionUpdate(kind, "Unknown", Reason.ISOLATION_UNKNOWN, message)


def _message(standing: Standing) -> str:
    deciding = [
        finding for finding in standing.findings if finding.severity.decides and finding.verdict is standing.verdict
    ]
    if standing.verdict is Verdict.PASS:
        warnings = sum(finding.verdict is Verdict.FAIL for finding in standing.findings)
        return "no egress path was found" + (f"; {warnings} warning{'s' * (warnings != 1)}" if warnings else "")
    if standing.verdict is Verdict.UNKNOWN and standing.lacking is not None:
        return standing.lacking.message
    return _sentence(deciding)


def _sentence(findings: list[Finding]) -> str:
    if not findings:
        return "nothing was read"
    worst, more = findings[0], len(findings) - 1
    path = f"{worst.path_texts[0]}: " if worst.paths else ""
    return f"{path}{worst.message} ({worst.check}, {worst.resource})" + (f", and {more} more" if more else "")


def _refusals(choice: ChosenAttestation) -> Status:
    """The refused attestations by name, bounded, with the number of the others; neither where there is none."""
    refusals = [{"name": name, "reason": refusal.refusal} for name, refusal in refused_in_order(choice)]
    listed: Status = {"refusals": refusals[:MOST_REFUSALS]} if refusals else {}
    return {**listed, "moreRefusals": len(refusals) - MOST_REFUSALS} if len(refusals) > MOST_REFUSALS else listed


def _counts(inputs: VerdictInputs, standing: Standing) -> dict[str, int]:
    counted = Counter(finding.verdict for finding in standing.findings)
    open_findings = [finding for finding in standing.findings if finding.verdict in {Verdict.FAIL, Verdict.UNKNOWN}]
    accepted = inputs.choice.accepted
    if accepted is not None:
        counted[Verdict.PASS] += sum(accepted.predicate.omitted.passed.values())
        counted[Verdict.NOT_APPLICABLE] += sum(accepted.predicate.omitted.not_applicable.values())
    return {
        "pass": counted[Verdict.PASS],
        "fail": counted[Verdict.FAIL],
        "unknown": counted[Verdict.UNKNOWN],
        "excepted": counted[Verdict.EXCEPTED],
        "notApplicable": counted[Verdict.NOT_APPLICABLE],
        "blocking": sum(finding.severity.decides for finding in open_findings),
        "warnings": sum(not finding.severity.decides for finding in open_findings),
    }


def _evidence(spec: EgressAuditSpec, inputs: VerdictInputs, before: Mapping[str, Any], now: datetime) -> Status:
    evidence: Status = {}
    accepted = inputs.choice.accepted
    if accepted is not None:
        evidence["azure"] = {
            "digest": accepted.digest,
            "observedAt": timestamp(accepted.observed_at),
            "expiresAt": timestamp(age_of(accepted, spec).ends_at),
            "signedBy": accepted.signed_by.name,
        }
    if inputs.kubernetes_at is not None:
        evidence["kubernetes"] = {"observedAt": _kept(inputs.kubernetes_at, before, now)}
    ends_at = probe_ends_at(inputs.probe, spec) if inputs.probe is not None else None
    if inputs.probe is not None and ends_at is not None and now < ends_at and not inputs.probe.silent:
        evidence["probe"] = {"observedAt": timestamp(inputs.probe.observed_at), "nodes": inputs.probe.nodes}
    return evidence


def _kept(at: datetime, before: Mapping[str, Any], now: datetime) -> str:
    """The time written last while it is less than KEPT_SECONDS old, so that an unchanged result causes no write."""
    written = ((before.get("evidence") or {}).get("kubernetes") or {}).get("observedAt")
    if written and now - datetime.fromisoformat(written) < timedelta(seconds=KEPT_SECONDS):
        return str(written)
    return timestamp(at)


def _cut(message: str) -> str:
    """Cut to the CRD's maximum: the API server would reject a longer one, and the old verdict would stay."""
    return cut(printable(message), LONGEST_MESSAGE)


def listed(findings: Iterable[Finding]) -> dict[str, Any]:
    """`findings` and `moreFindings` of the status; neither where nothing fails or is unknown."""
    open_ = [finding for finding in worst_first(findings) if finding.verdict in _OPEN]
    shown: dict[str, Any] = {"findings": [_entry(finding) for finding in open_[:MOST_LISTED]]} if open_ else {}
    more = len(open_) - MOST_LISTED
    return shown | ({"moreFindings": more} if more > 0 else {})


def remedy_line(text: str) -> str:
    """A remedy in one line: its prose, and its commands in backticks."""
    return one_line(" ".join(_parts(text))) if text.strip() else ""


def _entry(finding: Finding) -> dict[str, str]:
    texts = {
        "resource": one_line(finding.resource),
        "message": one_line(finding.message or finding.reason),
        "remedy": remedy_line(finding.remedy),
    }
    shown = {name: cut(text, LONGEST_LISTED_TEXT) for name, text in texts.items() if text}
    return {
        "check": cut(one_line(finding.check), LONGEST_NAME),
        "severity": finding.severity.value,
        "verdict": finding.verdict.value,
        **({"reason": cut(one_line(finding.reason), LONGEST_NAME)} if finding.reason else {}),
        **shown,
    }


def _parts(text: str) -> Iterator[str]:
    for step in steps_of(text):
        if step.explanation:
            yield step.explanation
        if step.warning:
            yield f"Warning: {step.warning}"
        yield from (f"Run `{command}`." for command in step.commands)
