"""Destinations of logs: of the cluster, networks, security groups, load balancers, registries and storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.checks.sinks.collection_rules import of_collection_rules
from hermetic.audit.checks.sinks.destinations import sent
from hermetic.audit.cluster_scope import (
    cluster_of,
    network_ids_of,
    networks_of,
    node_group_of,
    subnets_of,
    whole_or_unknown,
)
from hermetic.audit.egress.balancers import balancers_of
from hermetic.audit.egress.nsg_reachability import attached
from hermetic.audit.egress.resource_lookup import in_home_subscriptions, readable
from hermetic.audit.estate.arm_ids import is_below, name_of
from hermetic.audit.estate.azure.diagnostics import CaptureLocation, DiagnosticSetting, FlowLog, PacketCapture
from hermetic.audit.estate.azure.effective import NetworkWatcher
from hermetic.audit.estate.azure.storage import StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, merged
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes, whatever_is_damaged
from hermetic.audit.findings import Severity, Verdict
from hermetic.audit.hops import path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_or_none
from hermetic.audit.registry_storage_scope import account_ids, registry_ids

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
def diag_foreign_sink(estate: Estate, policy: Policy) -> Iterator[Judgement]:
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


def _of_add_ons(estate: Estate, policy: Policy) -> Iterator[Judgement]:
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


def _of_account(estate: Estate, policy: Policy, account: str) -> Iterator[Judgement]:
    """The settings of the account's services, by its kind; of all services where the kind is not known."""
    seen = estate.one(StorageAccount, account)
    if seen.problem is not None and seen.problem.reason is UnreadReason.NOT_ASKED:
        yield cannot_say(account, "NotSeen", "which services it has was not asked", seen)
        return
    kind = seen.value.kind if seen.value is not None else None
    for service in SERVICES.get((kind or "").lower(), (BLOBS, FILES)):
        yield from _of_resource(estate, policy, f"{account}/{service}")


def _of_resource(estate: Estate, policy: Policy, resource: str) -> Iterator[Judgement]:
    settings = estate.every(DiagnosticSetting, resource)
    for one in settings:
        yield from whatever_is_damaged(one.id or resource, _judge(estate, policy, one))
    if not settings.items:
        yield passes(resource, "NothingSent", "no diagnostic setting: Azure sends no logs of it", settings)
    else:
        yield from whole_or_unknown(resource, "its diagnostic settings", settings)


def _judge(estate: Estate, policy: Policy, setting: DiagnosticSetting) -> Iterator[Judgement]:
    sinks = list(setting.sinks)
    if not sinks:
        words = "the setting names no workspace, account, event hub or partner"
        yield cannot_say(setting.id, "SinkNotNamed", words, setting)
    else:
        yield sent(estate, policy, setting.id, sinks, setting)


def _of_flow_logs(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Flow logs of the networks, disabled ones included: one change enables them."""
    networks = (network.value for network in networks_of(estate) if network.value is not None)
    ids = {one.id.lower(): one.id for network in networks for one in network.flow_logs}
    for _, one in sorted(ids.items()):
        seen = estate.one(FlowLog, one)
        if seen.value is None:
            yield cannot_say(one, "FlowLogNotSeen", "the flow log could not be read", seen)
        else:
            yield from whatever_is_damaged(one, _flow_log(estate, policy, seen.value))


def _flow_log(estate: Estate, policy: Policy, log: FlowLog) -> Iterator[Judgement]:
    analytics = log.flow_analytics_configuration
    watcher = analytics.network_watcher_flow_analytics_configuration if analytics is not None else None
    named = {"storage account": log.storage_id, "workspace": watcher.workspace_resource_id if watcher else None}
    sinks = [(word, one) for word, one in named.items() if one]
    if sinks:
        yield sent(estate, policy, log.id, sinks, log)


@check("packet-capture")
def packet_capture(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Captures, in the cluster's region, whose target is a machine or scale set of the node resource group."""
    cluster, watchers = cluster_of(estate), in_home_subscriptions(estate, policy, NetworkWatcher)
    region = _region(cluster.value.location) if cluster.value is not None else ""
    here = [one for one in watchers if not region or _region(one.location) in {region, ""}]
    captures = merged(estate.cluster, *(estate.every(PacketCapture, one.id) for one in here))
    group = node_group_of(estate)
    ours = captures.where(lambda one: not one.target or not group or is_below(one.target, group))
    none = "no packet capture of a node"
    yield from each_or_none(estate.cluster, ours, lambda one: _capture(estate, policy, one), none, watchers, cluster)


def _region(location: str) -> str:
    return location.replace(" ", "").lower()


def _capture(estate: Estate, policy: Policy, capture: PacketCapture) -> Iterator[Judgement]:
    kept = capture.storage_location or CaptureLocation()
    ours = (estate.cluster, *network_ids_of(estate))
    account = kept.storage_id or kept.storage_path or ""
    if not capture.target:
        yield cannot_say(capture.id, "TargetNotNamed", "the capture does not name its target", capture)
    elif account and not policy.owns(account, *ours):
        words = f"packets of {name_of(capture.target)} are kept at {account}, which is not ours"
        path = path_of(name_of(capture.target), "packet capture", hops.storage("storage of others"))
        yield fails(capture.id, "CaptureSentAway", words, capture, paths=(path,))
    else:
        words = f"packets of {name_of(capture.target)} are captured, and kept at {account or 'the machine itself'}"
        yield fails(capture.id, "Captured", words, capture, severity=Severity.MEDIUM)
