"""The stand-in's estates, asked without HTTP: what ARM would answer to each question, in one step.

For checks that are judged against thousands of estates. What paging, throttling and long-running actions add is tested
where the collector is.

    findings = judged(estate_of("sealed"))
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

from hermetic.audit.estate.azure.graph import TABLES, ScaleSetNicInGraph
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason
from hermetic.audit.model.findings import Evidence, Finding
from hermetic.audit.result.run import Evaluation
from hermetic.collect.azure.arm_reader import GROUP_LISTS_ONLY
from hermetic.collect.azure.paths import ask_for, is_subscription
from testbed.azure.actions import act
from testbed.azure.estate import Estate as StandIn
from testbed.azure.reads import Reader
from testbed.azure.refusals import Refusal
from tests.azure_collecting import policy_of

MOST_ROUNDS = 20
UNREAD_REASONS = {401: UnreadReason.UNAUTHENTICATED, 403: UnreadReason.FORBIDDEN, 404: UnreadReason.NOT_FOUND}


def answers_of(stood_in: StandIn, first: Iterable[Question] = ()) -> dict[Question, Answer]:
    """Everything that the checks want to know, asked until nothing is wanted; `first` are questions surely put."""
    return _audited(stood_in, first)[0]


def collected(stood_in: StandIn) -> Estate:
    """The estate of these answers."""
    return Estate(stood_in.cluster, ("azure",), answers_of(stood_in))


def judged(stood_in: StandIn, first: Iterable[Question] = ()) -> tuple[Finding, ...]:
    """Every finding about an estate; `first` as above: what an estate like it was asked saves rounds."""
    return _audited(stood_in, first)[1]


def _audited(stood_in: StandIn, first: Iterable[Question]) -> tuple[dict[Question, Answer], tuple[Finding, ...]]:
    judging, answers = Evaluation(policy_of(stood_in)), {question: answered(stood_in, question) for question in first}
    estate = Estate(stood_in.cluster, ("azure",), answers)
    for _ in range(MOST_ROUNDS):
        findings = judging.findings(estate)
        if not estate.wanted:
            return answers, findings
        more = {question: answered(stood_in, question) for question in estate.wanted.values()}
        answers |= more
        estate = estate.with_answers(more)
    raise AssertionError(f"still wanted after {MOST_ROUNDS} rounds: {sorted(estate.wanted)[:3]}")


def answered(stood_in: StandIn, question: Question) -> Answer:
    """What ARM answers to one question."""
    if question.kind.lower() in TABLES:
        return _in_graph(stood_in, question)
    if question.verb == "list" and question.kind.lower() in GROUP_LISTS_ONLY and is_subscription(question.target):
        return _group_by_group(stood_in, question)
    ask = ask_for(question)
    if isinstance(ask, Problem):
        return Answer(problem=ask)
    path, _, text = ask.target.partition("?")
    query = {name: values[0] for name, values in parse_qs(text).items()}
    reader = Reader(stood_in, "", 1_000_000)
    evidence = Evidence(f"{ask.method} {ask.target}", 200)
    try:
        if ask.method == "GET":
            value: Any = reader.get(path, query)
        else:
            result = act(reader, path, query, dict(ask.body or {}))
            value = result.value if result is not None else {}
    except Refusal as refusal:
        if question.verb == "list" and question.kind.lower() in stood_in.not_offered:
            return Answer((), (Evidence(evidence.request, refusal.status),))  # as the collector weighs it
        is_locked = refusal.code == "DenyAssignmentAuthorizationFailed"
        reason = UnreadReason.LOCKED if is_locked else UNREAD_REASONS.get(refusal.status, UnreadReason.REFUSED)
        permission = "" if is_locked else question.permission
        problem = Problem(reason, f"{evidence.request}: {refusal.status} {refusal.code} {refusal.message}", permission)
        return Answer((), (Evidence(evidence.request, refusal.status),), problem)
    rows = value["value"] if question.verb == "list" else [value]
    return Answer(tuple(_body(row, evidence) for row in rows), (evidence,))


def _group_by_group(stood_in: StandIn, question: Question) -> Answer:
    groups = [at for key, at in sorted(stood_in.index.groups.items()) if key.startswith(question.target.lower() + "/")]
    answers = [
        answered(stood_in, Question("azure", "list", question.kind, group, question.api_version)) for group in groups
    ]
    return Answer(
        tuple(body for answer in answers for body in answer.bodies),
        tuple(evidence for answer in answers for evidence in answer.evidence),
        next((answer.problem for answer in answers if answer.problem is not None), None),
    )


def _in_graph(stood_in: StandIn, question: Question) -> Answer:
    evidence = Evidence("POST /providers/Microsoft.ResourceGraph/resources", 200)
    rows = []
    is_shown = question.kind.lower() != ScaleSetNicInGraph.TYPE.lower()
    if is_shown or "graph" in stood_in.scale_set_outbound_shown_by:
        below = f"{question.target.lower()}/"
        rows = [row for row in stood_in.of_type(question.kind) if row["id"].lower().startswith(below)]
    return Answer(tuple(_body(row, evidence) for row in rows), (evidence,))


def _body(value: dict[str, Any], evidence: Evidence) -> Body:
    digest = hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
    return Body(value, (Evidence(evidence.request, 200, digest),))
