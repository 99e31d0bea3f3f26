"""The report inside a statement: the JSON of `hermetic audit`, whole where it is small.

A large one is signed without its Pass and NotApplicable findings: the statement counts those by check, holds the digest
of the whole report, and everything else stands in full. What is Fail, Unknown or Excepted is never left out: where that
alone is too large, nothing is signed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hermetic.api.times import timestamp
from hermetic.audit.attestation.refusals import Refusal, refused
from hermetic.audit.attestation.statement import Omitted
from hermetic.audit.attestation.strict_json import canonical
from hermetic.audit.findings import Finding, Severity, Verdict, overall
from hermetic.audit.report.machine import SCHEMA

MAY_BE_OMITTED = {Verdict.PASS, Verdict.NOT_APPLICABLE}

_Word = Annotated[str, Field(min_length=1)]


class _Shape(BaseModel):
    """What is needed of a part of the report; what else it says is none of an attestation's business."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
    )


def _day(text: Any) -> date:
    """A date of the report is written YYYY-MM-DD and no other way."""
    if not isinstance(text, str) or len(text) != len("YYYY-MM-DD"):
        raise ValueError("must be a date YYYY-MM-DD")
    return date.fromisoformat(text)


class _Exception(_Shape):
    expiry: Annotated[date, BeforeValidator(_day)]
    accepted: Literal["Fail", "Unknown"]


class _Finding(_Shape):
    check: _Word
    resource: _Word
    verdict: Annotated[Verdict, Field(strict=False)]
    severity: Annotated[Severity, Field(strict=False)]
    exception: _Exception | None = None

    def on(self, day: date) -> Finding:
        """The finding as it counts on a day: an exception that has expired accepts nothing."""
        accepted = self.exception
        lapsed = self.verdict is Verdict.EXCEPTED and accepted is not None and day > accepted.expiry
        verdict = Verdict(accepted.accepted) if lapsed and accepted is not None else self.verdict
        return Finding(self.check, self.resource, verdict, self.severity)


class AuditReport(_Shape):
    """The fields of the audit JSON that decide something."""

    cluster: _Word
    sources: Annotated[list[Literal["azure", "kube", "probe"]], Field(min_length=1)]
    profile: Literal["sealed", "filtered"]
    started_at: _Word
    finished_at: _Word
    verdict: Literal["Pass", "Fail", "Unknown"]
    summary: dict[Annotated[Verdict, Field(strict=False)], Annotated[int, Field(ge=0)]]
    findings: list[_Finding]


def report_digest(report: Mapping[str, Any]) -> str:
    """'sha256:' and the SHA-256 of the report in canonical JSON. Raises ValueError for what that cannot say."""
    return "sha256:" + hashlib.sha256(canonical(report)).hexdigest()


def read_report(report: Mapping[str, Any]) -> AuditReport:
    """The fields that decide something. Raises AttestationRefused."""
    if report.get("schema") != SCHEMA:
        raise refused(
            Refusal.WRONG_PREDICATE, f"the report is of schema '{str(report.get('schema'))[:64]}', not '{SCHEMA}'"
        )
    try:
        read = AuditReport.model_validate(report)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:64] for part in first["loc"])
        raise refused(Refusal.MALFORMED, f"'{where}' of the report: {first['msg']}") from None
    if "azure" not in read.sources:
        raise refused(Refusal.AZURE_NOT_ASKED, f"the report's sources are {', '.join(read.sources)}")
    return read


def observed_at_of(report: AuditReport) -> str:
    """When evidence was observed: the start of the audit, for what was read first is the oldest."""
    try:
        started = datetime.fromisoformat(report.started_at)
    except ValueError as error:
        raise refused(Refusal.MALFORMED, f"startedAt of the report is no time: {error}") from None
    if started.tzinfo is None:
        raise refused(Refusal.MALFORMED, f"startedAt of the report has no zone: {report.started_at}")
    return timestamp(started)


def must_agree_with_itself(report: AuditReport, omitted: Omitted) -> None:
    """Counts and verdict are those of the findings. Raises AttestationRefused."""
    counted = Counter(finding.verdict for finding in report.findings)
    counted.update({Verdict.PASS: sum(omitted.passed.values())})
    counted.update({Verdict.NOT_APPLICABLE: sum(omitted.not_applicable.values())})
    for verdict in Verdict:
        if report.summary.get(verdict) != counted[verdict]:
            said = report.summary.get(verdict)
            _refuse(f"summary.{verdict.value} is {said}, and there are {counted[verdict]} such findings")
    for finding in report.findings:
        if (finding.verdict is Verdict.EXCEPTED) != (finding.exception is not None):
            _refuse(
                f"{finding.check} about {finding.resource[:256]} is {finding.verdict.value} with or for no exception"
            )
    if (verdict := overall(_findings(report, omitted, date.min))).value != report.verdict:
        _refuse(f"its verdict is {report.verdict}, and its findings come to {verdict.value}")


def verdict_on(report: AuditReport, omitted: Omitted, day: date) -> Verdict:
    """The overall verdict on a day: exceptions may have expired since the audit."""
    return overall(_findings(report, omitted, day))


def without_what_is_fine(report: Mapping[str, Any]) -> tuple[dict[str, Any], Omitted]:
    """The report without its Pass and NotApplicable findings, and how many of which check those were."""
    kept = [finding for finding in report["findings"] if finding["verdict"] not in MAY_BE_OMITTED]
    left_out = {
        verdict: dict(Counter(each["check"] for each in report["findings"] if each["verdict"] == verdict))
        for verdict in MAY_BE_OMITTED
    }
    omitted = Omitted(passed=left_out[Verdict.PASS], not_applicable=left_out[Verdict.NOT_APPLICABLE])
    return {**report, "findings": kept}, omitted


def _findings(report: AuditReport, omitted: Omitted, day: date) -> Iterator[Finding]:
    for finding in report.findings:
        yield finding.on(day)
    for counts, verdict in ((omitted.passed, Verdict.PASS), (omitted.not_applicable, Verdict.NOT_APPLICABLE)):
        for check in counts:
            yield Finding(check, "", verdict, Severity.INFO)


def _refuse(what: str) -> None:
    raise refused(Refusal.CONTRADICTORY, f"the report contradicts itself: {what}")
