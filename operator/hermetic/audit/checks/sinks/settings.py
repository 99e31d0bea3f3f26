"""Destinations of logs: of the cluster, networks, security groups, load balancers, registries and storage.

Container Insights with a managed identity and managed Prometheus send to the destinations of the data collection rules
of the cluster; the workspace that the add-on names is that of the older way to sign in. An agent of Azure Monitor on
the nodes sends to those of the rules of its machine or scale set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import (
    cluster_of,
    network_ids_of,
    networks_of,
    node_group_of,
    scale_sets_of,
    subnets_of,
    whole_or_unknown,
)
from hermetic.audit.egress.balancers import balancers_of
from hermetic.audit.egress.nsg_reachability import attached
from hermetic.audit.egress.resource_lookup import in_home_subscriptions, readable
from hermetic.audit.estate.arm_fields import folded
from hermetic.audit.estate.arm_ids import is_below, name_of
from hermetic.audit.estate.azure.data_collection import DataCollectionRule, DataCollectionRuleAssociation
from hermetic.audit.estate.azure.diagnostics import CaptureLocation, DiagnosticSetting, FlowLog, PacketCapture
from hermetic.audit.estate.azure.effective import NetworkWatcher
from hermetic.audit.estate.azure.storage import StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, merged
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.findings import Severity, Verdict
from hermetic.audit.held_identities import standing_machines
from hermetic.audit.hops import Hop, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_or_none
from hermetic.audit.registry_storage_scope import account_ids, registry_ids
from hermetic.audit.topology import PlaceKind

PARTNER = "partner solution"


def sent(
    estate: Estate, policy: Policy, resource: str, sinks: Sequence[tuple[str, str]], *observations: Observation
) -> CheckResult:
    """Fail where a destination is in no subscription of ours. `sinks`: the kind and the ARM id of each destination."""
    ours = (estate.cluster, *network_ids_of(estate))
    others = [(word, one) for word, one in sinks if word == PARTNER or not policy.owns(one, *ours)]
    if not others:
        words = f"logs go to {', '.join(f'{word} {name_of(one)}' for word, one in sinks)}, in subscriptions of ours"
        return passes(resource, "OurSink", words, *observations)
    words = f"logs are sent to what is not ours: {', '.join(f'{word} {one}' for word, one in others)}"
    paths = tuple(path_of("cluster", "azure monitor", _sink(word)) for word, _ in others)
    return fails(resource, "ForeignSink", words, *observations, paths=paths)


def _sink(word: str) -> Hop:
    kind = PlaceKind.STORAGE if word == "storage account" else PlaceKind.OTHER
    return Hop(kind, f"{word} of another subscription")


BLOBS, FILES = "blobServices/default", "fileServices/default"
SERVICES = {"filestorage": (FILES,), "blockblobstorage": (BLOBS,), "blobstorage": (BLOBS,)}
"""Services that log, by kind of account; the account itself has metrics only."""
ADD_ONS = """\
Turn off the feature that names this workspace, and turn it on again with a workspace of yours: Container Insights is
the add-on monitoring, Defender's sensor is turned off with az aks update --disable-defender.
Warning: those who read these logs no longer receive them.
az aks disable-addons --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP --name CLUSTER_NAME \\
--addons monitoring
If the workspace is yours, list its subscription under `ownSubscriptions` of the policy file."""
"""The remedy for the cluster: the page's remedy deletes a setting."""


@check("diag-foreign-sink")
def diag_foreign_sink(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every diagnostic setting and flow log with a destination."""
    registries, accounts = registry_ids(estate, policy), account_ids(estate, policy)
    (groups, of_groups), (balancers, of_balancers) = _security_groups(estate), balancers_of(estate, policy)
    around = (*groups, *(one.target for one in balancers))
    yield from _of_add_ons(estate, policy)
    yield from of_collection_rules(estate, policy)
    for resource in (estate.cluster, *network_ids_of(estate), *around, *registries):
        yield from _of_resource(estate, policy, resource)
    for account in accounts:
        yield from whatever_is_damaged(account, _of_account(estate, policy, account))
    yield from _of_flow_logs(estate, policy)
    observations = (*subnets_of(estate)[1], *of_groups, *of_balancers, registries, accounts)
    yield from whole_or_unknown(estate.cluster, "what has diagnostic settings", *observations)


def _of_add_ons(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Workspaces that Container Insights, Azure Monitor and Defender send logs and measurements to."""
    cluster = cluster_of(estate)
    named = cluster.value.workspaces if cluster.value is not None else ()
    if named:
        found = sent(estate, policy, estate.cluster, [("workspace", one) for one in named], cluster)
        yield replace(found, remedy=ADD_ONS) if found.verdict is Verdict.FAIL else found


def _security_groups(estate: Estate) -> tuple[tuple[str, ...], tuple[Observation, ...]]:
    """Security groups of the cluster's subnets and their interfaces, and the observations that the list rests on."""
    subnets, _ = subnets_of(estate)
    seen = [one.seen.value for one in subnets if one.seen.value is not None]
    damaged: list[Observation] = []
    named = [one for _, one in readable(seen, lambda subnet: subnet.network_security_group, damaged) if one is not None]
    by_subnet, observations = attached(estate)
    on_interfaces = (group for one in by_subnet.values() for group in one.groups.values() if group)
    ids = {one.lower(): one for one in (*(reference.id for reference in named), *on_interfaces)}
    return tuple(ids[key] for key in sorted(ids)), (*observations, *damaged)


def _of_account(estate: Estate, policy: Policy, account: str) -> Iterator[CheckResult]:
    """The settings of the account's services, by its kind; of all services where the kind is not known."""
    seen = estate.one(StorageAccount, account)
    if seen.problem is not None and seen.problem.reason is UnreadReason.NOT_ASKED:
        yield unknown(account, "NotSeen", "which services it has was not asked", seen)
        return
    kind = seen.value.kind if seen.value is not None else None
    for service in SERVICES.get((kind or "").lower(), (BLOBS, FILES)):
        yield from _of_resource(estate, policy, f"{account}/{service}")


def _of_resource(estate: Estate, policy: Policy, resource: str) -> Iterator[CheckResult]:
    settings = estate.every(DiagnosticSetting, resource)
    for one in settings:
        yield from whatever_is_damaged(one.id or resource, _evaluate(estate, policy, one))
    if not settings.items:
        yield passes(resource, "NothingSent", "no diagnostic setting: Azure sends no logs of it", settings)
    else:
        yield from whole_or_unknown(resource, "its diagnostic settings", settings)


def _evaluate(estate: Estate, policy: Policy, setting: DiagnosticSetting) -> Iterator[CheckResult]:
    sinks = list(setting.sinks)
    if not sinks:
        words = "the setting names no workspace, account, event hub or partner"
        yield unknown(setting.id, "SinkNotNamed", words, setting)
    else:
        yield sent(estate, policy, setting.id, sinks, setting)


def _of_flow_logs(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Flow logs of the networks, disabled ones included: one change enables them."""
    networks = (network.value for network in networks_of(estate) if network.value is not None)
    ids = {one.id.lower(): one.id for network in networks for one in network.flow_logs}
    for _, one in sorted(ids.items()):
        seen = estate.one(FlowLog, one)
        if seen.value is None:
            yield unknown(one, "FlowLogNotSeen", "the flow log could not be read", seen)
        else:
            yield from whatever_is_damaged(one, _flow_log(estate, policy, seen.value))


def _flow_log(estate: Estate, policy: Policy, log: FlowLog) -> Iterator[CheckResult]:
    analytics = log.flow_analytics_configuration
    watcher = analytics.network_watcher_flow_analytics_configuration if analytics is not None else None
    named = {"storage account": log.storage_id, "workspace": watcher.workspace_resource_id if watcher else None}
    sinks = [(word, one) for word, one in named.items() if one]
    if sinks:
        yield sent(estate, policy, log.id, sinks, log)


@check("packet-capture")
def packet_capture(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Captures, in the cluster's region, whose target is a machine or scale set of the node resource group."""
    cluster, watchers = cluster_of(estate), in_home_subscriptions(estate, policy, NetworkWatcher)
    region = folded(cluster.value.location) if cluster.value is not None else ""
    here = [one for one in watchers if not region or folded(one.location) in {region, ""}]
    captures = merged(estate.cluster, *(estate.every(PacketCapture, one.id) for one in here))
    group = node_group_of(estate)
    ours = captures.where(lambda one: not one.target or not group or is_below(one.target, group))
    none = "no packet capture of a node"
    yield from each_or_none(estate.cluster, ours, lambda one: _capture(estate, policy, one), none, watchers, cluster)


def _capture(estate: Estate, policy: Policy, capture: PacketCapture) -> Iterator[CheckResult]:
    kept = capture.storage_location or CaptureLocation()
    ours = (estate.cluster, *network_ids_of(estate))
    account = kept.storage_id or kept.storage_path or ""
    if not capture.target:
        yield unknown(capture.id, "TargetNotNamed", "the capture does not name its target", capture)
    elif account and not policy.owns(account, *ours):
        words = f"packets of {name_of(capture.target)} are kept at {account}, which is not ours"
        path = path_of(name_of(capture.target), "packet capture", hops.storage("storage of others"))
        yield fails(capture.id, "CaptureSentAway", words, capture, paths=(path,))
    else:
        words = f"packets of {name_of(capture.target)} are captured, and kept at {account or 'the machine itself'}"
        yield fails(capture.id, "Captured", words, capture, severity=Severity.MEDIUM)


def of_collection_rules(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A finding for each association, whose removal mends it and leaves the rule to others."""
    scale_sets, observations = scale_sets_of(estate), list[Observation]()
    machines = [one.id for one in standing_machines(estate, observations)]
    for target in (estate.cluster, *(one.id for one in scale_sets), *machines):
        associations = estate.every(DataCollectionRuleAssociation, target)
        observations.append(associations)
        for one in associations:
            yield from whatever_is_damaged(one.id or target, _association(estate, policy, one))
    yield from whole_or_unknown(estate.cluster, "what has data collection rules", scale_sets, *observations)


def _association(estate: Estate, policy: Policy, association: DataCollectionRuleAssociation) -> Iterator[CheckResult]:
    if association.data_collection_rule_id is None:
        if association.data_collection_endpoint_id is None:
            yield unknown(association.id, "RuleNotNamed", "the association names no rule", association)
        return  # with an endpoint: agents read their configuration there
    seen = estate.one(DataCollectionRule, association.data_collection_rule_id)
    if seen.value is None:
        yield unknown(association.id, "RuleNotSeen", "its data collection rule could not be read", seen, association)
        return
    named = [(word, one) for word, one in seen.value.sinks if one]
    found = sent(estate, policy, association.id, named, seen, association)
    nameless = [word for word, one in seen.value.sinks if not one]
    if found.verdict is Verdict.FAIL:
        yield found
    elif nameless or seen.value.destinations is None:
        words = f"its rule does not identify where it sends to: {', '.join(nameless) or 'destinations'}"
        yield unknown(association.id, "SinkNotNamed", words, seen, association)
    elif named:
        yield found
    else:
        yield passes(
            association.id, "NothingSent", "its rule has no destination but the resource itself", seen, association
        )
