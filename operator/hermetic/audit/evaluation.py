"""Turns the results of a check into findings; Pass becomes Unknown where an observation is incomplete.

A check names every observation that its result rests on. If one of them has a problem, a Pass or NotApplicable
becomes Unknown, and the finding says why; a Fail stays, because it was observed. Checks do not repeat that rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from hermetic.api.field_managers import Place, written_by
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Missing, Observation
from hermetic.audit.estate.questions import Problem, Source, UnreadReason
from hermetic.audit.excerpts import evidence_of
from hermetic.audit.excerpts import merged as merged_evidence
from hermetic.audit.findings import CheckPage, Finding, Parts, Severity, Verdict
from hermetic.audit.hops import Path
from hermetic.audit.policy import Policy
from hermetic.audit.remedies.filling import Fill, merged
from hermetic.audit.remedies.of_finding import RemedyContext, filled_remedy, surroundings_of
from hermetic.audit.remedies.steps import steps_of, text_of
from hermetic.audit.writers import writer_of
from hermetic.errors import FactDamaged

SIGNED = frozenset({Verdict.FAIL, Verdict.UNKNOWN})
"""Verdicts whose finding names the writer of the object to change."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check for one resource, before doubt is applied.

    `severity` and `remedy` are given only where they differ from those of the check. `fill` has values of placeholders
    that only the check knows, such as the name of a rule. `blames` are the offending fields of a Kubernetes object; the
    writer is taken from the first of them that has one.
    """

    verdict: Verdict
    resource: str
    reason: str
    message: str
    observations: tuple[Observation, ...] = ()
    paths: tuple[Path, ...] = ()
    severity: Severity | None = None
    remedy: str = ""
    fill: Fill = field(default_factory=dict)
    parts: Parts | None = None
    masked: bool = False
    blames: tuple[Place, ...] = ()


def fails(  # noqa: PLR0913 - passed by keyword
    resource: str,
    reason: str,
    message: str,
    *observations: Observation,
    paths: Iterable[Path] = (),
    severity: Severity | None = None,
    remedy: str = "",
    fill: Fill | None = None,
    masked: bool = False,
    blames: Iterable[Place] = (),
) -> CheckResult:
    """A Fail. `paths` are hops in the order of a packet: `path_of(NODE_SUBNETS, PUBLIC_IP, INTERNET)`.

    `masked` where something else stops its packets today. `blames`: the offending fields.
    """
    return CheckResult(
        Verdict.FAIL, resource, reason, message, observations, tuple(paths), severity, remedy, fill or {},
        masked=masked, blames=tuple(blames),
    )  # fmt: skip


def passes(
    resource: str,
    reason: str,
    message: str,
    *observations: Observation,
    severity: Severity | None = None,
    parts: Parts | None = None,
) -> CheckResult:
    """A Pass. `observations` must hold every observation that it rests on: a Pass without evidence is a defect.

    With `parts` the verdict also depends on those: `hermetic.audit.derived_findings` settles it after exceptions.
    """
    return CheckResult(Verdict.PASS, resource, reason, message, observations, severity=severity, parts=parts)


def unknown(
    resource: str,
    reason: str,
    message: str,
    *observations: Observation,
    severity: Severity | None = None,
    remedy: str = "",
    fill: Fill | None = None,
) -> CheckResult:
    """An Unknown: what was observed does not decide the check."""
    return CheckResult(
        Verdict.UNKNOWN, resource, reason, message, observations, severity=severity, remedy=remedy, fill=fill or {}
    )


def does_not_apply(resource: str, reason: str, message: str, *observations: Observation) -> CheckResult:
    """A NotApplicable; `observations` are the observations that show it."""
    return CheckResult(Verdict.NOT_APPLICABLE, resource, reason, message, observations)


def whatever_is_damaged(resource: str, results: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """The results of one resource; a field of it that cannot be read makes this resource Unknown, and no other."""
    try:
        yield from results
    except FactDamaged as damage:
        yield unknown(resource, "Unreadable", damage.message, unreadable(damage))


def unreadable(damage: FactDamaged) -> Missing:
    """Damage as an observation that has no value."""
    return Missing(Problem(UnreadReason.UNREADABLE, damage.message), damage.evidence)


CheckFunction = Callable[[Estate, Policy], Iterable[CheckResult]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its page, the sources that it needs, and the function that evaluates an estate."""

    page: CheckPage
    needs: frozenset[Source]
    evaluate: CheckFunction


def findings_of(check: Check, estate: Estate, policy: Policy) -> Iterator[Finding]:
    """Every finding of one check: one per resource, the most serious where the check has several results about it.

    Derived findings are not settled yet: `hermetic.audit.derived_findings` does that.
    """
    by_resource: dict[str, list[Finding]] = {}
    writers: dict[str, str] = {}
    around = surroundings_of(estate)
    for result in _results(check, estate, policy):
        finding, resource = _settled(check.page, result, around), result.resource.lower()
        by_resource.setdefault(resource, []).append(finding)
        if finding.verdict in SIGNED and (
            writer := writer_of(estate, result.resource, result.observations, result.blames)
        ):
            writers[resource] = writer
    for resource, findings in by_resource.items():
        # By message where equally serious: Azure does not guarantee the order of its lists.
        found = reduce(_both, sorted(findings, key=lambda one: (_seriousness(one), one.message)))
        yield _signed(found, writers.get(resource, ""))


def _signed(finding: Finding, writer: str) -> Finding:
    """The finding with the writer of the object to change added to its message."""
    return replace(finding, message=finding.message + written_by(writer)) if finding.verdict in SIGNED else finding


def _results(check: Check, estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    try:
        yield from check.evaluate(estate, policy)
    except FactDamaged as damage:
        yield unknown(damage.resource or estate.cluster, "Unreadable", damage.message, unreadable(damage))


def _settled(page: CheckPage, result: CheckResult, around: RemedyContext) -> Finding:
    verdict, reason, message, remedy = result.verdict, result.reason, result.message, ""
    problem = next(
        (observation.problem for observation in result.observations if observation.problem is not None), None
    )
    evidence = evidence_of(result.observations, page.reads)
    if verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.UNKNOWN} and problem is not None:
        verdict, reason, message, remedy = Verdict.UNKNOWN, problem.reason.value, _in_words(problem), _remedy(problem)
    elif verdict is Verdict.PASS and not evidence:
        verdict, reason, message = Verdict.UNKNOWN, "NoEvidence", f"nothing was seen that shows it: {message}"
    if verdict in {Verdict.FAIL, Verdict.UNKNOWN} and not remedy:
        in_node_group = "" if result.remedy else page.remedy_in_node_group
        remedy = filled_remedy(result.remedy or page.remedy, in_node_group, result.resource, around, result.fill)
    severity = result.severity or page.severity
    parts = result.parts if verdict is Verdict.PASS else None
    return Finding(
        page.id,
        result.resource,
        verdict,
        severity,
        reason,
        message,
        remedy,
        result.paths,
        evidence,
        derived_from=parts,
        masked=result.masked and verdict is Verdict.FAIL,
    )


def _both(first: Finding, second: Finding) -> Finding:
    """Merge two findings of one resource: verdict and severity of the more serious one. Paths and evidence of the other
    are added, and its message and remedy where it is Fail or Unknown or has the same verdict.
    """
    worse, other = sorted((first, second), key=_seriousness)
    is_wrong = other.verdict in {Verdict.FAIL, Verdict.UNKNOWN}
    message, remedy = worse.message, worse.remedy
    if (is_wrong or other.verdict is worse.verdict) and other.message not in message:
        message = f"{message}; {_as_other(worse, other)}"
    if (is_wrong or other.verdict is worse.verdict) and other.remedy != remedy:
        remedy = text_of(merged(steps_of(remedy), steps_of(other.remedy)))
    parts = (worse.derived_from or other.derived_from) if worse.verdict is Verdict.PASS else None
    return replace(
        worse,
        message=message,
        remedy=remedy,
        paths=tuple(dict.fromkeys((*worse.paths, *other.paths))),
        evidence=merged_evidence((*worse.evidence, *other.evidence)),
        derived_from=parts,
        masked=worse.masked and (other.masked or other.verdict is not Verdict.FAIL),
    )


def _seriousness(finding: Finding) -> tuple[bool, bool, int, int]:
    """Sort key: smaller is more serious; equal only for equal verdict and severity.

    Findings that affect the overall verdict come first; of these a Fail before an Unknown, as in the overall verdict,
    so that an observed egress path is not reported as undecided. Warnings are ordered by severity, then verdict: a
    Fail of low severity does not hide an Unknown of medium severity.
    """
    verdict, severity = finding.verdict.rank, finding.severity.rank
    if finding.verdict not in {Verdict.FAIL, Verdict.UNKNOWN}:
        return True, False, verdict, severity
    return (False, False, verdict, severity) if finding.severity.decides else (False, True, severity, verdict)


def _as_other(worse: Finding, other: Finding) -> str:
    """Its message, with verdict and severity where these differ from the merged finding's."""
    if (other.verdict, other.severity) == (worse.verdict, worse.severity):
        return other.message
    return f"{other.verdict.value}, {other.severity.value}: {other.message}"


def _in_words(problem: Problem) -> str:
    if problem.permission:
        return f"{problem.detail}; missing permission: {problem.permission}"
    return problem.detail


LOCKED = """\
A deny assignment forbids this read, whatever roles the identity has: the node resource group is locked, and no role
assignment helps. In a virtual network of your own, outside the node resource group, the same read is allowed.
Until then accept the finding with an exception that says who looked at the setting, and how."""


def _remedy(problem: Problem) -> str:
    if problem.remedy:
        return problem.remedy
    if problem.reason is UnreadReason.FORBIDDEN and problem.permission:
        return f"Let the auditing identity do {problem.permission} there (the role in docs/audit.md has it)."
    if problem.reason is UnreadReason.LOCKED:
        return LOCKED
    if problem.reason is UnreadReason.UNAVAILABLE:
        return "Audit again; a larger --retry-budget waits longer."
    return "Audit again; when it stays, read the evidence: nothing was decided from what could not be read."
