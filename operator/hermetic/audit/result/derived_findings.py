"""Derived findings: findings that follow from others, settled after exceptions are applied.

A check that depends on other checks passes `parts` (`passes(..., parts=Parts(...))`) and does not repeat their rules.
Its finding takes the worst verdict of its parts that decide: Fail where one fails, Unknown where one is unknown,
Excepted where the only open parts are accepted by exceptions, and otherwise its own. It names the open part, with that
part's path and remedy. The same function runs in an audit and wherever exceptions are applied later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hermetic.audit.model.findings import AcceptedException, Finding, Parts, Severity, Verdict, worst_first

_OPEN = (Verdict.FAIL, Verdict.UNKNOWN)
_UNSEEN = (Verdict.UNKNOWN, Verdict.EXCEPTED)


def derived(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with the derived ones settled from the others. Idempotent."""
    every = tuple(findings)
    return tuple(
        finding if finding.derived_from is None else _settled(finding, finding.derived_from, every) for finding in every
    )


def _settled(finding: Finding, parts: Parts, every: tuple[Finding, ...]) -> Finding:
    if finding.verdict is Verdict.EXCEPTED:
        return finding
    deciding = worst_first(parts_of(parts, every))
    if still_open := [part for part in deciding if part.verdict in _OPEN]:
        return _open(finding, parts, still_open)
    if accepted := [part for part in deciding if part.verdict is Verdict.EXCEPTED and part.exception is not None]:
        return _accepted(finding, parts, accepted)
    return finding


def parts_of(parts: Parts, every: Iterable[Finding]) -> Iterator[Finding]:
    """The findings that a derived one follows from, of all findings: those that decide, about the named resources.

    A check without a finding about any of them may have met them without knowing: of what it could not read, it does
    not know the id. Then what is Unknown to it about any resource is a part, accepted by an exception or not.
    """
    named = {resource.lower().rstrip("/") for resource in parts.resources}
    by_check: dict[str, list[Finding]] = {check: [] for check in parts.checks}
    for finding in every:
        if finding.derived_from is None and finding.check in by_check:
            by_check[finding.check].append(finding)
    for findings in by_check.values():
        about = [finding for finding in findings if not named or finding.resource.lower().rstrip("/") in named]
        candidates = about or [finding for finding in findings if finding.verdict in _UNSEEN]
        yield from (finding for finding in candidates if finding.severity.decides)


def _open(finding: Finding, parts: Parts, still_open: list[Finding]) -> Finding:
    """The worst verdict of the open parts; where some fail and others are unknown, the failing ones are the cause."""
    cause = still_open[0]
    causes = [part for part in still_open if part.verdict is cause.verdict]
    fails = cause.verdict is Verdict.FAIL
    return replace(
        finding,
        verdict=parts.worst if fails else Verdict.UNKNOWN,
        severity=_severity(causes),
        reason=parts.fail_reason if fails else parts.unknown_reason,
        message=f"{_named_cause(cause)}{_others(causes)}",
        remedy=cause.remedy,
        paths=tuple(dict.fromkeys(path for part in causes for path in part.paths)),
        masked=all(part.masked for part in causes),
    )


def _accepted(finding: Finding, parts: Parts, accepted: list[Finding]) -> Finding:
    """Excepted until the earliest expiry of the exceptions of its parts."""
    exceptions = [part.exception for part in accepted if part.exception is not None]
    worst = Verdict.FAIL if any(exception.accepted is Verdict.FAIL for exception in exceptions) else Verdict.UNKNOWN
    ends_first = min(exceptions, key=lambda exception: exception.expiry)
    checks = ", ".join(dict.fromkeys(part.check for part in accepted))
    return replace(
        finding,
        verdict=Verdict.EXCEPTED,
        severity=_severity(accepted),
        reason=parts.fail_reason if worst is Verdict.FAIL else parts.unknown_reason,
        message=f"exceptions accept the open paths: {_named_cause(accepted[0])}{_others(accepted)}",
        remedy=accepted[0].remedy,
        paths=tuple(dict.fromkeys(path for part in accepted for path in part.paths)),
        exception=AcceptedException(
            f"follows from what is accepted of {checks}: {ends_first.reason}",
            ends_first.owner,
            ends_first.expiry,
            accepted=worst if parts.worst is Verdict.FAIL else Verdict.UNKNOWN,
        ),
    )


def _severity(causes: list[Finding]) -> Severity:
    return min((part.severity for part in causes), key=lambda severity: severity.rank)


def _named_cause(cause: Finding) -> str:
    verdict = cause.exception.accepted if cause.exception is not None else cause.verdict
    return f"{cause.check} is {verdict.value} for {cause.resource}: {cause.message}"


def _others(causes: list[Finding]) -> str:
    """How many more parts, by check; "" where there is no other."""
    if len(causes) == 1:
        return ""
    checks = ", ".join(dict.fromkeys(part.check for part in causes[1:]))
    return f"; and {len(causes) - 1} more ({checks})"
