"""The activity log of a resource group: its recent write operations.

Azure keeps it for 90 days, and shows an event some minutes after it happened. `since` and `until` are the ends of the
period that was queried, `count` the number of all events in it, `events` those about virtual networks and their child
resources. Query it by the id of the group: `estate.one(ActivityLog, group)`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from hermetic.api.times import zoned
from hermetic.audit.estate.azure.versions import ACTIVITY_LOG
from hermetic.audit.estate.resource import Part, Resource, arm
from hermetic.errors import FactDamaged

SHOWN_AFTER = timedelta(hours=1)
"""How long an event may be missing from the log after it happened; documented as minutes, taken with a margin."""

_CHANGES_NOTHING = ("/join/action", "/joinviaserviceendpoint/action")
"""Operations on a subnet that do not change its properties. Every other one counts as a write."""


class Event(Part):
    """One event: when, which operation, on which resource."""

    at: str = ""
    operation: str = ""
    resource: str = ""


@arm("Microsoft.Insights/eventtypes/values", ACTIVITY_LOG)
class ActivityLog(Resource):
    """Microsoft.Insights/eventtypes/management/values of one resource group."""

    since: str = ""
    until: str = ""
    count: int = 0
    events: list[Event] = []

    @property
    def start(self) -> datetime:
        """The start of the period that was queried. Raises FactDamaged."""
        return self._moment(self.since)

    @property
    def horizon(self) -> datetime:
        """The end of the period for which it is known to be complete. Raises FactDamaged."""
        return self._moment(self.until) - SHOWN_AFTER

    def last_write(self, *resources: str) -> datetime | None:
        """The time of the last event that may have changed any of these; None without one. Raises FactDamaged."""
        resource_ids = {resource.lower().rstrip("/") for resource in resources}
        moments = [
            self._moment(event.at)
            for event in self.events
            if event.resource.lower().rstrip("/") in resource_ids
            and not event.operation.lower().endswith(_CHANGES_NOTHING)
        ]
        return max(moments, default=None)

    def _moment(self, text: str) -> datetime:
        moment = zoned(text)
        if moment is None:
            message = f"{self.id}: activity log: {text!r} is not a time with a zone"
            raise FactDamaged(message, resource=self.id, evidence=self.evidence)
        return moment
