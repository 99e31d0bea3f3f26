"""The private link of each monitoring feature of a cluster, and what is missing of it.

Container Insights sends to its workspace, and reads its configuration at a data collection endpoint; managed Prometheus
sends to a data collection endpoint. All of these must be members of a monitor scope that a private endpoint leads to
(learn.microsoft.com/azure/azure-monitor/containers/kubernetes-monitoring-private-link). Defender's sensor has a private
link of its own, Microsoft.Security/privateLinks with the group `containers` (API version 2026-01-01).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from hermetic.audit.cluster.resource_lookup import readable
from hermetic.audit.estate.arm_ids import type_of
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.data_collection import DataCollectionRule, DataCollectionRuleAssociation
from hermetic.audit.estate.azure.private_link import DEFENDER, MonitorScope
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.monitor_scopes import members_of
from hermetic.audit.scope.private_links import targets_of

COMPONENTS = "microsoft.insights/components"
ACCOUNTS, LOGS = "Azure Monitor workspace", "workspace"


class Feature(Enum):
    """A feature that sends measurements, by the private link that it uses."""

    PROMETHEUS = "managed Prometheus"
    CONTAINER_INSIGHTS = "Container Insights"
    APPLICATIONS = "Application Insights"
    DEFENDER = "Defender"
    COSTS = "cost analysis"
    NOT_KNOWN = "not known"


OF_MONITOR_PROFILE: Mapping[str, Feature] = {
    "metrics": Feature.PROMETHEUS,
    "containerinsights": Feature.CONTAINER_INSIGHTS,
    "logs": Feature.CONTAINER_INSIGHTS,
    "appmonitoring": Feature.APPLICATIONS,
}
"""By the first field below azureMonitorProfile, in lower case."""


@dataclass(frozen=True, slots=True)
class Link:
    """What is missing of a feature's private link; "" where it is complete. The observations decide it."""

    gap: str
    observations: tuple[Observation, ...] = ()


def endpoint_to(estate: Estate, policy: Policy, resource_type: str) -> Link:
    """The link of a feature that needs a private endpoint to a resource of one type."""
    targets = targets_of(estate, policy, resource_type)
    return Link("" if targets.items else f"no private endpoint leads to {resource_type}", (targets,))


def link_of(estate: Estate, policy: Policy, cluster: ManagedCluster, feature: Feature) -> Link:
    """What is missing of the private link of a feature of this cluster."""
    if feature is Feature.DEFENDER:
        return endpoint_to(estate, policy, DEFENDER)
    if feature is Feature.COSTS:
        return Link("Azure documents no private link")
    scopes = endpoint_to(estate, policy, MonitorScope.TYPE)
    if scopes.gap:
        return scopes
    members = members_of(estate, policy)
    if feature is Feature.APPLICATIONS:
        has_component = any(type_of(member).lower() == COMPONENTS for member in members)
        return Link("" if has_component else "no monitor scope holds its Application Insights resource", (members,))
    if feature is Feature.NOT_KNOWN:
        return Link("it is not known which private link it uses", (members,))
    return _of_collected(estate, cluster, feature, members)


def _of_collected(estate: Estate, cluster: ManagedCluster, feature: Feature, members: Listing[str]) -> Link:
    """Of a feature whose agents send what data collection rules describe."""
    collection = _collection_of(estate, feature)
    targets = [*collection.endpoints]
    is_of_logs = feature is Feature.CONTAINER_INSIGHTS
    if is_of_logs:
        targets += (*collection.workspaces, *_insights_workspaces(cluster))
    observations = (members, *collection.observations)
    listed = {member.lower() for member in members}
    outside = sorted({target for target in targets if target.lower() not in listed}, key=str.lower)
    if outside:
        return Link(f"no monitor scope in reach holds {', '.join(outside)}", observations)
    if not collection.endpoints and not (is_of_logs and _signs_in_by_key(cluster)):
        return Link("no data collection endpoint of the cluster is in a monitor scope", observations)
    if is_of_logs and not any(type_of(target).lower().endswith("/workspaces") for target in targets):
        return Link("the cluster names no workspace", observations)
    return Link("", observations)


@dataclass(frozen=True, slots=True)
class _Collection:
    """Data collection endpoints and workspaces that the cluster's rules of one feature name."""

    endpoints: tuple[str, ...]
    workspaces: tuple[str, ...]
    observations: tuple[Observation, ...]


def _collection_of(estate: Estate, feature: Feature) -> _Collection:
    associations = estate.every(DataCollectionRuleAssociation, estate.cluster)
    damaged: list[Observation] = []
    endpoints, rules = list[str](), list[str]()
    for _, (endpoint, rule) in readable(associations, _named_by, damaged):
        endpoints += [endpoint] if endpoint else []
        rules += [rule] if rule else []
    observed = [estate.one(DataCollectionRule, rule) for rule in dict.fromkeys(rules)]
    values = [item.value for item in observed if item.value is not None]
    workspaces = list[str]()
    for _, (endpoint, targets) in readable(values, lambda rule: _of_rule(rule, feature), damaged):
        endpoints += [endpoint] if endpoint else []
        workspaces += targets
    observations: tuple[Observation, ...] = (associations, *observed, *damaged)
    return _Collection(_once(endpoints), _once(workspaces), observations)


def _named_by(association: DataCollectionRuleAssociation) -> tuple[str | None, str | None]:
    return association.data_collection_endpoint_id, association.data_collection_rule_id


def _of_rule(rule: DataCollectionRule, feature: Feature) -> tuple[str, list[str]]:
    """The endpoint of a rule and its workspaces; nothing where the rule is of another feature."""
    kind = ACCOUNTS if feature is Feature.PROMETHEUS else LOGS
    targets = [target for word, target in rule.sinks if word == kind and target]
    return (rule.data_collection_endpoint_id or "", targets) if targets else ("", [])


def _once(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple({item.lower(): item for item in ids}.values())


def _insights(cluster: ManagedCluster) -> Iterator[Mapping[str, object]]:
    for name, profile in (cluster.addon_profiles or {}).items():
        if name.lower() == "omsagent" and profile.is_on:
            yield {key.lower(): value for key, value in (profile.config or {}).items()}


def _insights_workspaces(cluster: ManagedCluster) -> Iterator[str]:
    features = (value for name, value in (cluster.azure_monitor_profile or {}).items() if name.lower() != "metrics")
    inside = [{key.lower(): field for key, field in value.items()} for value in features if isinstance(value, Mapping)]
    for config in (*_insights(cluster), *inside):
        workspace = config.get("loganalyticsworkspaceresourceid")
        if isinstance(workspace, str) and workspace:
            yield workspace


def _signs_in_by_key(cluster: ManagedCluster) -> bool:
    """Whether the add-on signs in with the key of its workspace, which needs no data collection endpoint."""
    return any(str(config.get("useaadauth", "")).lower() != "true" for config in _insights(cluster))
