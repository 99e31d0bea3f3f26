"""One audit: every check whose sources were queried, exceptions applied, in one report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.questions import Source
from hermetic.audit.evaluation.check_findings import Check, findings_of
from hermetic.audit.model.findings import Finding, by_check
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.exceptions import Exceptions
from hermetic.audit.policy.node_agents import met_nothing
from hermetic.audit.result.coverage import coverage_of
from hermetic.audit.result.derived_findings import derived
from hermetic.audit.result.ownership import ownership_of
from hermetic.audit.result.private_subnets import private_subnets, statement_notes
from hermetic.audit.result.report import Report
from hermetic.audit.rules.behind_firewall import unused_entries

SOURCES: tuple[Source, ...] = ("azure", "kube", "probe")


class Evaluation:
    """Evaluates checks over a growing estate with one policy; a check that lacks no answer is evaluated once.

    Valid while no answer is replaced (`Estate.with_answers`): the input of a check is answers and the policy only.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def findings(self, estate: Estate) -> tuple[Finding, ...]:
        """Findings of every check whose sources were all queried, before exceptions."""
        checks = (check for check in CHECKS if check.needs <= estate.sources)
        findings = derived(finding for check in checks for finding in self._of_check(check, estate))
        return tuple(by_check(findings))

    def _of_check(self, check: Check, estate: Estate) -> tuple[Finding, ...]:
        return estate.once((self, check.page.id), lambda: tuple(findings_of(check, estate, self._policy)))


def evaluate(estate: Estate, policy: Policy) -> tuple[Finding, ...]:
    """Findings of every check whose sources were all queried, before exceptions."""
    return Evaluation(policy).findings(estate)


def settled(
    findings: Iterable[Finding], exceptions: Exceptions, today: date
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Findings on a given day: exceptions applied, then derived findings; and sentences about the exceptions."""
    first, notes = exceptions.applied(findings, today)
    again, _ = exceptions.applied(derived(first), today)
    return again, notes


def audit(  # noqa: PLR0913 - the parts of a report
    estate: Estate,
    raw_findings: tuple[Finding, ...],
    policy: Policy,
    exceptions: Exceptions,
    *,
    started_at: datetime,
    finished_at: datetime,
    version: str,
) -> Report:
    """The report about an estate and its findings. Exceptions count by the day on which the audit ended."""
    findings, notes = settled(raw_findings, exceptions, finished_at.date())
    return Report(
        cluster=estate.cluster,
        sources=tuple(source for source in SOURCES if source in estate.sources),
        profile=policy.profile,
        started_at=started_at,
        finished_at=finished_at,
        findings=findings,
        not_asked=not_asked(estate.sources),
        notes=(
            *notes,
            *statement_notes(estate, policy, findings),
            *_idle_agents(estate, policy),
            *unused_entries(estate, policy),
        ),
        tool_version=version,
        private_subnets=private_subnets(estate, policy, finished_at),
        ended_exceptions=tuple(term for term in exceptions.terms if term.has_ended(finished_at.date())),
        coverage=coverage_of(estate),
        ownership=ownership_of(estate),
    )


def _idle_agents(estate: Estate, policy: Policy) -> tuple[str, ...]:
    """A sentence for each trusted node agent that no pod matches, where all pods were read."""
    if "kube" not in estate.sources or not policy.trusted_node_agents:
        return ()
    pods = estate.every(Pod, EVERYWHERE)
    return () if pods.problem is not None else tuple(met_nothing(policy.trusted_node_agents, pods.items))


def not_asked(sources: Iterable[Source]) -> Mapping[str, tuple[str, ...]]:
    """By source that was left out, the ids of the checks that need it."""
    queried = frozenset(sources)
    return {
        source: tuple(sorted(check.page.id for check in CHECKS if source in check.needs))
        for source in SOURCES
        if source not in queried
    }
