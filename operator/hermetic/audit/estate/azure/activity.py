"""The activity log of a resource group: what was written in it lately.

Azure keeps it for 90 days, and shows an event some minutes after it happened. `since` and `until` are the ends of the
time that was asked for, `count` the number of all events in it, `events` those about virtual networks and what lies
below them. Ask for it by the id of the group: `estate.one(ActivityLog, group)`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from hermetic.api.times import zoned
from hermetic.audit.estate.azure.versions import ACTIVITY_LOG
from hermetic.audit.estate.resource import Part, Resource
from hermetic.errors import FactDamaged

SHOWN_AFTER = timedelta(hours=1)
"""How long an event may be missing from the log after it happened; documented as minutes, taken with a margin."""

_CHANGES_NOTHING = ("/join/action", "/joinviaserviceendpoint/action")
"""Operations on a subnet that leave its properties as they are. Every other one counts as a write."""


class Event(Part):
    """One event: when, which operation, on which resource."""

    at: str = ""
    operation: str = ""
    resource: str = ""


class ActivityLog(Resource):
    """Microsoft.Insights/eventtypes/management/values, asked for one resource group."""

    TYPE: ClassVar[str] = "Microsoft.Insights/eventtypes/values"
    API_VERSION: ClassVar[str] = ACTIVITY_LOG

    since: str = ""
    until: str = ""
    count: int = 0
    events: list[Event] = []

    @property
    def start(self) -> datetime:
        """From when on it was asked for. Raises FactDamaged."""
        return self._moment(self.since)

    @property
    def horizon(self) -> datetime:
        """Up to when it is known to show every event. Raises FactDamaged."""
        return self._moment(self.until) - SHOWN_AFTER

    def last_write(self, *resources: str) -> datetime | None:
        """The last event that may have changed any of these; None where there is none. Raises FactDamaged."""
        wanted = {one.lower().rstrip("/") for one in resources}
        found = [
            self._moment(one.at)
            for one in self.events
            if one.resource.lower().rstrip("/") in wanted and not one.operation.lower().endswith(_CHANGES_NOTHING)
        ]
        return max(found, default=None)

    def _moment(self, text: str) -> datetime:
        found = zoned(text)
        if found is None:
            words = f"{self.id}: activity log: {text!r} is not a time with a zone"
            raise FactDamaged(words, resource=self.id, evidence=self.evidence)
        return found
