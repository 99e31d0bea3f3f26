"""Since when a finding fails, by the reports of earlier audits.

An earlier report shows one of two things about a finding that fails now: it failed then too, or the check ran then and
did not report it. What neither shows is not known. Each report passes on what it knows, so a chain of reports leads
back to the first that saw the finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from hermetic.api.times import timestamp, zoned
from hermetic.audit.model.findings import Finding, Verdict

Key = tuple[str, str]
_UNDECIDED = frozenset({Verdict.UNKNOWN, Verdict.EXCEPTED})
"""With a finding of these verdicts, a check may have had another finding without reporting it."""


@dataclass(frozen=True, slots=True)
class Opening:
    """When an audit first saw a finding fail, and when one before last did not report it ("" where none is known).

    Both are RFC 3339 times in UTC: the ends of those audits.
    """

    since: str
    not_at: str = ""

    @property
    def phrase(self) -> str:
        """ "since T or earlier", or "since a time between T and T" where an audit before did not report it."""
        if self.not_at:
            return f"since a time between {self.not_at} and {self.since}"
        return f"since {self.since} or earlier"


class EarlierReport(Protocol):
    """What is read of an earlier report: when it ended, which findings it has, and since when they failed then."""

    @property
    def finished_at(self) -> str: ...

    @property
    def not_asked(self) -> Set[str]: ...

    @property
    def openings(self) -> Mapping[Key, Opening]: ...

    def verdict_of(self, key: Key) -> Verdict | None: ...

    def verdicts_by_check(self) -> Mapping[str, Set[Verdict]]: ...


def key_of(finding: Finding) -> Key:
    """Check and resource, without regard to case, as ARM compares ids."""
    return finding.check, finding.resource.lower()


def openings_of(
    findings: Iterable[Finding], finished_at: datetime, earlier: Iterable[EarlierReport]
) -> Mapping[Key, Opening]:
    """Since when the failing findings fail, as far as earlier reports show it. The newest that knows decides."""
    failing = [key_of(finding) for finding in findings if _fails(finding)]
    ended = [(ended_at, report) for report in earlier if (ended_at := zoned(report.finished_at)) is not None]
    openings: dict[Key, Opening] = {}
    for ended_at, report in sorted(ended, key=lambda pair: pair[0]):
        if ended_at < finished_at:
            openings |= _openings_in(report, failing, ended_at, finished_at)
    return openings


def listed(openings: Mapping[Key, Opening], findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The `openSince` list of the JSON report, in the order of the findings."""
    return [
        {"check": finding.check, "resource": finding.resource, "since": opening.since}
        | ({"notAt": opening.not_at} if opening.not_at else {})
        for finding in findings
        if (opening := openings.get(key_of(finding))) is not None
    ]


def _fails(finding: Finding) -> bool:
    """Whether it fails, accepted by an exception or not."""
    accepted = finding.exception is not None and finding.exception.accepted is Verdict.FAIL
    return finding.verdict is Verdict.FAIL or (finding.verdict is Verdict.EXCEPTED and accepted)


def _openings_in(
    report: EarlierReport, failing: Iterable[Key], ended_at: datetime, finished_at: datetime
) -> dict[Key, Opening]:
    """What one earlier report shows about findings that fail now."""
    verdicts = report.verdicts_by_check()
    began = Opening(timestamp(finished_at), timestamp(ended_at))
    openings: dict[Key, Opening] = {}
    for key in failing:
        check, _ = key
        if (opening := report.openings.get(key)) is not None:
            openings[key] = opening
        elif report.verdict_of(key) is Verdict.FAIL:
            openings[key] = Opening(timestamp(ended_at))
        elif check not in report.not_asked and check in verdicts and not verdicts[check] & _UNDECIDED:
            openings[key] = began
    return openings
