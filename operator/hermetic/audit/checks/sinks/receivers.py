"""What receives logs of ours and passes them on: action groups of alerts, and the capture of event hubs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.checks.sinks.destinations import hop_of
from hermetic.audit.cluster.members import network_ids_of, node_group_of
from hermetic.audit.cluster.resource_lookup import in_home_subscriptions, readable
from hermetic.audit.estate.arm_ids import is_arm_id, is_below, name_of, same_id
from hermetic.audit.estate.azure.alerts import (
    ActionGroup,
    AlertRule,
    MetricAlert,
    ProcessingRule,
    PrometheusRules,
    QueryRule,
    Receiver,
)
from hermetic.audit.estate.azure.deliveries import EventHub
from hermetic.audit.estate.azure.instances import EventHubs
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, missing
from hermetic.audit.evaluation.each_resource import whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.remedies.filling import Fill
from hermetic.audit.scope.log_receivers import receivers_of_type
from hermetic.audit.scope.private_links import is_allowed
from hermetic.audit.scope.resources_in_scope import resources_in_scope

RULES: tuple[type[AlertRule], ...] = (QueryRule, MetricAlert, PrometheusRules, ProcessingRule)


@check("alert-receivers")
def alert_receivers(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Action groups of every rule about the cluster, its node group, or a resource in scope."""
    resources = resources_in_scope(estate, policy)
    scopes = (*resources, estate.cluster, node_group_of(estate) or estate.cluster)
    lists = [in_home_subscriptions(estate, policy, kind) for kind in RULES]
    damaged: list[Observation] = []
    groups: dict[str, str] = {}
    rules: defaultdict[str, list[str]] = defaultdict(list)
    for listing in lists:
        for rule, ids in readable(listing, lambda rule: _groups_of(rule, scopes), damaged):
            groups |= {group.lower(): group for group in ids}
            for group in dict.fromkeys(map(str.lower, ids)):
                rules[group].append(rule.id)
    for key, group in sorted(groups.items()):
        observation = estate.one(ActionGroup, group)
        yield from whatever_is_damaged(group, _group(estate, policy, observation, sorted(rules[key])))
    yield from whole_or_unknown(estate.cluster, "alert rules", *lists, *damaged, resources)
    if not groups:
        message = "no alert about what is in scope is sent to an action group"
        yield passes(estate.cluster, "NoReceiver", message, *lists, resources)


def _groups_of(rule: AlertRule, scopes: tuple[str, ...]) -> tuple[str, ...]:
    """The action groups of a rule about one of these; of a rule that does not show its scopes as well."""
    is_about_us = any(
        same_id(scope, resource) or is_below(resource, scope) or is_below(scope, resource)
        for scope in rule.scopes or ()
        for resource in scopes
    )
    return rule.action_group_ids if is_about_us or not rule.scopes else ()


def _group(estate: Estate, policy: Policy, observation: Lookup[ActionGroup], rules: list[str]) -> Iterator[CheckResult]:
    group = observation.value
    if not policy.owns(observation.target, estate.cluster, *network_ids_of(estate)):
        path = path_of(POD, "azure monitor", f"action group {name_of(observation.target)} of others")
        message = "alerts are sent to an action group that is not ours"
        yield fails(
            observation.target,
            "ForeignGroup",
            message,
            observation,
            paths=(path,),
            remedy=OTHER_GROUP,
            fill={"ATTACHED_ID": rules},
        )
        return
    if group is None:
        message = "alerts are sent to an action group that could not be read"
        yield unknown(observation.target, "GroupNotSeen", message, observation, fill=NO_ENTRY)
        return
    yield from _receivers(estate, policy, observation, group)
    if group.unanswered:
        message = f"the answer has no list {', '.join(group.unanswered)}"
        yield unknown(
            observation.target,
            "ReceiversNotSeen",
            message,
            missing(f"{observation.target}: {message}"),
            observation,
            fill=NO_ENTRY,
        )
    yield passes(observation.target, "ReceiversRead", "its receivers were read", observation)


OTHER_GROUP = """\
Take the action group out of the alert rules that name it, which then no longer send it any alert. If the group is
yours, list its subscription under `ownSubscriptions` of the policy file instead.
az resource show --ids ATTACHED_ID
"""
NO_ENTRY: Fill = {"RULE_NAME": [], "PLACE": []}
ABOUT = "alerts, with what pods wrote, are sent to"
CODE = {"automationRunbookReceivers": "runbook", "azureFunctionReceivers": "function", "logicAppReceivers": "workflow"}
"""Lists of receivers that run code, which can call any address, ours or not; and what they start."""
PEOPLE = {
    "emailReceivers": "mail",
    "smsReceivers": "text messages",
    "voiceReceivers": "calls",
    "azureAppPushReceivers": "the mobile app",
    "armRoleReceivers": "holders of a role",
}
"""Lists of receivers that are people."""


def _receivers(
    estate: Estate, policy: Policy, observation: Lookup[ActionGroup], group: ActionGroup
) -> Iterator[CheckResult]:
    webhooks = _places(group, "webhookReceivers")
    if webhooks:
        shown = (receiver.service_uri or "an address that is not shown" for _, receiver in reversed(webhooks))
        message = f"{ABOUT} {', '.join(address.partition('?')[0] for address in shown)}"
        path = path_of(POD, "azure monitor", f"action group {group.name}", INTERNET)
        fill = _entries("webhookReceivers", webhooks)
        yield fails(observation.target, "Webhook", message, observation, paths=(path,), fill=fill)
    for name in CODE:
        yield from _code(policy, observation, name, _places(group, name))
    yield from _hubs(estate, policy, observation, _places(group, "eventHubReceivers"))
    if desks := _places(group, "itsmReceivers"):
        path = path_of(POD, "azure monitor", f"action group {group.name}", "service desk")
        message, fill = f"{ABOUT} a service desk outside", _entries("itsmReceivers", desks)
        yield fails(observation.target, "ServiceDesk", message, observation, paths=(path,), fill=fill)
    people = [(name, position) for name in PEOPLE for position, _ in _places(group, name)]
    if people:
        message = f"{ABOUT} people: {', '.join(dict.fromkeys(PEOPLE[name] for name, _ in people))}"
        path = path_of(POD, "azure monitor", "people")
        fill = {"RULE_NAME": [name for name, _ in people], "PLACE": [str(position) for _, position in people]}
        yield fails(
            observation.target, "SentToPeople", message, observation, paths=(path,), severity=Severity.MEDIUM, fill=fill
        )


def _places(group: ActionGroup, name: str) -> list[tuple[int, Receiver]]:
    """The receivers of one list by their place, the last first: removed in this order, none moves another."""
    return list(enumerate(group.receivers(name)))[::-1]


def _entries(name: str, receivers: list[tuple[int, Receiver]]) -> Fill:
    """What the remedy needs to remove these receivers of one list."""
    return {"RULE_NAME": name, "PLACE": [str(position) for position, _ in receivers]}


def _code(
    policy: Policy, observation: Lookup[ActionGroup], name: str, receivers: list[tuple[int, Receiver]]
) -> Iterator[CheckResult]:
    """Code that alerts start can call any address, whether the code is ours or not."""
    targets = {position: _started_by(receiver) for position, receiver in receivers}
    refused = [(position, receiver) for position, receiver in receivers if not is_allowed(policy, targets[position])]
    for position, target in targets.items():
        if position not in dict(refused):
            yield passes(observation.target, "TargetAllowed", f"the policy allows {target}", observation)
    if refused:
        shown = [targets[position] or "a resource that is not named" for position, _ in reversed(refused)]
        message = (
            f"alerts, with what pods wrote, start a {CODE[name]} of {', '.join(shown)}: its code can call any address"
        )
        path = path_of(POD, "azure monitor", hops.service(name_of(shown[0]) or CODE[name]), "elsewhere")
        yield fails(observation.target, "Relayed", message, observation, paths=(path,), fill=_entries(name, refused))


def _started_by(receiver: Receiver) -> str:
    return receiver.automation_account_id or receiver.function_app_resource_id or receiver.resource_id or ""


def _hubs(
    estate: Estate, policy: Policy, observation: Lookup[ActionGroup], receivers: list[tuple[int, Receiver]]
) -> Iterator[CheckResult]:
    foreign: list[tuple[int, Receiver]] = []
    for position, receiver in receivers:
        namespace, subscription = receiver.event_hub_name_space or "", receiver.subscription_id or ""
        if not subscription:
            explanation = (
                f"alerts are sent to event hubs of {namespace or 'a namespace that is not named'}, of no subscription"
            )
            yield unknown(observation.target, "HubNotNamed", explanation, observation, fill=NO_ENTRY)
        elif policy.owns(f"/subscriptions/{subscription}/", estate.cluster, *network_ids_of(estate)):
            yield passes(
                observation.target,
                "OurSink",
                f"alerts are sent to event hubs of {namespace}, which is ours",
                observation,
            )
        else:
            foreign.append((position, receiver))
    if foreign:
        shown = (
            f"{receiver.event_hub_name_space} in subscription {receiver.subscription_id}"
            for _, receiver in reversed(foreign)
        )
        message = f"alerts are sent to event hubs of {', '.join(shown)}, not ours"
        path = path_of(POD, "azure monitor", hop_of("event hub"))
        fill = _entries("eventHubReceivers", foreign)
        yield fails(observation.target, "ForeignSink", message, observation, paths=(path,), fill=fill)


@check("event-hub-capture")
def event_hub_capture(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Each event hub of the namespaces of ours that receive logs, events or exports."""
    namespaces = receivers_of_type(estate, policy, EventHubs)
    for namespace in namespaces:
        hubs = estate.every(EventHub, namespace)
        for hub in hubs:
            yield from whatever_is_damaged(hub.id or namespace, _capture(estate, policy, hub))
        message = "its event hubs were read" if hubs.items else "it has no event hub"
        yield passes(namespace, "HubsRead", message, hubs)
    yield from whole_or_unknown(estate.cluster, "event hubs that receive logs", namespaces)
    if not namespaces.items:
        yield does_not_apply(estate.cluster, "NoEventHub", "no event hub of ours receives logs", namespaces)


def _capture(estate: Estate, policy: Policy, hub: EventHub) -> Iterator[CheckResult]:
    capture = hub.capture_description
    destination = capture.destination if capture is not None else None
    lake = (destination.data_lake_subscription_id if destination is not None else None) or ""
    account = (destination.storage_account_resource_id if destination is not None else None) or ""
    target = account or (f"/subscriptions/{lake}/" if lake else "")
    if capture is None or (not capture.enabled and not target):
        yield passes(hub.id, "NotCaptured", "events are kept in the hub alone", hub)
    elif not is_arm_id(target.rstrip("/")):
        yield unknown(hub.id, "SinkNotNamed", "the capture names no storage account", hub)
    elif policy.owns(target, estate.cluster, *network_ids_of(estate)):
        yield passes(hub.id, "OurSink", f"events are captured into {target}, in a subscription of ours", hub)
    else:
        path = path_of(POD, "azure monitor", name_of(hub.id), hop_of("storage account"))
        yield fails(hub.id, "ForeignSink", f"events are captured into {target}, which is not ours", hub, paths=(path,))
