"""The report inside a statement: the JSON of `hermetic audit`, complete where it is small.

A large one is signed without its Pass and NotApplicable findings: the statement counts those by check and has the
digest of the complete report; everything else is included in full. Fail, Unknown and Excepted findings are never left
out: where those alone are too large, nothing is signed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hermetic.api.times import timestamp, zoned
from hermetic.audit.attestation.refusals import Refusal, refused
from hermetic.audit.attestation.statement import Omitted, moment
from hermetic.audit.model.findings import Finding, Parts, Severity, Verdict, overall
from hermetic.audit.result.comparison import SCHEMA
from hermetic.signing.canonical_json import canonical
from hermetic.signing.faults import EnvelopeFault

MAY_BE_OMITTED = {Verdict.PASS, Verdict.NOT_APPLICABLE}

_FOLLOWS = frozenset({"causes", "baseline"})
_MOMENT = r"^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z$"
_Word = Annotated[str, Field(min_length=1)]


class _ReportModel(BaseModel):
    """The part of the report that is read here; other fields are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
    )


def _day(text: Any) -> date:
    """Parse a date of the report; only YYYY-MM-DD is valid."""
    if not isinstance(text, str) or len(text) != len("YYYY-MM-DD"):
        raise ValueError("must be a date YYYY-MM-DD")
    return date.fromisoformat(text)


class _Exception(_ReportModel):
    expiry: Annotated[date, BeforeValidator(_day)]
    accepted: Literal["Fail", "Unknown"]


class _Parts(_ReportModel):
    """What a derived finding follows from; absent from releases before derived findings."""

    checks: list[_Word]
    resources: list[_Word]
    fail_reason: _Word
    unknown_reason: _Word
    worst: Literal["Fail", "Unknown"]

    @property
    def parts(self) -> Parts:
        return Parts(
            tuple(self.checks), tuple(self.resources), self.fail_reason, self.unknown_reason, Verdict(self.worst)
        )


class _Finding(_ReportModel):
    check: _Word
    resource: _Word
    verdict: Annotated[Verdict, Field(strict=False)]
    severity: Annotated[Severity, Field(strict=False)]
    reason: str = ""
    remedy: str = ""
    exception: _Exception | None = None
    derived_from: _Parts | None = None

    def on(self, day: date) -> Finding:
        """The finding as of a day: an exception that has expired accepts nothing."""
        accepted = self.exception
        lapsed = self.verdict is Verdict.EXCEPTED and accepted is not None and day > accepted.expiry
        verdict = Verdict(accepted.accepted) if lapsed and accepted is not None else self.verdict
        return Finding(self.check, self.resource, verdict, self.severity)


class AttestedPrivateSubnet(_ReportModel):
    """Since when a subnet is known to be private; the list is absent from older releases."""

    subnet: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"(?i)^/subscriptions/[^/]+/.+/subnets/[^/*?]+$")
    ]
    since: Annotated[str, Field(pattern=_MOMENT)]
    basis: Literal["audit", "attestation", "activityLog"]
    stated_since: Annotated[str, Field(pattern=_MOMENT)] | None = None
    stated_by: Annotated[str, Field(min_length=1, max_length=1024)] | None = None

    @property
    def at(self) -> datetime:
        """The moment. Raises ValueError, as for 30 February."""
        return moment(self.since)


ArmId = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"(?i)^/subscriptions/[^/]+/.+$")]


class AttestedPool(_ReportModel):
    """A pool that the audit evaluated: its subnets and scale sets by ARM id, its node image as Azure names it."""

    name: _Word
    subnets: list[ArmId]
    scale_sets: list[ArmId] = []
    node_image: str = ""


class AttestedSubnet(_ReportModel):
    """A node subnet that the audit evaluated."""

    id: ArmId
    prefixes: list[str] = []


class AttestedCoverage(_ReportModel):
    """The places that the audit evaluated; absent from releases that did not list them."""

    pools: list[AttestedPool]
    subnets: list[AttestedSubnet]
    provisioned_subnets: list[ArmId] = []


class _Ended(_ReportModel):
    """An exception that had expired when the audit ran."""

    check: _Word
    resource: _Word
    owner: _Word
    expiry: Annotated[date, BeforeValidator(_day)]


class AuditReport(_ReportModel):
    """The fields of the audit JSON that affect the verdict."""

    cluster: _Word
    sources: Annotated[list[Literal["azure", "kube", "probe"]], Field(min_length=1)]
    profile: Literal["sealed", "filtered"]
    started_at: _Word
    finished_at: _Word
    verdict: Literal["Pass", "Fail", "Unknown"]
    summary: dict[Annotated[Verdict, Field(strict=False)], Annotated[int, Field(ge=0)]]
    findings: list[_Finding]
    private_subnets: list[AttestedPrivateSubnet] = []
    ended_exceptions: list[_Ended] = []
    coverage: AttestedCoverage | None = None

    def private_since(self, subnet_id: str) -> AttestedPrivateSubnet | None:
        """The entry of a subnet; None where there is none."""
        return next(
            (
                private_subnet
                for private_subnet in self.private_subnets
                if private_subnet.subnet.lower() == subnet_id.lower()
            ),
            None,
        )


def report_digest(report: Mapping[str, Any]) -> str:
    """'sha256:' and the SHA-256 of the report in canonical JSON. Raises ValueError for values it does not allow."""
    return "sha256:" + hashlib.sha256(canonical(report)).hexdigest()


def read_report(report: Mapping[str, Any]) -> AuditReport:
    """Parse the fields that affect the verdict. Raises AttestationRefused."""
    if report.get("schema") != SCHEMA:
        raise refused(
            Refusal.WRONG_PREDICATE, f"the report is of schema '{str(report.get('schema'))[:64]}', not '{SCHEMA}'"
        )
    try:
        read = AuditReport.model_validate(report)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:64] for part in first["loc"])
        raise refused(EnvelopeFault.MALFORMED, f"'{where}' of the report: {first['msg']}") from None
    if "azure" not in read.sources:
        raise refused(Refusal.AZURE_NOT_ASKED, f"the report's sources are {', '.join(read.sources)}")
    return read


def observed_at_of(report: AuditReport) -> str:
    """When evidence was observed: the start of the audit, which is the age of the oldest answer."""
    try:
        started = datetime.fromisoformat(report.started_at)
    except ValueError as error:
        raise refused(EnvelopeFault.MALFORMED, f"startedAt of the report is not a time: {error}") from None
    if started.tzinfo is None:
        raise refused(EnvelopeFault.MALFORMED, f"startedAt of the report has no zone: {report.started_at}")
    return timestamp(started)


def must_agree_with_itself(report: AuditReport, omitted: Omitted) -> None:
    """Check that counts and verdict match the findings. Raises AttestationRefused."""
    counted = Counter(finding.verdict for finding in report.findings)
    counted.update({Verdict.PASS: sum(omitted.passed.values())})
    counted.update({Verdict.NOT_APPLICABLE: sum(omitted.not_applicable.values())})
    for verdict in Verdict:
        if report.summary.get(verdict) != counted[verdict]:
            in_summary = report.summary.get(verdict)
            _refuse(f"summary.{verdict.value} is {in_summary}, and there are {counted[verdict]} such findings")
    for finding in report.findings:
        if (finding.verdict is Verdict.EXCEPTED) != (finding.exception is not None):
            _refuse(
                f"{finding.check} about {finding.resource[:256]} is {finding.verdict.value} with or for no exception"
            )
    _private_subnets_must_be_past(report)
    if (verdict := overall(_findings(report, omitted, date.min))).value != report.verdict:
        _refuse(f"its verdict is {report.verdict}, and its findings come to {verdict.value}")


def _private_subnets_must_be_past(report: AuditReport) -> None:
    """Check that each subnet is listed once, and since a moment not after the end of the audit."""
    named = [private_subnet.subnet.lower() for private_subnet in report.private_subnets]
    if len(set(named)) != len(named):
        _refuse("it names a private subnet twice")
    for private_subnet in report.private_subnets:
        try:
            is_past = private_subnet.at <= finished_at_of(report)
        except ValueError as error:
            raise refused(EnvelopeFault.MALFORMED, f"privateSubnets of the report: {error}") from None
        if not is_past:
            _refuse(
                f"{private_subnet.subnet[:256]} is private since {private_subnet.since}, "
                f"and the audit ended at {report.finished_at}"
            )


def finished_at_of(report: AuditReport) -> datetime:
    """When the audit ended. Raises AttestationRefused."""
    finished_at = zoned(report.finished_at)
    if finished_at is None:
        raise refused(
            EnvelopeFault.MALFORMED, f"finishedAt of the report is not a time with a zone: {report.finished_at[:64]}"
        )
    return finished_at


def verdict_on(report: AuditReport, omitted: Omitted, day: date) -> Verdict:
    """The overall verdict on a day: exceptions may have expired since the audit."""
    return overall(_findings(report, omitted, day))


def without_what_is_fine(report: Mapping[str, Any]) -> tuple[dict[str, Any], Omitted]:
    """The report without its Pass and NotApplicable findings, and the number of those by check.

    What is derived from its findings, and the comparison with a baseline, is left out too: only findings are needed.
    """
    remaining_findings = [finding for finding in report["findings"] if finding["verdict"] not in MAY_BE_OMITTED]
    left_out = {
        verdict: dict(Counter(finding["check"] for finding in report["findings"] if finding["verdict"] == verdict))
        for verdict in MAY_BE_OMITTED
    }
    omitted = Omitted(passed=left_out[Verdict.PASS], not_applicable=left_out[Verdict.NOT_APPLICABLE])
    small = {name: value for name, value in report.items() if name not in _FOLLOWS}
    return {**small, "findings": remaining_findings}, omitted


def _findings(report: AuditReport, omitted: Omitted, day: date) -> Iterator[Finding]:
    for finding in report.findings:
        yield finding.on(day)
    for counts, verdict in ((omitted.passed, Verdict.PASS), (omitted.not_applicable, Verdict.NOT_APPLICABLE)):
        for check in counts:
            yield Finding(check, "", verdict, Severity.INFO)


def _refuse(subject: str) -> None:
    raise refused(Refusal.CONTRADICTORY, f"the report contradicts itself: {subject}")
