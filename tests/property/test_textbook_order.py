"""What is found about a textbook estate never depends on the order of lists: Azure and the API server promise none."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Question
from hermetic.audit.model.findings import Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import evaluate
from testbed.kubernetes_plants import PLANTS
from testbed.textbook import TEXTBOOK
from tests.shuffled_answers import shuffled
from tests.stand_in_answers import answered, answers_of
from tests.textbook_audits import ApiServer

SHUFFLES = 2
# a program and its arguments: there the order is the meaning
IN_ORDER = frozenset({"args", "command"})
Said = tuple[Any, ...]


@cache
def seen(name: str, planted: bool) -> tuple[Mapping[Question, Answer], Policy, str]:
    """Every answer about both halves of an estate, sealed or with every plant in the cluster, and the team's policy."""
    estate = TEXTBOOK[name]
    arm, manifests = estate.azure, estate.manifests
    for plant in PLANTS.values() if planted else ():
        plant.into(manifests)
    policy = Policy.model_validate({**estate.policy_file, "profile": arm.profile})
    answers = answers_of(arm)
    api_server = ApiServer(manifests)
    while questions := _wanted(arm.cluster, answers, policy):
        answers |= asyncio.run(api_server.answers([question for question in questions if question.source == "kube"]))
        answers |= {question: answered(arm, question) for question in questions if question.source == "azure"}
    return answers, policy, arm.cluster


def _wanted(cluster: str, answers: Mapping[Question, Answer], policy: Policy) -> list[Question]:
    estate = Estate(cluster, ("azure", "kube"), answers)
    evaluate(estate, policy)
    return list(estate.wanted.values())


def findings(answers: Mapping[Question, Answer], policy: Policy, cluster: str) -> list[Said]:
    """Every finding, in the order in which it is reported."""
    return [fields_of(finding) for finding in evaluate(Estate(cluster, ("azure", "kube"), answers), policy)]


def fields_of(finding: Finding) -> Said:
    fields = (
        finding.check,
        finding.resource,
        finding.verdict,
        finding.severity,
        finding.reason,
        finding.message,
        finding.remedy,
        finding.masked,
    )
    return (*fields, finding.path_texts, sorted(exchange.request for exchange in finding.evidence))


@cache
def whole(name: str, planted: bool) -> list[Said]:
    return findings(*seen(name, planted))


@pytest.mark.timeout(600)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(SHUFFLES))
@pytest.mark.parametrize("planted", [False, True], ids=["sealed", "planted"])
@pytest.mark.parametrize("name", TEXTBOOK)
def test_the_order_of_lists_never_matters(name: str, planted: bool, seed: int) -> None:
    answers, policy, cluster = seen(name, planted)
    chance = random.Random(f"{name} {seed}")
    questions = list(answers)
    chance.shuffle(questions)
    after = findings(
        {question: shuffled(answers[question], chance, IN_ORDER) for question in questions}, policy, cluster
    )
    assert len(after) > 100
    assert [pair for pair in zip(whole(name, planted), after, strict=True) if pair[0] != pair[1]] == []
