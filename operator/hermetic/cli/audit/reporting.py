"""The report about what was collected, and the sentences that the command adds to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from hermetic import __version__
from hermetic.audit.estate.azure.pins import note_on_age
from hermetic.audit.model.findings import Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.exceptions import Exceptions
from hermetic.audit.result.comparison import Baseline, NotABaseline, baseline_of, same_cluster
from hermetic.audit.result.open_since import openings_of
from hermetic.audit.result.report import Report
from hermetic.audit.result.run import audit

if TYPE_CHECKING:
    from hermetic.audit.attestation.verification import Attestation
    from hermetic.cli.audit.sources import Collected


def report_of(collected: Collected, policy: Policy, exceptions: Exceptions) -> Report:
    """The report about one cluster."""
    return audit(
        collected.estate,
        collected.findings,
        policy,
        exceptions,
        started_at=collected.started_at,
        finished_at=collected.finished_at,
        version=__version__,
    )


def earlier_reports(
    baseline: Baseline | None, replaced: Iterable[Baseline], previous: Attestation | None
) -> list[Baseline]:
    """The earlier reports at hand: the baseline, those that this audit replaces, and the previous attestation's."""
    reports = [*replaced, *([baseline] if baseline is not None else [])]
    if previous is not None:
        with suppress(NotABaseline):  # of a release whose reports had other fields
            reports.append(baseline_of(previous.report, previous.digest.removeprefix("sha256:")))
    return reports


def with_openings(report: Report, earlier: Iterable[Baseline]) -> Report:
    """The report with the times since when its findings fail, by earlier reports about the same cluster."""
    same = [baseline for baseline in earlier if same_cluster(baseline, report.cluster)]
    return replace(report, openings=openings_of(report.findings, report.finished_at, same))


def idle_exceptions(exceptions: Exceptions, report: Report) -> Iterator[str]:
    """A sentence for each exception that accepts nothing although its check ran; often a typing error."""
    not_asked = {check for checks in report.not_asked.values() for check in checks}
    excepted = [finding for finding in report.findings if finding.verdict is Verdict.EXCEPTED]
    for exception in exceptions.exceptions:
        if exception.term.has_ended(report.finished_at.date()) or exception.check in not_asked:
            continue
        if not any(exception.is_about(finding) for finding in excepted):
            named = f"the exception of {exception.owner} for {exception.check} on {exception.resource}"
            yield f"{named} matches no finding that is Fail or Unknown"


def old_pins(report: Report) -> Iterator[str]:
    """A sentence if the Azure specifications that this release was compared with are too old."""
    if "azure" not in report.not_asked and (sentence := note_on_age(report.finished_at.date())):
        yield sentence
