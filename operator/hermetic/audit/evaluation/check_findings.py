"""Turns the results of a check into findings; Pass becomes Unknown where an observation is incomplete.

A check names every observation that its result rests on. If one of them has a problem, a Pass or NotApplicable
becomes Unknown, and the finding says why; a Fail stays, because it was observed. Checks do not repeat that rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from hermetic.api.field_managers import JOB_TEMPLATE, TEMPLATE, Place, written_by
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.templates import CONTROLLERS, CronJob, Resting
from hermetic.audit.estate.observation import Observation, unreadable
from hermetic.audit.estate.questions import Problem, Source, UnreadReason
from hermetic.audit.estate.resource import Resource
from hermetic.audit.evaluation.excerpts import evidence_of
from hermetic.audit.evaluation.excerpts import merged as merged_evidence
from hermetic.audit.evaluation.results import CheckResult, unknown
from hermetic.audit.model.findings import CheckPage, Finding, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.remedies.filling import merged
from hermetic.audit.remedies.of_finding import RemedyContext, filled_remedy, surroundings_of
from hermetic.audit.remedies.steps import steps_of, text_of
from hermetic.errors import FactDamaged

_WORKLOADS = tuple(f"{kind.TYPE.rpartition('/')[0]}/{kind.KIND} " for kind in CONTROLLERS)

SIGNED = frozenset({Verdict.FAIL, Verdict.UNKNOWN})
"""Verdicts whose finding names the writer of the object to change."""


CheckFunction = Callable[[Estate, Policy], Iterable[CheckResult]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its page, the sources that it needs, and the function that evaluates an estate."""

    page: CheckPage
    needs: frozenset[Source]
    evaluate: CheckFunction


def findings_of(check: Check, estate: Estate, policy: Policy) -> Iterator[Finding]:
    """Every finding of one check: one per resource, the most serious where the check has several results about it.

    Derived findings are not settled yet: `hermetic.audit.result.derived_findings` does that.
    """
    by_resource: dict[str, list[Finding]] = {}
    writers: dict[str, str] = {}
    around = surroundings_of(estate)
    for result in _results(check, estate, policy):
        finding, resource = _settled(check.page, result, around), result.resource.lower()
        by_resource.setdefault(resource, []).append(finding)
        if finding.verdict in SIGNED and (
            writer := _writer_of(estate, result.resource, result.observations, result.blames)
        ):
            writers[resource] = writer
    for resource, findings in by_resource.items():
        # By message where equally serious: Azure does not guarantee the order of its lists.
        merged_finding = reduce(_both, sorted(findings, key=lambda finding: (_seriousness(finding), finding.message)))
        yield _signed(merged_finding, writers.get(resource, ""))


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
        verdict, reason, message = Verdict.UNKNOWN, "NoEvidence", f"no observation shows it: {message}"
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
    if problem.permission and problem.reason is UnreadReason.FORBIDDEN:
        return f"{problem.detail}; missing permission: {problem.permission}"
    return problem.detail


LOCKED = """\
A deny assignment forbids this read for every role of the identity: the node resource group is locked, and no role
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
    return (
        "Audit again; if it stays, read the evidence: the audit decides nothing from an answer that it could not read."
    )


def _writer_of(estate: Estate, resource: str, observations: Iterable[Observation], blames: Iterable[Place] = ()) -> str:
    """The last field manager of what is blamed, or of the object, in one bounded line; "" where unknown.

    `observations` are those of the finding. A finding about a workload rests on its pods, which a controller made: then
    the writer of its template is returned, and `blames` are places of the pod.
    """
    is_workload = resource.startswith(_WORKLOADS)
    field_paths = tuple(_in_template(resource, blames)) if is_workload else tuple(blames)
    blamed = (
        observation
        for observation in observations
        if isinstance(observation, Resource) and _is_about(observation, resource)
    )
    writer = next((observation.writer(*field_paths) for observation in blamed), "")
    if writer or not is_workload:
        return writer
    workload = _workloads(estate).get(resource)
    return "" if workload is None else workload.writer(*field_paths)


def _is_about(observation: Resource, resource: str) -> bool:
    try:
        return observation.id == resource
    except FactDamaged:
        return False


def _in_template(resource: str, blames: Iterable[Place]) -> Iterator[Place]:
    root = JOB_TEMPLATE if f"/{CronJob.KIND} " in resource else TEMPLATE
    yield from ((*root, *field_path) for field_path in blames)
    yield root


@derived
def _workloads(estate: Estate) -> Mapping[str, Resting]:
    return {workload.id: workload for kind in CONTROLLERS for workload in estate.every(kind, EVERYWHERE)}
