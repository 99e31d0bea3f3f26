"""The reason of the verdict in one sentence: the first cause in the order of fixing, and what else blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermetic.api.text import first_of
from hermetic.audit.model.findings import Finding, Verdict, worst_first
from hermetic.audit.model.hops import INTERNET, Path, shown
from hermetic.audit.report.causes import Cause
from hermetic.audit.result.open_since import Opening, key_of
from hermetic.audit.result.report import Report

NAMED = 3
"""How many places of one kind the sentence names."""


def cause_sentence(causes: Sequence[Cause]) -> str:
    """The first cause that keeps the verdict from Pass, and the number of blocking findings of all others.

    "An open path leads from subnet snet-gpu to the internet through nat gateway nat-egress; 3 further findings block
    Pass." Without an open path it is the message of the worst finding. "" where nothing blocks.
    """
    cause = _first_blocking(causes)
    if cause is None:
        return ""
    own = _blocking(cause.all)
    further = sum(len(_blocking(other.all)) for other in causes) - len(own)
    statement = _path_statement(own) or _message_of(worst_first(own)[0])
    if not further:
        return f"{statement}."
    return f"{statement}; {further} further {'finding blocks' if further == 1 else 'findings block'} Pass."


def since_sentence(report: Report, causes: Sequence[Cause]) -> str:
    """Since when the first blocking cause fails, by earlier reports; "" where nothing fails."""
    cause = _first_blocking(causes)
    if cause is None or cause.worst.verdict is not Verdict.FAIL:
        return ""
    openings = [opening for finding in _blocking(cause.all) if (opening := opening_of(report, finding)) is not None]
    if not openings:
        return "Since when is not known: no earlier report shows it."
    return f"Failing {min(openings, key=lambda opening: opening.since).phrase}."


def opening_of(report: Report, finding: Finding) -> Opening | None:
    """Since when the finding fails, where an earlier report shows it."""
    return report.openings.get(key_of(finding))


def _first_blocking(causes: Sequence[Cause]) -> Cause | None:
    return next((cause for cause in causes if cause.decides), None)


def _blocking(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity.decides]


def _path_statement(findings: Sequence[Finding]) -> str:
    """The first path of the failing findings, with the places from which the same path leads; "" without a path."""
    failing = [finding for finding in worst_first(findings) if finding.verdict is Verdict.FAIL]
    paths = [
        (finding.masked, path)
        for finding in sorted(failing, key=lambda finding: finding.masked)
        for path in map(shown, finding.paths)
        if len(path) > 1
    ]
    if not paths:
        return ""
    is_masked, first_path = paths[0]
    alike = [path for masked, path in paths if masked is is_masked and _kinds(path) == _kinds(first_path)]
    start, *middle, end = (_names(path[position].label for path in alike) for position in range(len(first_path)))
    through = f" through {' and '.join(middle)}" if middle else ""
    if is_masked:
        return f"One change opens a path from {start} to {end}{through}"
    return f"An open path leads from {start} to {end}{through}"


def _kinds(path: Path) -> tuple[object, ...]:
    return tuple(hop.kind for hop in path)


def _names(labels: Iterable[str]) -> str:
    names = ["the internet" if label == INTERNET.label else label for label in dict.fromkeys(labels)]
    return first_of(names, NAMED)


def _message_of(finding: Finding) -> str:
    """The first sentence of its message, without the full stop."""
    return (finding.message or finding.reason).partition(". ")[0].rstrip(".")
