"""One audit: every check whose sources were asked, exceptions applied, in one report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Source
from hermetic.audit.exceptions import Exceptions
from hermetic.audit.findings import Finding, Report, by_check
from hermetic.audit.judging import findings_of
from hermetic.audit.policy import Policy

SOURCES: tuple[Source, ...] = ("azure", "kube", "probe")


def judge(estate: Estate, policy: Policy) -> tuple[Finding, ...]:
    """Findings of every check whose sources were all asked, before exceptions."""
    asked = (check for check in CHECKS if check.needs <= estate.sources)
    return tuple(by_check(finding for check in asked for finding in findings_of(check, estate, policy)))


def audit(  # noqa: PLR0913 - a report is about all of them
    estate: Estate,
    judged: tuple[Finding, ...],
    policy: Policy,
    exceptions: Exceptions,
    *,
    started_at: datetime,
    finished_at: datetime,
    version: str,
) -> Report:
    """The report about an estate and what was judged of it. Exceptions count by the day on which the audit ended."""
    findings, notes = exceptions.applied(judged, finished_at.date())
    return Report(
        cluster=estate.cluster,
        sources=tuple(source for source in SOURCES if source in estate.sources),
        profile=policy.profile,
        started_at=started_at,
        finished_at=finished_at,
        findings=findings,
        not_asked=not_asked(estate.sources),
        notes=notes,
        tool_version=version,
    )


def not_asked(sources: Iterable[Source]) -> Mapping[str, tuple[str, ...]]:
    """By source that was left out, the ids of the checks that need it."""
    asked = frozenset(sources)
    return {
        source: tuple(sorted(check.page.id for check in CHECKS if source in check.needs))
        for source in SOURCES
        if source not in asked
    }
