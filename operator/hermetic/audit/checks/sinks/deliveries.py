"""What Azure delivers for a resource beside its logs: events, exports of a workspace, and kinds that are not known."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.checks.sinks.destinations import hop_of, sent
from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.estate.arm_ids import is_arm_id, name_of, type_of
from hermetic.audit.estate.azure.deliveries import DataExport, EventDestination, Events
from hermetic.audit.estate.azure.private_link_types import is_relay
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing
from hermetic.audit.evaluation.each_resource import whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.delivery_table import DELIVERIES, EVENTS, EXPORTS, NOTHING_DELIVERED, deliveries_of
from hermetic.audit.scope.log_receivers import event_subscriptions_of
from hermetic.audit.scope.private_links import is_allowed
from hermetic.audit.scope.resources_in_scope import resources_in_scope

WEBHOOK = "webhook"
PEOPLE = {"monitoralert": "alerts, which are sent to people and addresses", "partnerdestination": "a partner"}
"""Destinations that are no resource of ours, by type in lower case."""
RELAYS = {"azurefunction": "its code can call any address", "hybridconnection": "its listener runs anywhere"}
"""Destinations that pass events on, by type in lower case; `allowedPrivateLinkServices` accepts one."""
STORES = {
    "eventhub": "event hub",
    "servicebusqueue": "queue",
    "servicebustopic": "topic",
    "storagequeue": "storage account",
    "storageblob": "storage account",
    "namespacetopic": "topic",
}
"""Destinations that keep events, by type in lower case: the name of each in messages."""


@check("event-foreign-sink")
def event_foreign_sink(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Event subscriptions of every resource in scope whose events have names that a pod chooses."""
    resources = resources_in_scope(estate, policy)
    sources = [resource for resource in resources if EVENTS in deliveries_of(resource)]
    for source in sources:
        topics, listed = event_subscriptions_of(estate, source)
        for subscriptions in listed:
            for subscription in subscriptions:
                of_one = _events(estate, policy, source, subscription)
                yield from whatever_is_damaged(subscription.id or source, of_one)
        message = (
            "no event of it is delivered"
            if not any(listing.items for listing in listed)
            else "its deliveries were read"
        )
        yield passes(source, "EventsRead", message, *listed, topics)
    yield from whole_or_unknown(estate.cluster, "resources with event subscriptions", resources)
    if not sources:
        yield does_not_apply(estate.cluster, "NoSource", "no registry, storage account or vault is in scope", resources)


def _events(estate: Estate, policy: Policy, source: str, subscription: Events) -> Iterator[CheckResult]:
    destinations = subscription.destinations
    if not destinations:
        yield unknown(subscription.id, "DestinationNotNamed", "the subscription names no destination", subscription)
    for destination in destinations:
        yield _destination(estate, policy, source, subscription, destination)


def _destination(
    estate: Estate, policy: Policy, source: str, subscription: Events, destination: EventDestination
) -> CheckResult:
    kind, target = (destination.endpoint_type or "").lower(), destination.resource_id or ""
    about = f"events of {name_of(source)}, with the names that pods write there, are delivered to"
    if kind == WEBHOOK:
        address = (destination.endpoint_base_url or "an address that is not shown").partition("?")[0]
        path = path_of(POD, name_of(source), "event grid", INTERNET)
        return fails(subscription.id, "Webhook", f"{about} {address}", subscription, paths=(path,))
    if kind in PEOPLE:
        path = path_of(POD, name_of(source), "event grid", "people and partners")
        return fails(subscription.id, "SentToPeople", f"{about} {PEOPLE[kind]}", subscription, paths=(path,))
    if not is_arm_id(target) or kind not in {*RELAYS, *STORES}:
        message = (
            f"{about} a destination of type {destination.endpoint_type or 'not shown'}, which does not show whose it is"
        )
        return unknown(subscription.id, "DestinationUnknown", message, subscription)
    if not policy.owns(target, estate.cluster, *network_ids_of(estate)):
        path = path_of(POD, name_of(source), "event grid", hop_of(STORES.get(kind, "function")))
        return fails(
            subscription.id, "ForeignSink", f"{about} {target}, which is not ours", subscription, paths=(path,)
        )
    if kind in RELAYS and not is_allowed(policy, target):
        path = path_of(POD, name_of(source), "event grid", hops.service(name_of(target)), "elsewhere")
        return fails(subscription.id, "Relayed", f"{about} {target}: {RELAYS[kind]}", subscription, paths=(path,))
    return passes(subscription.id, "OurSink", f"{about} {target}, in a subscription of ours", subscription)


@check("workspace-export")
def workspace_export(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Data exports of every workspace of ours that receives logs of the cluster or of what it uses."""
    resources = resources_in_scope(estate, policy)
    workspaces = [resource for resource in resources if EXPORTS in deliveries_of(resource)]
    for workspace in workspaces:
        exports = estate.every(DataExport, workspace)
        for export in exports:
            yield from whatever_is_damaged(export.id or workspace, _export(estate, policy, export, exports))
        message = "its exports were read" if exports.items else "nothing is exported"
        yield passes(workspace, "ExportsRead", message, exports)
    yield from whole_or_unknown(estate.cluster, "workspaces that receive logs", resources)
    if not workspaces:
        yield does_not_apply(estate.cluster, "NoWorkspace", "no workspace of ours receives logs", resources)


def _export(estate: Estate, policy: Policy, export: DataExport, exports: Listing[DataExport]) -> Iterator[CheckResult]:
    sinks = list(export.sinks)
    if sinks:
        yield sent(estate, policy, export.id, sinks, export, exports)
    else:
        yield unknown(export.id, "SinkNotNamed", "the export names no storage account and no event hub", export)


@check("delivery-kinds")
def delivery_kinds(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Resources in scope of a type for which no row says what Azure carries out for it."""
    resources = resources_in_scope(estate, policy)
    undecided = [resource for resource in resources if not _is_decided(type_of(resource).lower())]
    for resource in undecided:
        message = f"this release does not read what Azure carries out for a resource of type {type_of(resource)}"
        yield unknown(resource, "KindNotRead", message, resources)
    message = "this release reads what Azure carries out for every type of resource in scope"
    yield passes(estate.cluster, "KindsRead", message, resources)


def _is_decided(kind: str) -> bool:
    """Whether the type has rows, has none for a reason, or is one that `pe-relay-target` fails for."""
    return kind in DELIVERIES or kind in NOTHING_DELIVERED or is_relay(kind)
