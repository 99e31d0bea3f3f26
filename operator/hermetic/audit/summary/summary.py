"""A summary: the results of several clusters, worst first, and the changes that several of them need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from hermetic.audit.model.findings import CheckPage, Severity, Verdict
from hermetic.audit.result.comparison import NotABaseline
from hermetic.audit.summary.cluster_result import BlockingCause, ClusterResult, StoredReport, compared, read_result

DECIDING = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)


@dataclass(frozen=True, slots=True)
class SharedCause:
    """One kind of change: its gravest severity, how many findings block by it, and the clusters that need it."""

    action: str
    severity: Severity
    findings: int
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """The clusters of a summary at a time, worst first; at least one."""

    at: datetime
    clusters: tuple[ClusterResult, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all clusters."""
        return min((result.verdict for result in self.clusters), key=lambda verdict: verdict.rank)

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many clusters have each verdict."""
        return {verdict: sum(result.verdict is verdict for result in self.clusters) for verdict in DECIDING}

    @property
    def causes(self) -> tuple[SharedCause, ...]:
        """The changes that clusters need, gravest first, then by the number of clusters."""
        by_action: dict[str, list[tuple[ClusterResult, BlockingCause]]] = defaultdict(list)
        for result in self.clusters:
            for cause in result.causes:
                by_action[cause.action].append((result, cause))
        shared = [
            SharedCause(
                action=action,
                severity=min((cause.severity for _, cause in entries), key=lambda severity: severity.rank),
                findings=sum(cause.findings for _, cause in entries),
                clusters=tuple(dict.fromkeys(result.cluster for result, _ in entries)),
            )
            for action, entries in by_action.items()
        ]
        return tuple(sorted(shared, key=lambda cause: (cause.severity.rank, -len(cause.clusters), cause.action)))


def summarize(
    reports: Iterable[StoredReport], pages: Mapping[str, CheckPage], *, now: datetime, max_age: timedelta
) -> Summary:
    """The summary of JSON reports. Of several about one cluster the newest counts, and is compared with the one before.

    Raises NotABaseline, with the name of the file before the reason.
    """
    by_cluster: dict[str, list[tuple[ClusterResult, StoredReport]]] = defaultdict(list)
    for report in reports:
        try:
            result = read_result(report, pages=pages, now=now, max_age=max_age)
        except NotABaseline as error:
            raise NotABaseline(f"{report.file}: {error}") from error
        by_cluster[result.cluster.strip().strip("/").lower()].append((result, report))
    results = []
    for entries in by_cluster.values():
        (newest, report), *older = sorted(entries, key=lambda entry: entry[0].finished_at, reverse=True)
        results.append(compared(newest, report, older[0][1]) if older else newest)
    return summary_of(results, now)


def summary_of(results: Iterable[ClusterResult], now: datetime) -> Summary:
    """The summary of these results."""
    ordered = sorted(results, key=lambda result: (result.verdict.rank, -result.blocking, result.cluster.lower()))
    return Summary(now, tuple(ordered))
