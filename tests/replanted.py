"""Findings of an estate that differs in little from one that was judged: only checks whose answers differ are run.

A check is a function of the policy and of the answers to the questions that it asks: where all of these are equal, it
is not run again.

    base = Base(estate_of("sealed"))
    findings = base.findings(planted)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Lookup
from hermetic.audit.estate.questions import Answer, Question, fixed_json
from hermetic.audit.estate.resource import Resource
from hermetic.audit.evaluation.check_findings import Check, findings_of
from hermetic.audit.model.findings import Finding, by_check
from hermetic.audit.result.derived_findings import derived
from testbed.azure.estate import Estate as StandIn
from tests.azure_collecting import policy_of
from tests.stand_in_answers import MOST_ROUNDS, answered, answers_of, judged

R = TypeVar("R", bound=Resource)
T = TypeVar("T")
Key = tuple[str, ...]


class Noting:
    """An estate that notes which questions are asked of it, those behind cached values included."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._inside: dict[Hashable, frozenset[Key]] = {}
        self.asked_for: set[Key] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._estate, name)

    def one(self, kind: type[R], target: str) -> Lookup[R]:
        self._note(Question(kind.SOURCE, "get", kind.TYPE, target, kind.API_VERSION))
        return self._estate.one(kind, target)

    def every(self, kind: type[R], scope: str) -> Listing[R]:
        self._note(Question(kind.SOURCE, "list", kind.TYPE, scope, kind.API_VERSION))
        return self._estate.every(kind, scope)

    def asked(self, kind: type[R], target: str, body: Mapping[str, Any] | None = None) -> Lookup[R]:
        text = "" if body is None else fixed_json(body)
        self._note(Question(kind.SOURCE, "post", kind.TYPE, target, kind.API_VERSION, kind.ACTION, text))
        return self._estate.asked(kind, target, body)

    def once(self, key: Hashable, derive: Callable[[], T]) -> T:
        around, self.asked_for = self.asked_for, set()
        try:
            value = self._estate.once(key, derive)
        finally:
            inside = self._inside[key] = self._inside.get(key, frozenset()) | self.asked_for
            self.asked_for = around
            around |= inside
        return value

    def _note(self, question: Question) -> None:
        self.asked_for.add(question.key)


@dataclass(frozen=True)
class Ran:
    """A check, its findings, and the questions that it asked."""

    check: Check
    findings: tuple[Finding, ...]
    questions: frozenset[Key]


class Base:
    """An estate that was judged check by check."""

    def __init__(self, stood_in: StandIn) -> None:
        self._policy = policy_of(stood_in)
        self._answers = answers_of(stood_in)
        self._estate = Estate(stood_in.cluster, ("azure",), self._answers)
        noting = Noting(self._estate)
        self._ran = tuple(self._run(check, noting) for check in CHECKS if check.needs <= self._estate.sources)

    def _run(self, check: Check, noting: Noting) -> Ran:
        noting.asked_for = set()
        check_findings = tuple(findings_of(check, noting, self._policy))  # type: ignore[arg-type]
        return Ran(check, check_findings, frozenset(noting.asked_for))

    def findings(self, stood_in: StandIn) -> tuple[Finding, ...]:
        """The findings of an estate like it."""
        if policy_of(stood_in) != self._policy or stood_in.cluster != self._estate.cluster:
            return self.findings_anew(stood_in)
        changed = {
            question: answer
            for question, old in self._answers.items()
            if (answer := answered(stood_in, question)) != old
        }
        keys = {changed_question.key for changed_question in changed}
        again = [former_run.check for former_run in self._ran if not former_run.questions.isdisjoint(keys)]
        fresh = self._settled(stood_in, changed, again)
        findings = (
            finding for former_run in self._ran for finding in fresh.get(former_run.check.page.id, former_run.findings)
        )
        return tuple(by_check(derived(findings)))

    def findings_anew(self, stood_in: StandIn) -> tuple[Finding, ...]:
        """The same, with every check run again."""
        return judged(stood_in, self._answers)

    def _settled(
        self, stood_in: StandIn, changed: Mapping[Question, Answer], again: list[Check]
    ) -> dict[str, tuple[Finding, ...]]:
        estate = self._estate.with_answers(changed)
        for _ in range(MOST_ROUNDS):
            findings_by_page = {check.page.id: tuple(findings_of(check, estate, self._policy)) for check in again}
            if not estate.wanted:
                return findings_by_page
            estate = estate.with_answers(
                {wanted_question: answered(stood_in, wanted_question) for wanted_question in estate.wanted.values()}
            )
        raise AssertionError(f"still wanted after {MOST_ROUNDS} rounds: {sorted(estate.wanted)[:3]}")
