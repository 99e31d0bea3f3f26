"""From what a check says to a finding: the one place where truth becomes three-valued.

A check says what it found and names every look that it rests on. If one of those looks was not whole, a Pass or a
NotApplicable becomes Unknown, and the finding says why; a Fail stands, for it was seen. No check has to remember that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.look import Look, Missing
from hermetic.audit.estate.questions import Problem, Source, Trouble
from hermetic.audit.findings import CheckPage, Evidence, Finding, Severity, Verdict, urgency
from hermetic.audit.policy import Policy
from hermetic.errors import FactDamaged


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a check says about one resource, before doubt is applied.

    `severity` and `remedy` are given only where they differ from those of the check.
    """

    verdict: Verdict
    resource: str
    reason: str
    message: str
    looks: tuple[Look, ...] = ()
    paths: tuple[str, ...] = ()
    severity: Severity | None = None
    remedy: str = ""


def fails(
    resource: str,
    reason: str,
    message: str,
    *looks: Look,
    paths: Iterable[str] = (),
    severity: Severity | None = None,
    remedy: str = "",
) -> Judgement:
    """It is open. `paths` are drawn hop by hop: "node subnet -> nat gateway -> internet"."""
    return Judgement(Verdict.FAIL, resource, reason, message, looks, tuple(paths), severity, remedy)


def passes(resource: str, reason: str, message: str, *looks: Look, severity: Severity | None = None) -> Judgement:
    """It was looked at, whole, and is fine. Name every look that this rests on: a Pass without evidence is a defect."""
    return Judgement(Verdict.PASS, resource, reason, message, looks, severity=severity)


def cannot_say(
    resource: str, reason: str, message: str, *looks: Look, severity: Severity | None = None, remedy: str = ""
) -> Judgement:
    """What was seen does not decide it."""
    return Judgement(Verdict.UNKNOWN, resource, reason, message, looks, severity=severity, remedy=remedy)


def does_not_apply(resource: str, reason: str, message: str, *looks: Look) -> Judgement:
    """Not a question here; rests on the looks that show it."""
    return Judgement(Verdict.NOT_APPLICABLE, resource, reason, message, looks)


def whatever_is_damaged(resource: str, judgements: Iterable[Judgement]) -> Iterator[Judgement]:
    """The judgements of one resource; a field of it that cannot be read makes it Unknown, and no other resource."""
    try:
        yield from judgements
    except FactDamaged as damage:
        yield cannot_say(resource, "Unreadable", damage.message, unreadable(damage))


def unreadable(damage: FactDamaged) -> Missing:
    """Damage as a look that saw nothing."""
    return Missing(Problem(Trouble.UNREADABLE, damage.message), damage.evidence)


Judge = Callable[[Estate, Policy], Iterable[Judgement]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its page, who must be asked for it, and the function that judges an estate."""

    page: CheckPage
    needs: frozenset[Source]
    judge: Judge


def findings_of(check: Check, estate: Estate, policy: Policy) -> Iterator[Finding]:
    """Every finding of one check; one per resource, the worst where a check spoke twice of one."""
    said: dict[str, Finding] = {}
    for judgement in _judgements(check, estate, policy):
        finding = _settled(check.page, judgement)
        known = said.get(finding.resource.lower())
        said[finding.resource.lower()] = finding if known is None else _both(known, finding)
    yield from said.values()


def _judgements(check: Check, estate: Estate, policy: Policy) -> Iterator[Judgement]:
    try:
        yield from check.judge(estate, policy)
    except FactDamaged as damage:
        yield cannot_say(damage.resource or estate.cluster, "Unreadable", damage.message, unreadable(damage))


def _settled(page: CheckPage, said: Judgement) -> Finding:
    verdict, reason, message, remedy = said.verdict, said.reason, said.message, said.remedy or page.remedy
    problem = next((look.problem for look in said.looks if look.problem is not None), None)
    evidence = _evidence(said.looks)
    if verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.UNKNOWN} and problem is not None:
        verdict, reason, message, remedy = Verdict.UNKNOWN, problem.trouble.value, _in_words(problem), _remedy(problem)
    elif verdict is Verdict.PASS and not evidence:
        verdict, reason, message = Verdict.UNKNOWN, "NoEvidence", f"nothing was seen that shows it: {message}"
    if verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}:
        remedy = ""
    severity = said.severity or page.severity
    return Finding(page.id, said.resource, verdict, severity, reason, message, remedy, said.paths, evidence)


def _both(first: Finding, second: Finding) -> Finding:
    """Two findings of one resource as one: the worse speaks, and what is wrong with the other, paths and evidence stay.

    A Fail that only warns does not outrank an Unknown that decides: a way out may hide behind that one.
    """
    worse, other = sorted((first, second), key=lambda finding: (*urgency(finding), finding.severity.rank))
    message = worse.message
    is_wrong = other.verdict in {Verdict.FAIL, Verdict.UNKNOWN}
    if (is_wrong or other.verdict is worse.verdict) and other.message not in message:
        message = f"{message}; {other.message}"
    paths = tuple(dict.fromkeys((*worse.paths, *other.paths)))
    evidence = tuple(dict.fromkeys((*worse.evidence, *other.evidence)))
    return Finding(
        worse.check, worse.resource, worse.verdict, worse.severity, worse.reason, message, worse.remedy, paths, evidence
    )


def _evidence(looks: Iterable[Look]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(one for look in looks for one in look.evidence))


def _in_words(problem: Problem) -> str:
    if problem.permission:
        return f"{problem.detail}; missing permission: {problem.permission}"
    return problem.detail


def _remedy(problem: Problem) -> str:
    if problem.trouble is Trouble.FORBIDDEN and problem.permission:
        return f"Let the auditing identity do {problem.permission} there (the role in docs/audit.md has it)."
    if problem.trouble is Trouble.UNAVAILABLE:
        return "Audit again; a larger --retry-budget waits longer."
    return "Audit again; when it stays, read the evidence: nothing was decided from what could not be read."
