"""What of ours receives logs, events and exports: their own deliveries are followed too."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.cluster.resource_lookup import readable, values_of
from hermetic.audit.estate.arm_ids import is_arm_id, owner_of, same_id, subscription_of, type_of
from hermetic.audit.estate.azure.deliveries import DataExport, Events, EventSubscription, SystemTopic, TopicSubscription
from hermetic.audit.estate.azure.instances import EventHubs
from hermetic.audit.estate.azure.storage import StorageAccount
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.resource import Resource
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.delivery_table import EVENTS, EXPORTS, deliveries_of
from hermetic.audit.scope.resources_in_scope import collection_rules, flow_logs, resources_in_scope, sinks_of
from hermetic.errors import FactDamaged

EventLists = tuple[Listing[SystemTopic], list[Listing[EventSubscription] | Listing[TopicSubscription]]]


def event_subscriptions_of(estate: Estate, source: str) -> EventLists:
    """The system topics of the subscription of a resource, and the event subscriptions of it and of its own topics."""
    topics = estate.every(SystemTopic, f"/subscriptions/{subscription_of(source)}")
    listed: list[Listing[EventSubscription] | Listing[TopicSubscription]] = [
        estate.every(EventSubscription, source),
        *(estate.every(TopicSubscription, topic) for topic in _own_topics(source, topics)),
    ]
    return topics, listed


def _own_topics(source: str, topics: Listing[SystemTopic]) -> Iterator[str]:
    """Ids of the topics of this resource. A topic that does not show its source counts as one of it."""
    for topic in topics:
        try:
            shown = topic.source or ""
        except FactDamaged:
            shown = ""
        if not shown or same_id(shown, source):
            yield topic.id


@derived
def receivers_of(estate: Estate, policy: Policy) -> Listing[str]:
    """Ids of the storage accounts and the namespaces of event hubs of ours that receive what Azure sends; sorted.

    Targets that are not ours, and those that cannot be read, are findings of the checks that read the lists.
    """
    resources = resources_in_scope(estate, policy)
    targets = {target for resource in resources for target in _targets_of(estate, resource)}
    logs, _ = flow_logs(estate, policy)
    targets |= {target for _, sinks in readable(values_of(logs), lambda log: log.sinks, []) for _, target in sinks}
    rules = readable(collection_rules(estate), lambda rule: rule.sinks, [])
    targets |= {target for _, sinks in rules for _, target in sinks}
    kinds = {StorageAccount.TYPE.lower(), EventHubs.TYPE.lower()}
    ours = (estate.cluster, *network_ids_of(estate))
    owners = {owner.lower(): owner for owner in (owner_of(target) for target in targets if is_arm_id(target))}
    ids = [owner for owner in owners.values() if type_of(owner).lower() in kinds and policy.owns(owner, *ours)]
    return Listing(resources.target, tuple(sorted(ids, key=str.lower)), resources.evidence, resources.problem)


def receivers_of_type(estate: Estate, policy: Policy, kind: type[Resource]) -> Listing[str]:
    """Those of one type."""
    return receivers_of(estate, policy).where(lambda receiver: type_of(receiver).lower() == kind.TYPE.lower())


def _targets_of(estate: Estate, resource: str) -> Iterator[str]:
    """What diagnostic settings, exports and event subscriptions of a resource name."""
    yield from sinks_of(estate, resource)
    if EXPORTS in deliveries_of(resource):
        for _, sinks in readable(estate.every(DataExport, resource), lambda export: tuple(export.sinks), []):
            yield from (target for _, target in sinks)
    if EVENTS in deliveries_of(resource):
        for subscriptions in event_subscriptions_of(estate, resource)[1]:
            for _, targets in readable(subscriptions, _targets_of_events, []):
                yield from targets


def _targets_of_events(subscription: Events) -> tuple[str, ...]:
    return tuple(destination.resource_id or "" for destination in subscription.destinations)
