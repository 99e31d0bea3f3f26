"""The result of one cluster, read from the JSON report that `hermetic audit` wrote about it.

Nothing of a report is believed that its own findings contradict. A report that is too old, or that rests on an
exception which has expired since, is no Pass any more: both are decided on the day of the summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from hermetic.api.times import CLOCK_SKEW, spell_duration, zoned
from hermetic.audit.attestation.report_form import (
    AuditReport,
    finished_at_of,
    must_agree_with_itself,
    observed_at_of,
    verdict_on,
)
from hermetic.audit.attestation.statement import Omitted
from hermetic.audit.model.findings import CheckPage, Finding, Severity, Verdict
from hermetic.audit.report.causes import causes_of
from hermetic.audit.report.resources import short_name
from hermetic.audit.result.comparison import (
    NotABaseline,
    compare_reports,
    read_baseline,
    read_comparison,
    same_cluster,
)
from hermetic.audit.result.report import Comparison, FindingChange, State
from hermetic.errors import AttestationRefused

OPEN = frozenset({Verdict.FAIL, Verdict.UNKNOWN})
_COMPLETE = Omitted()


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A JSON report: its bytes, and where it is (`file`); `page` is a link to the HTML report, "" without one."""

    content: bytes
    file: str
    page: str = ""


@dataclass(frozen=True, slots=True)
class BlockingCause:
    """One change that a cluster needs before its verdict is Pass, and how many blocking findings it settles."""

    action: str
    title: str
    severity: Severity
    findings: int


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """One row of a summary.

    `verdict` is that of the day of the summary; `doubt` says why it is not the verdict of the report, "" where it is.
    `observed_at` is the start of the audit: no answer is older. `counts` are all findings by verdict.
    """

    cluster: str
    verdict: Verdict
    doubt: str
    profile: str
    sources: tuple[str, ...]
    observed_at: datetime
    finished_at: datetime
    counts: Mapping[Verdict, int]
    causes: tuple[BlockingCause, ...]
    comparison: Comparison | None
    file: str
    page: str
    sha256: str

    @property
    def name(self) -> str:
        """The name of the cluster without its id."""
        return short_name(self.cluster)

    @property
    def blocking(self) -> int:
        """How many critical and high findings keep the verdict from Pass."""
        return sum(cause.findings for cause in self.causes)

    @property
    def opened(self) -> tuple[FindingChange, ...]:
        """Findings that block now, and did not block in the last run."""
        return tuple(change for change in self._changes() if is_blocking(change.now) and not is_blocking(change.before))

    @property
    def closed(self) -> tuple[FindingChange, ...]:
        """Findings that blocked in the last run, and block no longer."""
        return tuple(change for change in self._changes() if is_blocking(change.before) and not is_blocking(change.now))

    def _changes(self) -> tuple[FindingChange, ...]:
        return () if self.comparison is None else self.comparison.changes


def is_blocking(state: State | None) -> bool:
    """Whether a finding in this state keeps the verdict from Pass."""
    return state is not None and state.verdict in OPEN and state.severity.decides


def read_result(
    report: StoredReport, *, pages: Mapping[str, CheckPage], now: datetime, max_age: timedelta
) -> ClusterResult:
    """The result of a report, with the changes that it holds itself.

    Raises NotABaseline for what is no such report, or one whose verdict does not follow from its findings.
    """
    baseline = read_baseline(report.content)
    data = json.loads(report.content)
    read = _consistent(data)
    verdict, doubt = _verdict_now(read, now, max_age)
    return ClusterResult(
        cluster=read.cluster,
        verdict=verdict,
        doubt=doubt,
        profile=read.profile,
        sources=tuple(read.sources),
        observed_at=_moment(read.started_at),
        finished_at=_moment(read.finished_at),
        counts={verdict: read.summary.get(verdict, 0) for verdict in Verdict},
        causes=tuple(_blocking_causes(read, pages, now)),
        comparison=read_comparison(data["baseline"]) if isinstance(data.get("baseline"), dict) else None,
        file=report.file,
        page=report.page,
        sha256=baseline.sha256,
    )


def compared(result: ClusterResult, report: StoredReport, earlier: StoredReport) -> ClusterResult:
    """The result of `report` with its changes since the `earlier` one, unless it holds changes itself."""
    if result.comparison is not None:
        return result
    later, before = read_baseline(report.content), read_baseline(earlier.content)
    return replace(result, comparison=compare_reports(before, later) if same_cluster(before, later.cluster) else None)


def _consistent(data: Mapping[str, Any]) -> AuditReport:
    try:
        read = AuditReport.model_validate(data)
        observed_at_of(read)
        finished_at_of(read)
        must_agree_with_itself(read, _COMPLETE)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:64] for part in first["loc"])
        raise NotABaseline(f"`{where}`: {first['msg']}") from error
    except AttestationRefused as refusal:
        raise NotABaseline(refusal.message) from refusal
    return read


def _moment(text: str) -> datetime:
    if (moment := zoned(text)) is None:
        raise NotABaseline(f"{text[:64]!r} is not a time with a zone")
    return moment


def _verdict_now(read: AuditReport, now: datetime, max_age: timedelta) -> tuple[Verdict, str]:
    """The verdict on this day, and why it differs from that of the report. A Fail stays a Fail, however old it is."""
    verdict = verdict_on(read, _COMPLETE, now.date())
    doubt = "" if verdict.value == read.verdict else "an exception has expired since the audit"
    if verdict is not Verdict.PASS:
        return verdict, doubt
    age = now - _moment(read.started_at)
    if age > max_age:
        evidence, limit = spell_duration(age, units=1), spell_duration(max_age, units=1)
        return Verdict.UNKNOWN, f"the evidence is {evidence} old, and counts for {limit}"
    if max(_moment(read.started_at), _moment(read.finished_at)) > now + CLOCK_SKEW:
        return Verdict.UNKNOWN, "the evidence is from the future: compare the clocks of both machines"
    return verdict, doubt


def _blocking_causes(read: AuditReport, pages: Mapping[str, CheckPage], now: datetime) -> Iterator[BlockingCause]:
    for cause in causes_of(_findings(read, now), pages):
        blocking = [finding for finding in cause.all if finding.verdict in OPEN and finding.severity.decides]
        if blocking:
            worst = min((finding.severity for finding in blocking), key=lambda severity: severity.rank)
            yield BlockingCause(cause.action, cause.title, worst, len(blocking))


def _findings(read: AuditReport, now: datetime) -> Iterator[Finding]:
    for stored in read.findings:
        parts = stored.derived_from.parts if stored.derived_from is not None else None
        yield replace(stored.on(now.date()), reason=stored.reason, remedy=stored.remedy, derived_from=parts)
