"""Destinations of logs: of every resource in scope that has diagnostic settings, and of flow logs.

Container Insights with a managed identity and managed Prometheus send to the destinations of the data collection rules
of the cluster; the workspace that the add-on names is that of the older way to sign in. An agent of Azure Monitor on
the nodes sends to those of the rules of its machine or scale set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermetic.audit.checks.family import check
from hermetic.audit.checks.sinks.destinations import sent
from hermetic.audit.cluster.members import cluster_of, network_ids_of, node_group_of
from hermetic.audit.estate.arm_ids import is_below, name_of
from hermetic.audit.estate.azure.data_collection import DataCollectionRule, DataCollectionRuleAssociation
from hermetic.audit.estate.azure.diagnostics import CaptureLocation, DiagnosticSetting, FlowLog, PacketCapture
from hermetic.audit.estate.azure.managed_services import FirewallPolicy
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import merged
from hermetic.audit.evaluation.each_resource import each_or_none, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.model.hops import path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.delivery_table import DIAGNOSTICS, POLICY_ANALYTICS, deliveries_of
from hermetic.audit.scope.dns import names_by_default
from hermetic.audit.scope.resources_in_scope import (
    collected_resources,
    flow_logs,
    resources_in_scope,
    unasked_accounts,
    watchers_here,
)

ADD_ONS = """\
Turn off the feature that names this workspace, and turn it on again with a workspace of yours: Container Insights is
the add-on monitoring, Defender's sensor is turned off with az aks update --disable-defender.
Warning: those who read these logs no longer receive them.
az aks disable-addons --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP --name CLUSTER_NAME \\
--addons monitoring
If the workspace is yours, list its subscription under `ownSubscriptions` of the policy file."""
"""The remedy for the cluster: the page's remedy deletes a setting."""
ANALYTICS = """\
Warning: those who read the analytics of this policy no longer receive them.
az resource update --ids RESOURCE_ID --remove properties.insights
If the workspace is yours, list its subscription under `ownSubscriptions` of the policy file."""
"""The remedy for a firewall policy."""


@check("diag-foreign-sink")
def diag_foreign_sink(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every diagnostic setting, collection rule, flow log and policy analytics with a destination."""
    resources = resources_in_scope(estate, policy)
    yield from _of_add_ons(estate, policy)
    yield from of_collection_rules(estate, policy)
    for resource in resources:
        if DIAGNOSTICS in deliveries_of(resource):
            yield from _of_resource(estate, policy, resource)
        if POLICY_ANALYTICS in deliveries_of(resource):
            yield from whatever_is_damaged(resource, _policy_analytics(estate, policy, resource))
    for account in unasked_accounts(estate, policy):
        yield unknown(account.target, "NotSeen", "the audit did not ask which services it has", account)
    yield from _of_flow_logs(estate, policy)
    yield from _unread_dns_policies(estate, policy)
    yield from whole_or_unknown(estate.cluster, "resources with diagnostic settings", resources)


def _of_add_ons(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Workspaces that Container Insights, Azure Monitor and Defender send logs and measurements to."""
    cluster = cluster_of(estate)
    named = cluster.value.workspaces if cluster.value is not None else ()
    if named:
        result = sent(estate, policy, estate.cluster, [("workspace", workspace) for workspace in named], cluster)
        yield replace(result, remedy=ADD_ONS) if result.verdict is Verdict.FAIL else result


def _of_resource(estate: Estate, policy: Policy, resource: str) -> Iterator[CheckResult]:
    settings = estate.every(DiagnosticSetting, resource)
    for setting in settings:
        yield from whatever_is_damaged(setting.id or resource, _evaluate(estate, policy, setting))
    if not settings.items:
        yield passes(resource, "NothingSent", "no diagnostic setting: Azure sends no logs of it", settings)
    else:
        yield from whole_or_unknown(resource, "its diagnostic settings", settings)


def _evaluate(estate: Estate, policy: Policy, setting: DiagnosticSetting) -> Iterator[CheckResult]:
    sinks = list(setting.sinks)
    if not sinks:
        message = "the setting names no workspace, account, event hub or partner"
        yield unknown(setting.id, "SinkNotNamed", message, setting)
    else:
        yield sent(estate, policy, setting.id, sinks, setting)


def _policy_analytics(estate: Estate, policy: Policy, firewall_policy: str) -> Iterator[CheckResult]:
    """The workspaces that the analytics of a firewall policy send to."""
    observation = estate.one(FirewallPolicy, firewall_policy)
    if observation.value is None:
        yield unknown(firewall_policy, "PolicyNotSeen", "the firewall policy could not be read", observation)
    elif sinks := observation.value.sinks:
        result = sent(estate, policy, firewall_policy, sinks, observation)
        yield replace(result, remedy=ANALYTICS) if result.verdict is Verdict.FAIL else result
    else:
        yield passes(firewall_policy, "NothingSent", "the policy has no analytics workspace", observation)


def _unread_dns_policies(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Medium, as for `nsg-platform-dns`: a policy that no list shows may be linked, and log every name."""
    for network in network_ids_of(estate):
        names = names_by_default(estate, policy, network)
        problem = next((observation for observation in names.observations if observation.problem is not None), None)
        if not names.policies and problem is not None:
            message = "the audit could not observe whether a DNS security policy logs the names that pods ask for"
            yield unknown(network, "DnsPoliciesNotSeen", message, problem, severity=Severity.MEDIUM)


def _of_flow_logs(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Flow logs, disabled ones included: one change enables them."""
    logs, observations = flow_logs(estate, policy)
    for log in logs:
        if log.value is None:
            yield unknown(log.target, "FlowLogNotSeen", "the flow log could not be read", log)
        else:
            yield from whatever_is_damaged(log.target, _flow_log(estate, policy, log.value))
    yield from whole_or_unknown(estate.cluster, "flow logs", *observations)


def _flow_log(estate: Estate, policy: Policy, log: FlowLog) -> Iterator[CheckResult]:
    if log.sinks:
        yield sent(estate, policy, log.id, log.sinks, log)


@check("packet-capture")
def packet_capture(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Captures, in the cluster's region, whose target is a machine or scale set of the node resource group."""
    watchers = watchers_here(estate, policy)
    captures = merged(estate.cluster, *(estate.every(PacketCapture, watcher.id) for watcher in watchers))
    group = node_group_of(estate)
    ours = captures.where(lambda capture: not capture.target or not group or is_below(capture.target, group))
    none = "no packet capture of a node"
    yield from each_or_none(estate.cluster, ours, lambda capture: _capture(estate, policy, capture), none, watchers)


def _capture(estate: Estate, policy: Policy, capture: PacketCapture) -> Iterator[CheckResult]:
    location = capture.storage_location or CaptureLocation()
    ours = (estate.cluster, *network_ids_of(estate))
    account = location.storage_id or location.storage_path or ""
    if not capture.target:
        yield unknown(capture.id, "TargetNotNamed", "the capture does not name its target", capture)
    elif account and not policy.owns(account, *ours):
        message = f"packets of {name_of(capture.target)} are kept at {account}, which is not ours"
        path = path_of(name_of(capture.target), "packet capture", hops.storage("storage of others"))
        yield fails(capture.id, "CaptureSentAway", message, capture, paths=(path,))
    else:
        message = f"packets of {name_of(capture.target)} are captured, and kept at {account or 'the machine itself'}"
        yield fails(capture.id, "Captured", message, capture, severity=Severity.MEDIUM)


def of_collection_rules(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A finding for each association, whose removal mends it and leaves the rule to others."""
    resources, unread = collected_resources(estate)
    observations = list(unread)
    for target in resources:
        associations = estate.every(DataCollectionRuleAssociation, target)
        observations.append(associations)
        for association in associations:
            yield from whatever_is_damaged(association.id or target, _association(estate, policy, association))
    yield from whole_or_unknown(estate.cluster, "resources with data collection rules", *observations)


def _association(estate: Estate, policy: Policy, association: DataCollectionRuleAssociation) -> Iterator[CheckResult]:
    if association.data_collection_rule_id is None:
        if association.data_collection_endpoint_id is None:
            yield unknown(association.id, "RuleNotNamed", "the association names no rule", association)
        return  # with an endpoint: agents read their configuration there
    rule = estate.one(DataCollectionRule, association.data_collection_rule_id)
    if rule.value is None:
        yield unknown(association.id, "RuleNotSeen", "its data collection rule could not be read", rule, association)
        return
    named = [(word, sink) for word, sink in rule.value.sinks if sink]
    result = sent(estate, policy, association.id, named, rule, association)
    nameless = [word for word, sink in rule.value.sinks if not sink]
    if result.verdict is Verdict.FAIL:
        yield result
    elif nameless or rule.value.destinations is None:
        message = f"its rule does not identify where it sends to: {', '.join(nameless) or 'destinations'}"
        yield unknown(association.id, "SinkNotNamed", message, rule, association)
    elif named:
        yield result
    else:
        yield passes(
            association.id, "NothingSent", "its rule has no destination but the resource itself", rule, association
        )
