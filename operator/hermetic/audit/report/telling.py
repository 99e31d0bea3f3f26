"""Sentences that several formats share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hermetic.audit.findings import CheckPage, Evidence, Finding, Report, Severity, Verdict

# What XML 1.0 cannot hold at all, and what a terminal would obey; a lone surrogate cannot even be encoded.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BLANKS = re.compile(r"\s+")


def printable(text: str) -> str:
    """The text with every character that a reader could not see, or that would turn others around, made visible."""
    return _DIRECTION.sub("\ufffd", _UNPRINTABLE.sub("\ufffd", text))


def one_line(text: str) -> str:
    """Printable text without line breaks or blanks at its ends; "-" where nothing is left."""
    return _BLANKS.sub(" ", printable(text)).strip() or "-"


def page_of(check: str, pages: Mapping[str, CheckPage]) -> CheckPage:
    """The page of a check; for an id that has none, a page that says no more than the id."""
    return pages.get(check) or CheckPage(
        id=check, title=check, severity=Severity.INFO, why="", reads=(), remedy="", source="", family="other"
    )


def heading_of(finding: Finding) -> str:
    """What findings of this verdict are told under; in the order of `worst_first` each heading comes once."""
    match finding.verdict:
        case Verdict.FAIL if not finding.severity.decides:
            return "Warnings: Fail, but neither critical nor high"
        case Verdict.UNKNOWN if not finding.severity.decides:
            return "Unknown, but neither critical nor high"
        case Verdict.NOT_APPLICABLE:
            return "Not applicable"
    return finding.verdict.value


def remedy_of(finding: Finding, pages: Mapping[str, CheckPage]) -> str:
    """What to do about a finding that is not fine; "" for one that is."""
    if finding.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}:
        return ""
    return finding.remedy or page_of(finding.check, pages).remedy


def acceptance(finding: Finding) -> str:
    """ "Fail accepted by network team until 2026-12-31: hub by design"; "" where nothing is accepted."""
    if (accepted := finding.exception) is None:
        return ""
    return f"{accepted.accepted} accepted by {accepted.owner} until {accepted.expiry}: {accepted.reason}"


def evidence_line(seen: Evidence) -> str:
    """ "GET /subscriptions/...: 200 sha256:..."; "no answer" where none came."""
    status = "no answer" if seen.status is None else str(seen.status)
    return f"{seen.request}: {status}" + (f" sha256:{seen.sha256}" if seen.sha256 else "")


def hops_of(path: str) -> tuple[str, ...]:
    """ "node subnet -> nat gateway -> internet" taken apart."""
    return tuple(hop for part in path.split("->") if (hop := part.strip()))


def headline(report: Report) -> str:
    """Why the verdict is what it is, in one sentence."""
    if not report.findings:
        return "Nothing was looked at, so nothing is known."
    fails = _deciding(report.findings, Verdict.FAIL)
    unknown = _deciding(report.findings, Verdict.UNKNOWN)
    if fails:
        also = f"; {_counted(unknown)} could not be decided" if unknown else ""
        return f"{_counted(fails)} {'fails' if len(fails) == 1 else 'fail'}{also}."
    if unknown:
        return f"{_counted(unknown)} could not be decided: not enough could be seen."
    warnings = sum(finding.verdict is Verdict.FAIL for finding in report.findings)
    return f"No critical or high finding fails or is unknown{_and_warnings(warnings)}."


def _and_warnings(count: int) -> str:
    return f"; {count} {'warning' if count == 1 else 'warnings'} of lower severity" if count else ""


def _deciding(findings: Iterable[Finding], verdict: Verdict) -> list[Finding]:
    return [finding for finding in findings if finding.verdict is verdict and finding.severity.decides]


def _counted(findings: list[Finding]) -> str:
    """ "2 critical and 1 high finding"; only critical and high are counted."""
    counts = [
        (severity, sum(finding.severity is severity for finding in findings))
        for severity in (Severity.CRITICAL, Severity.HIGH)
    ]
    told = [(severity, count) for severity, count in counts if count]
    noun = "finding" if told[-1][1] == 1 else "findings"
    return f"{' and '.join(f'{count} {severity}' for severity, count in told)} {noun}"
