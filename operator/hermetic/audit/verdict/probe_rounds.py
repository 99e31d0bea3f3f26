"""The outcome of one round of the probe, by the findings that rest on it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.model.findings import Finding, Verdict

PROBE_CHECKS = frozenset(check.page.id for check in CHECKS if "probe" in check.needs)


def round_outcome(findings: Iterable[Finding]) -> tuple[Verdict, frozenset[str]]:
    """Fail, Unknown or Pass of a round, and the resources whose findings are Unknown.

    `findings` are those after exceptions. Those of medium and low severity do not decide a verdict, nor a round.
    """
    deciding = [finding for finding in findings if finding.check in PROBE_CHECKS and finding.severity.decides]
    unknown = frozenset(finding.resource for finding in deciding if finding.verdict is Verdict.UNKNOWN)
    if any(finding.verdict is Verdict.FAIL for finding in deciding):
        return Verdict.FAIL, unknown
    return (Verdict.UNKNOWN if unknown else Verdict.PASS), unknown
