"""Reads the activity log of a resource group to its end, reduced to the fields that checks use.

The filter names a whole resource group. For the filter by one resource it is not documented whether it is
case-sensitive and whether it covers child resources; a wrong empty answer would mean a subnet that was never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from hermetic.api.times import timestamp
from hermetic.audit.estate.arm_ids import group_of, name_of, subscription_of
from hermetic.audit.estate.azure.activity import ActivityLog
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.pages import all_pages
from hermetic.collect.azure.replies import Ask

KEPT = timedelta(days=89)
"""Azure keeps events for 90 days and refuses queries for older ones."""

_NETWORKS = "/providers/microsoft.network/virtualnetworks/"


def is_of_the_log(question: Question) -> bool:
    """Whether this is a question for an activity log."""
    return question.verb == "get" and question.kind.lower() == ActivityLog.TYPE.lower()


async def activity(client: ArmClient, question: Question) -> Answer:
    """The events of the last days in a group, or why they could not be read."""
    group = question.target.rstrip("/")
    if group_of(group) != group:
        return Answer(problem=Problem(UnreadReason.UNREADABLE, f"{group!r} is not the id of a resource group"))
    until = client.clock.now()
    since = until - KEPT
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
