"""The findings in the status of an EgressAudit: those that fail or are unknown, the worst first, bounded.

An object of the cluster must stay small, and the API server rejects the whole status if a text is longer than the CRD
allows. Each text is one line; the status has the number of findings that were left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hermetic.api.egressaudit import LONGEST_LISTED_TEXT, MOST_LISTED
from hermetic.api.text import one_line
from hermetic.audit.findings import Finding, Verdict, worst_first
from hermetic.audit.remedies.steps import steps_of

LONGEST_NAME = 64
_OPEN = frozenset({Verdict.FAIL, Verdict.UNKNOWN})


def listed(findings: Iterable[Finding]) -> dict[str, Any]:
    """`findings` and `moreFindings` of the status; neither where nothing fails or is unknown."""
    open_ = [finding for finding in worst_first(findings) if finding.verdict in _OPEN]
    shown: dict[str, Any] = {"findings": [_entry(finding) for finding in open_[:MOST_LISTED]]} if open_ else {}
    more = len(open_) - MOST_LISTED
    return shown | ({"moreFindings": more} if more > 0 else {})


def remedy_line(text: str) -> str:
    """A remedy in one line: its prose, and its commands in backticks."""
    return one_line(" ".join(_parts(text))) if text.strip() else ""


def cut(text: str, longest: int) -> str:
    """The text; a longer one is cut and ends with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _entry(finding: Finding) -> dict[str, str]:
    texts = {
        "resource": one_line(finding.resource),
        "message": one_line(finding.message or finding.reason),
        "remedy": remedy_line(finding.remedy),
    }
    shown = {name: cut(text, LONGEST_LISTED_TEXT) for name, text in texts.items() if text}
    return {
        "check": cut(one_line(finding.check), LONGEST_NAME),
        "severity": finding.severity.value,
        "verdict": finding.verdict.value,
        **({"reason": cut(one_line(finding.reason), LONGEST_NAME)} if finding.reason else {}),
        **shown,
    }


def _parts(text: str) -> Iterator[str]:
    for step in steps_of(text):
        if step.explanation:
            yield step.explanation
        if step.warning:
            yield f"Warning: {step.warning}"
        yield from (f"Run `{command}`." for command in step.commands)
