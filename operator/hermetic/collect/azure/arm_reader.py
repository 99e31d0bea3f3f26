"""Answers questions by one request, one list or one action. Only lists of instances are requested twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from hermetic.api.times import timestamp
from hermetic.audit.estate.arm_ids import group_of, name_of, subscription_of
from hermetic.audit.estate.azure.activity import ActivityLog
from hermetic.audit.estate.questions import Answer, Body, PackedBody, Problem, Question, UnreadReason
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.operations import act
from hermetic.collect.azure.pages import PagedList, all_pages
from hermetic.collect.azure.paths import ask_for, groups_in, is_subscription
from hermetic.collect.azure.registrations import Registrations
from hermetic.collect.azure.replies import Ask
from hermetic.collect.concurrency import side_by_side

_KEPT = timedelta(days=89)
"""Azure keeps events for 90 days and refuses queries for older ones."""
_NETWORKS = "/providers/microsoft.network/virtualnetworks/"

GROUP_LISTS_ONLY = frozenset({"microsoft.network/virtualnetworkgateways", "microsoft.network/connections"})
"""Types whose provider lists them only per resource group, not per subscription."""
OF_INSTANCES = frozenset(
    {
        "microsoft.compute/virtualmachinescalesets/networkinterfaces",
        "microsoft.compute/virtualmachinescalesets/publicipaddresses",
    }
)
"""Types listed below a scale set, collected from its instances."""


PASSING = frozenset({UnreadReason.UNAVAILABLE, UnreadReason.UNREADABLE, UnreadReason.TRUNCATED})
"""Problems that a later request may not meet. A missing permission stays missing for the whole run."""


class ArmReader:
    """Answers from ARM alone."""

    def __init__(self, client: ArmClient) -> None:
        self._client = client
        self._registrations = Registrations(client)
        self._asking: dict[tuple[str, ...], asyncio.Lock] = {}
        self._answers: dict[tuple[str, ...], Answer] = {}

    async def answer(self, question: Question) -> Answer:
        """The answer; concurrent and later callers share one request."""
        async with self._asking.setdefault(question.key, asyncio.Lock()):
            if question.key not in self._answers:
                self._answers[question.key] = await self._answer(question)
            return self._answers[question.key]

    def forget_failures(self) -> set[tuple[str, ...]]:
        """Forget answers that a later request may complete; returns the keys of their questions."""
        forgotten = {
            key
            for key, answer in self._answers.items()
            if answer.problem is not None and answer.problem.reason in PASSING
        }
        for key in forgotten:
            del self._answers[key]
        return forgotten

    async def _answer(self, question: Question) -> Answer:
        if question.verb == "list" and question.kind.lower() in GROUP_LISTS_ONLY and is_subscription(question.target):
            return await self._group_by_group(question)
        if _is_of_the_log(question):
            return await _activity(self._client, question)
        ask = ask_for(question)
        if isinstance(ask, Problem):
            return Answer(problem=ask)
        if question.verb == "list":
            return await self._registrations.weighed(question, await self._listed(question, ask))
        if question.verb == "post":
            return await act(self._client, ask)
        return await self._got(ask)

    async def _listed(self, question: Question, ask: Ask) -> PagedList:
        """The list; of instances it is retried after NotFound, as one may be being created or removed."""
        listing = await all_pages(self._client, ask, question.kind)
        if question.kind.lower() not in OF_INSTANCES or not _is_not_found(listing):
            return listing
        again = await all_pages(self._client, ask, question.kind)
        again.evidence = (*listing.evidence, *again.evidence)
        if _is_not_found(again):
            explanation = "its instances may be changing: audit again when no pool scales or upgrades"
            again.problem = Problem(UnreadReason.NOT_FOUND, f"{question.target}: not found twice; {explanation}")
        return again

    async def _got(self, ask: Ask) -> Answer:
        reply = await self._client.ask(ask)
        if reply.problem is None and not isinstance(reply.value, Mapping):
            reply = reply.but(UnreadReason.UNREADABLE, f"{reply.status} without a body")
        if reply.problem is not None:
            return Answer((), reply.evidence, reply.problem)
        self._client.progress.saw(1)
        return Answer((PackedBody(reply.value, reply.evidence),), reply.evidence)

    async def _group_by_group(self, question: Question) -> Answer:
        """The list of every resource group of the subscription, combined: the type has no other list."""
        groups = await all_pages(self._client, groups_in(question.target))
        ids = [body.value.get("id") for body in groups.bodies]
        group_questions = [_at(question, group_id) for group_id in ids if isinstance(group_id, str)]
        answers = await side_by_side(self.answer(group_question) for group_question in group_questions)
        problem = groups.problem or next((answer.problem for answer in answers if answer.problem is not None), None)
        if problem is None and len(group_questions) < len(ids):
            problem = Problem(UnreadReason.UNREADABLE, f"{question.target}: a resource group without an id")
        return Answer(
            tuple(body for answer in answers for body in answer.bodies),
            (*groups.evidence, *(exchange for answer in answers for exchange in answer.evidence)),
            problem,
            " ".join(sorted({answer.projection for answer in answers} - {""})),
        )


def _is_not_found(answer: PagedList) -> bool:
    return answer.problem is not None and answer.problem.reason is UnreadReason.NOT_FOUND


def _at(question: Question, scope: str) -> Question:
    return Question(question.source, "list", question.kind, scope, question.api_version)


def _is_of_the_log(question: Question) -> bool:
    """Whether this is a question for an activity log."""
    return question.verb == "get" and question.kind.lower() == ActivityLog.TYPE.lower()


async def _activity(client: ArmClient, question: Question) -> Answer:
    """The events of the last days in a group, or why they could not be read."""
    group = question.target.rstrip("/")
    if group_of(group) != group:
        return Answer(problem=Problem(UnreadReason.UNREADABLE, f"{group!r} is not the id of a resource group"))
    until = client.clock.now()
    since = until - _KEPT
    listed = await all_pages(client, _ask(question, group, since, until))
    if listed.problem is not None:
        return Answer((), listed.evidence, listed.problem)
    events = [_event(body.value) for body in listed.bodies]
    if any(event is None for event in events):
        message = f"{group}: an event of the activity log without its time, operation or resource"
        return Answer((), listed.evidence, Problem(UnreadReason.UNREADABLE, message))
    about = [event for event in events if event is not None and _NETWORKS in event["resource"].lower()]
    properties = {"since": timestamp(since), "until": timestamp(until), "count": len(events), "events": about}
    body = Body({"id": group, "name": name_of(group), "properties": properties}, listed.evidence)
    return Answer((body,), listed.evidence)


def _ask(question: Question, group: str, since: datetime, until: datetime) -> Ask:
    """The request, with the one filter that is documented for a group."""
    conditions = (
        f"eventTimestamp ge '{timestamp(since)}'",
        f"eventTimestamp le '{timestamp(until)}'",
        f"resourceGroupName eq '{name_of(group)}'",
    )
    path = f"/subscriptions/{quote(subscription_of(group))}/providers/Microsoft.Insights/eventtypes/management/values"
    query_filter = quote(" and ".join(conditions))
    return Ask("GET", f"{path}?api-version={question.api_version}&$filter={query_filter}", question.permission)


def _event(value: Mapping[str, Any]) -> dict[str, str] | None:
    """The three fields of an event that are kept; None where one is missing."""
    operation = value.get("operationName")
    named = operation.get("value") if isinstance(operation, Mapping) else None
    fields = {"at": value.get("eventTimestamp"), "operation": named, "resource": value.get("resourceId")}
    return (
        {key: str(text) for key, text in fields.items()}
        if all(isinstance(text, str) for text in fields.values())
        else None
    )
