"""The activity log: events of a subscription, by the filters that its API takes.

Source: REST API "Activity Logs - List" (api-version 2015-04-01) and "Azure Activity Log event schema": `$filter` is
required, begins with a start, and takes resourceGroupName, resourceUri, resourceProvider or correlationId, and no other
operators; events are kept for 90 days; an answer has pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from testbed.azure import refusals
from testbed.azure.ids import group_of, subscription_of

Body = dict[str, Any]

TYPE = "Microsoft.Insights/eventtypes/values"
VERSIONS = ("2014-04-01", "2015-04-01", "2017-03-01-preview")
KEPT = timedelta(days=90)

_FILTER = re.compile(
    r"eventTimestamp ge '([^']+)' and eventTimestamp le '([^']+)'"
    r"(?: and (resourceGroupName|resourceUri|resourceProvider|correlationId) eq '([^']*)')?",
    re.IGNORECASE,
)


def event(identifier: str, operation: str, at: str, number: int) -> Body:
    """One record, as the log shows it: the letters of ids and names vary, here they are upper case."""
    subscription = subscription_of(identifier)
    data = f"{number:08x}-0000-4000-8000-000000000000"
    return {
        "id": f"{identifier}/events/{data}/ticks/638{number:015d}",
        "eventDataId": data,
        "eventTimestamp": at,
        "submissionTimestamp": at,
        "category": {"value": "Administrative", "localizedValue": "Administrative"},
        "operationName": {"value": operation, "localizedValue": operation.rpartition("/")[2]},
        "status": {"value": "Succeeded", "localizedValue": "Succeeded"},
        "level": "Informational",
        "resourceGroupName": group_of(identifier).upper(),
        "resourceProviderName": {"value": operation.partition("/")[0], "localizedValue": ""},
        "resourceId": identifier.upper(),
        "subscriptionId": subscription,
        "caller": "terraform@contoso.example",
    }


def matching(events: Iterable[Body], subscription: str, filter_: str) -> list[Body]:
    """Those of a subscription that a filter lets through, newest first; a filter of another form is refused."""
    match = _FILTER.fullmatch(filter_.strip())
    if match is None:
        raise refusals.bad_request("BadRequest", f"The filter '{filter_}' is not supported.")
    start, end = _moment(match[1]), _moment(match[2])
    if end - start > KEPT:
        raise refusals.bad_request("BadRequest", "The start time cannot be more than 90 days in the past.")
    selected = [
        event
        for event in events
        if event["subscriptionId"].lower() == subscription.lower() and start <= _moment(event["eventTimestamp"]) <= end
    ]
    key, value = (match[3] or "").lower(), (match[4] or "").lower()
    fields = {"resourcegroupname": "resourceGroupName", "resourceuri": "resourceId", "correlationid": "correlationId"}
    if key == "resourceprovider":
        selected = [event for event in selected if event["resourceProviderName"]["value"].lower() == value]
    elif key:
        selected = [event for event in selected if str(event.get(fields[key], "")).lower() == value]
    return sorted(selected, key=lambda event: _moment(event["eventTimestamp"]), reverse=True)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise refusals.bad_request("BadRequest", f"'{text}' is not a time.") from None
    if moment.tzinfo is None:
        raise refusals.bad_request("BadRequest", f"'{text}' has no zone.")
    return moment
