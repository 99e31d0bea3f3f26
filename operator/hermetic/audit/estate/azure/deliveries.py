"""What Azure carries out for a resource by itself: events, exports of logs, and the members of a monitor scope.

Each model names its targets as `sinks`: the kind of each target, and its ARM id or address.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.arm_ids import is_arm_id, type_of
from hermetic.audit.estate.azure.versions import DATA_EXPORTS, EVENT_GRID, INSIGHTS_PRIVATE_LINK, NAMESPACES
from hermetic.audit.estate.resource import Part, Resource, arm


class EventDestination(Part):
    """The target of events: a resource, or for a webhook an address. Azure omits the query of the address."""

    endpoint_type: str | None = None
    resource_id: str | None = None
    endpoint_base_url: str | None = None


class EventDelivery(Part):
    """A delivery with an identity of the topic; the target is one level deeper than without one."""

    destination: EventDestination | None = None


class DeadLetters(Part):
    """Events that could not be delivered, kept with an identity of the topic."""

    dead_letter_destination: EventDestination | None = None


class Events(Resource):
    """The common fields of event subscriptions of a resource and of a system topic."""

    destination: EventDestination | None = None
    delivery_with_resource_identity: EventDelivery | None = None
    dead_letter_destination: EventDestination | None = None
    dead_letter_with_resource_identity: DeadLetters | None = None

    @property
    def destinations(self) -> tuple[EventDestination, ...]:
        """Every target: of the events, and of those that could not be delivered."""
        delivery, dead = self.delivery_with_resource_identity, self.dead_letter_with_resource_identity
        named = (
            self.destination,
            delivery.destination if delivery is not None else None,
            self.dead_letter_destination,
            dead.dead_letter_destination if dead is not None else None,
        )
        return tuple(destination for destination in named if destination is not None)


@arm("Microsoft.EventGrid/eventSubscriptions", EVENT_GRID)
class EventSubscription(Events):
    """An event subscription of a resource, listed at the resource."""


@arm("Microsoft.EventGrid/systemTopics", EVENT_GRID)
class SystemTopic(Resource):
    """The topic of one Azure resource, in the subscription of that resource."""

    source: str | None = None


@arm("Microsoft.EventGrid/systemTopics/eventSubscriptions", EVENT_GRID)
class TopicSubscription(Events):
    """An event subscription of a system topic."""


class ExportDestination(Part):
    """A storage account, an event hub, or a namespace of hubs."""

    resource_id: str | None = None


@arm("Microsoft.OperationalInsights/workspaces/dataExports", DATA_EXPORTS)
class DataExport(Resource):
    """A rule that sends tables of a workspace on. A disabled one counts: one change enables it."""

    enable: bool | None = None
    destination: ExportDestination | None = None

    @property
    def sinks(self) -> Iterator[tuple[str, str]]:
        """The kind and the id of the target; nothing where it is not named."""
        target = (self.destination.resource_id if self.destination is not None else None) or ""
        if is_arm_id(target):
            kind = type_of(target).lower()
            yield ("storage account" if kind.startswith("microsoft.storage/") else "event hub"), target


@arm("Microsoft.Insights/privateLinkScopes/scopedResources", INSIGHTS_PRIVATE_LINK)
class ScopedResource(Resource):
    """A member of a monitor scope: a workspace, a component, or a data collection endpoint."""

    linked_resource_id: str | None = None


class CaptureDestination(Part):
    """The storage account that events are written to, or the Data Lake Store of the first generation."""

    storage_account_resource_id: str | None = None
    data_lake_subscription_id: str | None = None


class Capture(Part):
    """captureDescription of an event hub. A disabled one counts: one change enables it."""

    enabled: bool | None = None
    destination: CaptureDestination | None = None


@arm("Microsoft.EventHub/namespaces/eventhubs", NAMESPACES)
class EventHub(Resource):
    """One event hub of a namespace."""

    capture_description: Capture | None = None
