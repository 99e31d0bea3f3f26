"""Texts that several formats share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hermetic.api.text import first_of
from hermetic.audit.model.findings import CheckPage, Evidence, Finding, Severity, Verdict
from hermetic.audit.remedies.steps import RemedyStep, steps_of
from hermetic.audit.report.causes import Cause, severities
from hermetic.audit.result.ownership import Ownership
from hermetic.audit.result.report import Comparison, FindingChange, Report


def page_of(check: str, pages: Mapping[str, CheckPage]) -> CheckPage:
    """The page of a check; for an unknown id, a page with the id only."""
    return pages.get(check) or CheckPage(
        id=check, title=check, severity=Severity.INFO, why="", reads=(), remedy="", source="", family="other"
    )


def facts_of_the_run(report: Report) -> dict[str, str]:
    """Who ran the audit and with which files, by name; empty where the report has no such data."""
    if (run := report.run) is None:
        return {}
    return {"run-by": run.by, "policy-file": run.policy or "none", "exceptions-file": run.exceptions or "none"}


def belonging(ownership: Ownership | None) -> str:
    """ "subscription Production (ID); tenant Contoso (ID)"; an unknown name leaves the id; "" without any."""
    if ownership is None:
        return ""
    parts = (
        ("subscription", ownership.subscription_name, ownership.subscription),
        ("tenant", ownership.tenant_name, ownership.tenant),
    )
    return "; ".join(f"{kind} {f'{name} ({id_})' if name else id_}" for kind, name, id_ in parts if id_)


def controls_of(page: CheckPage) -> str:
    """ "MCSB v1 NS-1; NIST SP 800-53 r5 SC-7, SC-7(5)"; "" where no control applies."""
    return "; ".join(f"{name} {', '.join(ids)}" for _, name, ids in page.controls.by_framework())


def heading_of(finding: Finding) -> str:
    """The heading of findings with this verdict; in the order of `worst_first` each heading occurs once."""
    match finding.verdict:
        case Verdict.FAIL if not finding.severity.decides:
            return "Warnings: Fail, but neither critical nor high"
        case Verdict.UNKNOWN if not finding.severity.decides:
            return "Unknown, but neither critical nor high"
        case Verdict.NOT_APPLICABLE:
            return "Not applicable"
    return finding.verdict.value


def remedy_of(finding: Finding, pages: Mapping[str, CheckPage]) -> str:
    """The remedy of a finding; "" for Pass and NotApplicable."""
    if finding.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}:
        return ""
    return finding.remedy or page_of(finding.check, pages).remedy


def remedy_steps(finding: Finding, pages: Mapping[str, CheckPage]) -> tuple[RemedyStep, ...]:
    """`remedy_of` as steps: prose and commands apart."""
    return steps_of(remedy_of(finding, pages))


def acceptance(finding: Finding) -> str:
    """ "Fail accepted by network team until 2026-12-31: hub by design"; "" where nothing is accepted."""
    if (accepted := finding.exception) is None:
        return ""
    return f"{accepted.accepted} accepted by {accepted.owner} until {accepted.expiry}: {accepted.reason}"


def evidence_line(evidence: Evidence) -> str:
    """ "GET /subscriptions/...: 200 sha256:..."; "no answer" where none came."""
    status = "no answer" if evidence.status is None else str(evidence.status)
    digest = f" sha256:{evidence.sha256}" if evidence.sha256 else ""
    return f"{evidence.request}: {status}{digest}" + (f" ({evidence.value})" if evidence.value else "")


def headline(report: Report) -> str:
    """The reason for the verdict, in one sentence."""
    if not report.findings:
        return "Nothing was read, so nothing is known."
    fails = _deciding(report.findings, Verdict.FAIL)
    unknown = _deciding(report.findings, Verdict.UNKNOWN)
    if fails:
        also = f"; {_counted(unknown)} could not be decided" if unknown else ""
        return f"{_counted(fails)} {'fails' if len(fails) == 1 else 'fail'}{also}."
    if unknown:
        return f"{_counted(unknown)} could not be decided: not enough could be seen."
    warnings = sum(finding.verdict is Verdict.FAIL for finding in report.findings)
    return f"No critical or high finding fails or is unknown{_and_warnings(warnings)}."


def cause_summary(causes: Sequence[Cause]) -> str:
    """What is open, by the causes that decide the verdict: "To reach Pass: ...; and 4 more." """
    titles = [cause.title for cause in causes if cause.decides]
    return f"To reach Pass: {first_of(titles, 3, '; ')}." if titles else ""


def fixing_range(causes: Sequence[Cause]) -> str:
    """Up to which cause the verdict is not Pass: "Fix 1 to 7 to reach Pass; 8 to 13 are warnings." """
    last = last_deciding(causes)
    if not last:
        return f"Pass already: {_warnings(1, len(causes))}." if causes else ""
    warnings = f"; {_warnings(last + 1, len(causes))}" if len(causes) > last else ""
    return f"Fix {'1' if last == 1 else f'1 to {last}'} to reach Pass{warnings}."


def last_deciding(causes: Sequence[Cause]) -> int:
    """The number of the last cause that has to be fixed to reach Pass; 0 where none has."""
    return max((cause.number for cause in causes if cause.decides), default=0)


def _warnings(first: int, last: int) -> str:
    return f"{first} is a warning" if first == last else f"{first} to {last} are warnings"


def settling(cause: Cause) -> str:
    """How many findings a cause settles, their severities, and which derived checks it completes."""
    count = len(cause.findings)
    message = f"settles {count} {'finding' if count == 1 else 'findings'} ({severities(cause.findings)})"
    completed = ", ".join(dict.fromkeys(finding.check for finding in cause.completes))
    return f"{message} and completes {completed}" if completed else message


def awaiting(cause: Cause) -> str:
    """The other causes that the derived findings of this one need."""
    other_names = ", ".join(str(number) for number in cause.awaits)
    return f"settled together with {other_names} of the order of fixing" if other_names else ""


def since(comparison: Comparison) -> str:
    """How many findings were added, removed and changed, and how many checks could not be compared."""
    counts = ", ".join(f"{len(comparison.of(kind))} {kind}" for kind in ("added", "removed", "changed"))
    fine = len(comparison.changes) - len(comparison.that_matter)
    message = f"Findings: {counts}"
    message += f" ({fine} of them Pass or NotApplicable throughout)." if fine else "."
    left = len(comparison.not_compared)
    if left:
        checks = f"{left} checks are" if left > 1 else "1 check is"
        message += f" {checks} not compared: only one of both audits asked."
    return message


def transition(change: FindingChange) -> str:
    """ "Pass -> Fail critical", "Fail critical" of a new one, "was Fail critical" of one that is gone."""
    before, now = (
        "" if state is None else f"{state.verdict} {state.severity}" for state in (change.before, change.now)
    )
    if not now:
        return f"was {before}"
    return f"{before} -> {now}" if before else now


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
    counted = [(severity, count) for severity, count in counts if count]
    noun = "finding" if counted[-1][1] == 1 else "findings"
    return f"{' and '.join(f'{count} {severity}' for severity, count in counted)} {noun}"
