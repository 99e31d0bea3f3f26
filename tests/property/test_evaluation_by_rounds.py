"""Collecting judges an estate that grows: round by round it wants, and finds, what judging it anew would."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Question, Source
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import Evaluation, evaluate
from testbed.azure.estate import Estate as StandIn
from testbed.azure.reference_estate import reference_estate
from testbed.kubernetes_plants import PLANTS
from testbed.textbook import TEXTBOOK
from tests.azure_collecting import policy_of
from tests.stand_in_answers import answered
from tests.textbook_audits import ApiServer

ROUNDS = 20


class Asked:
    """Both halves of an estate, asked for what is wanted."""

    def __init__(self, arm: StandIn, manifests: list[dict[str, Any]] | None = None) -> None:
        self.arm, self.api_server = arm, ApiServer(manifests) if manifests is not None else None
        self.sources: tuple[Source, ...] = ("azure",) if manifests is None else ("azure", "kube")

    def answers(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        answers = {question: answered(self.arm, question) for question in questions if question.source == "azure"}
        if self.api_server is not None:
            answers |= asyncio.run(
                self.api_server.answers([question for question in questions if question.source == "kube"])
            )
        return answers


def must_agree_in_every_round(questions: Asked, policy: Policy) -> int:
    """The number of rounds."""
    growing, judging = Estate(questions.arm.cluster, questions.sources, {}), Evaluation(policy)
    known_answers: dict[Question, Answer] = {}
    for number in range(ROUNDS):
        findings_so_far, anew = (
            judging.findings(growing),
            Estate(questions.arm.cluster, questions.sources, known_answers),
        )
        assert findings_so_far == evaluate(anew, policy)
        assert growing.wanted.keys() == anew.wanted.keys()
        if not growing.wanted:
            return number
        more = questions.answers(tuple(growing.wanted.values()))
        known_answers |= more
        growing = growing.with_answers(more)
    raise AssertionError(f"still wanted after {ROUNDS} rounds")


def test_of_the_reference_estate() -> None:
    arm = reference_estate()
    assert must_agree_in_every_round(Asked(arm), policy_of(arm)) > 2


@pytest.mark.timeout(300)
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "planted"), [(name, number % 2 == 1) for number, name in enumerate(TEXTBOOK)])
def test_of_a_textbook_estate(name: str, planted: bool) -> None:
    estate = TEXTBOOK[name]
    arm, manifests = estate.azure, estate.manifests
    for plant in PLANTS.values() if planted else ():
        plant.into(manifests)
    policy = Policy.model_validate({**estate.policy_file, "profile": arm.profile})
    assert must_agree_in_every_round(Asked(arm, manifests), policy) > 2
