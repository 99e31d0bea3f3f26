"""The resources that pods can put words into, and those that Azure sends these words on to, as far as they are ours.

Azure's own deliveries are followed from these: a workspace of ours that receives logs is in scope too, with what it
exports. A target that is not ours is a finding of the check that reads it, and nothing is read of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from hermetic.audit.cluster.members import cluster_of, network_ids_of, networks_of, scale_sets_of, subnets_of
from hermetic.audit.cluster.resource_lookup import in_home_subscriptions, readable, values_of
from hermetic.audit.estate.arm_fields import folded
from hermetic.audit.estate.arm_ids import is_arm_id, is_below, is_in, parent_of, same_id, type_of
from hermetic.audit.estate.azure.data_collection import DataCollectionRule, DataCollectionRuleAssociation
from hermetic.audit.estate.azure.deliveries import DataExport
from hermetic.audit.estate.azure.diagnostics import DiagnosticSetting, FlowLog
from hermetic.audit.estate.azure.effective import NetworkWatcher
from hermetic.audit.estate.azure.key_vaults import KeyVault, ManagedHsm
from hermetic.audit.estate.azure.managed_services import ApplicationGateway, AzureFirewall
from hermetic.audit.estate.azure.storage import StorageAccount
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Lookup, Observation, is_not_found, merged
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.behind_firewall import own_resources_named
from hermetic.audit.rules.firewall import policies_of
from hermetic.audit.rules.nsg_reachability import attached
from hermetic.audit.scope.balancers import balancers_of
from hermetic.audit.scope.delivery_table import COLLECTION_RULES, DIAGNOSTICS, deliveries_of
from hermetic.audit.scope.dns import names_by_default
from hermetic.audit.scope.held_identities import standing_machines
from hermetic.audit.scope.monitor_scopes import members_of
from hermetic.audit.scope.private_links import own_targets
from hermetic.audit.scope.reachable_networks import reached_network_ids, throughout
from hermetic.audit.scope.registry_storage import account_ids, registry_ids
from hermetic.errors import FactDamaged

G = TypeVar("G", AzureFirewall, ApplicationGateway)

WORKSPACES = "microsoft.operationalinsights/workspaces"
BLOBS, FILES, QUEUES, TABLES = (f"{kind}Services/default" for kind in ("blob", "file", "queue", "table"))
SERVICES = {"filestorage": (FILES,), "blockblobstorage": (BLOBS,), "blobstorage": (BLOBS,)}
"""Services that log, by kind of account; every other kind has all four. The account itself has metrics only."""
OPTIONAL_SERVICES = frozenset(f"microsoft.storage/storageaccounts/{kind}services" for kind in ("queue", "table"))
"""Services that an account of a kind that is not known may lack."""


@derived
def resources_in_scope(estate: Estate, policy: Policy) -> Listing[str]:
    """ARM ids without duplicates, sorted. A list that could name more and was not read in full is a problem."""
    groups, of_groups = _security_groups(estate)
    balancers, of_balancers = balancers_of(estate, policy)
    registries, accounts = registry_ids(estate, policy), account_ids(estate, policy)
    targets, unasked = own_targets(estate, policy), unasked_accounts(estate, policy)
    firewalls, gateways = firewalls_in_reach(estate, policy), _gateways(estate, policy)
    direct = (
        estate.cluster,
        *network_ids_of(estate),
        *groups,
        *(balancer.target for balancer in balancers),
        *registries,
        *accounts,
        *targets,
        *own_resources_named(estate, policy),
        *dns_policies(estate, policy),
        *(firewall.id for firewall in firewalls),
        *_firewall_policies(estate, firewalls),
        *(gateway.id for gateway in gateways),
    )
    services = (service for account in accounts for service in services_of(estate, account))
    ids = {resource.lower(): resource for resource in (*direct, *services)}
    for workspace in _own_workspaces(estate, policy, tuple(ids.values())):
        ids.setdefault(workspace.lower(), workspace)
    of_networks = (*subnets_of(estate)[1], *of_groups, *of_balancers)
    observations = (*of_networks, registries, accounts, targets, firewalls, gateways, *unasked)
    problem = next((item.problem for item in observations if item.problem is not None), None)
    evidence = tuple(part for observation in observations for part in observation.evidence)
    in_scope = tuple(ids[key] for key in sorted(ids) if not _is_gone(estate, ids[key]))
    return Listing(estate.cluster, in_scope, evidence, problem)


def _is_gone(estate: Estate, resource: str) -> bool:
    """Whether Azure says that there is no such vault, workspace, or service of an account that was read.

    Nothing is read there, and nothing sent on. A subscription that is not found is a problem of every list that is
    asked of it.
    """
    kind = type_of(resource).lower()
    if kind in OPTIONAL_SERVICES and estate.one(StorageAccount, parent_of(resource)).value is not None:
        return is_not_found(estate.every(DiagnosticSetting, resource))
    if kind == WORKSPACES:
        return all(is_not_found(estate.every(listed, resource)) for listed in (DiagnosticSetting, DataExport))
    vault = next((model for model in (KeyVault, ManagedHsm) if model.TYPE.lower() == kind), None)
    return vault is not None and is_not_found(estate.one(vault, resource))


def services_of(estate: Estate, account: str) -> tuple[str, ...]:
    """The services of a storage account, by its kind; all four where the kind is not known.

    None before the account was asked: its kind decides what is asked next.
    """
    observed = estate.one(StorageAccount, account)
    if _is_unasked(observed):
        return ()
    kind = (observed.value.kind if observed.value is not None else None) or ""
    return tuple(f"{account}/{service}" for service in SERVICES.get(kind.lower(), (BLOBS, FILES, QUEUES, TABLES)))


def unasked_accounts(estate: Estate, policy: Policy) -> tuple[Lookup[StorageAccount], ...]:
    """The storage accounts in scope that were not asked: which services they have is not known."""
    accounts = (estate.one(StorageAccount, account) for account in account_ids(estate, policy))
    return tuple(observed for observed in accounts if _is_unasked(observed))


def _is_unasked(observation: Observation) -> bool:
    return observation.problem is not None and observation.problem.reason is UnreadReason.NOT_ASKED


def dns_policies(estate: Estate, policy: Policy) -> tuple[str, ...]:
    """The DNS security policies that are known to be linked to a network of the cluster."""
    by_network = (names_by_default(estate, policy, network).policies for network in network_ids_of(estate))
    return tuple(dict.fromkeys(linked for policies in by_network for linked in policies))


def firewalls_in_reach(estate: Estate, policy: Policy) -> Listing[AzureFirewall]:
    """Firewalls with an address in a network in reach, and the declared one; one that cannot be read counts."""
    in_scope = _with_address_in_reach(estate, policy, AzureFirewall)
    if policy.profile == "filtered" and not any(_is_declared(item.id, policy) for item in in_scope):
        observed = estate.one(AzureFirewall, policy.firewall)
        declared = (observed.value,) if observed.value is not None else ()
        return Listing(
            in_scope.target,
            (*in_scope.items, *declared),
            in_scope.evidence,
            in_scope.problem or observed.problem,
        )
    return in_scope


def _is_declared(firewall: str, policy: Policy) -> bool:
    return policy.profile == "filtered" and same_id(firewall, policy.firewall)


def _firewall_policies(estate: Estate, firewalls: Iterable[AzureFirewall]) -> Iterator[str]:
    for _, policies in readable(firewalls, lambda firewall: policies_of(estate, firewall), []):
        yield from (observed.target for observed in policies)


def _gateways(estate: Estate, policy: Policy) -> Listing[ApplicationGateway]:
    """Application gateways with an address in a network in reach."""
    return _with_address_in_reach(estate, policy, ApplicationGateway)


def _with_address_in_reach(estate: Estate, policy: Policy, kind: type[G]) -> Listing[G]:
    """Those with an address in a network in reach, and the declared firewall; a damaged one adds a problem."""
    networks, damaged = reached_network_ids(estate, policy), list[Observation]()
    listed = throughout(estate, policy, kind)
    near = {
        appliance.id
        for appliance, subnets in readable(listed, lambda item: item.subnet_ids, damaged)
        if is_in(subnets, networks) or _is_declared(appliance.id, policy)
    }
    broken = next((observation.problem for observation in damaged), None)
    in_scope = listed.where(lambda item: item.id in near)
    return Listing(in_scope.target, in_scope.items, in_scope.evidence, in_scope.problem or broken)


def _security_groups(estate: Estate) -> tuple[tuple[str, ...], tuple[Observation, ...]]:
    """Security groups of the cluster's subnets and their interfaces, and the observations that the list rests on."""
    subnets, _ = subnets_of(estate)
    observed = [item.observation.value for item in subnets if item.observation.value is not None]
    damaged: list[Observation] = []
    named = [
        item
        for _, item in readable(observed, lambda subnet: subnet.network_security_group, damaged)
        if item is not None
    ]
    by_subnet, observations = attached(estate)
    on_interfaces = (group for item in by_subnet.values() for group in item.groups.values() if group)
    ids = {item.lower(): item for item in (*(reference.id for reference in named), *on_interfaces)}
    return tuple(ids[key] for key in sorted(ids)), (*observations, *damaged)


def _own_workspaces(estate: Estate, policy: Policy, resources: tuple[str, ...]) -> Iterator[str]:
    """Workspaces of ours that receive logs of these resources, or of each other."""
    ours = (estate.cluster, *network_ids_of(estate))
    waiting = [*_named_workspaces(estate, policy)]
    waiting += [sink for resource in resources for sink in sinks_of(estate, resource)]
    followed: dict[str, str] = {}
    while waiting:
        sink = waiting.pop()
        is_new = sink.lower() not in followed and is_arm_id(sink) and type_of(sink).lower() == WORKSPACES
        if is_new and policy.owns(sink, *ours):
            followed[sink.lower()] = sink
            waiting += sinks_of(estate, sink)
    yield from followed.values()


def _named_workspaces(estate: Estate, policy: Policy) -> Iterator[str]:
    """Workspaces that the cluster, its collection rules, flow logs and monitor scopes name."""
    cluster = cluster_of(estate)
    for _, workspaces in readable(
        [item for item in (cluster.value,) if item is not None], lambda item: item.workspaces, []
    ):
        yield from workspaces
    for rule in collection_rules(estate):
        for _, sinks in readable((rule,), lambda item: item.sinks, []):
            yield from (target for _, target in sinks)
    for _, sinks in readable(values_of(flow_logs(estate, policy)[0]), lambda log: log.sinks, []):
        yield from (target for _, target in sinks)
    yield from members_of(estate, policy)


def sinks_of(estate: Estate, resource: str) -> Iterator[str]:
    """What the diagnostic settings of a resource name as targets."""
    if DIAGNOSTICS in deliveries_of(resource):
        settings = estate.every(DiagnosticSetting, resource)
        for _, sinks in readable(settings, lambda setting: tuple(setting.sinks), []):
            yield from (target for _, target in sinks)


def collected_resources(estate: Estate) -> tuple[tuple[str, ...], tuple[Observation, ...]]:
    """What can have data collection rules: the cluster, its scale sets and its single machines."""
    scale_sets, observations = scale_sets_of(estate), list[Observation]()
    machines = [item.id for item in standing_machines(estate, observations)]
    resources = (estate.cluster, *(item.id for item in scale_sets), *machines)
    return tuple(item for item in resources if COLLECTION_RULES in deliveries_of(item)), (scale_sets, *observations)


def collection_rules(estate: Estate) -> tuple[DataCollectionRule, ...]:
    """The data collection rules of these that were read, each once."""
    rules: dict[str, DataCollectionRule] = {}
    for resource in collected_resources(estate)[0]:
        associations = estate.every(DataCollectionRuleAssociation, resource)
        for _, rule in readable(associations, lambda item: item.data_collection_rule_id, []):
            observed = estate.one(DataCollectionRule, rule) if rule else None
            if observed is not None and observed.value is not None:
                rules[observed.target.lower()] = observed.value
    return tuple(rules.values())


def watchers_here(estate: Estate, policy: Policy) -> Listing[NetworkWatcher]:
    """The network watchers of our subscriptions in the cluster's region."""
    cluster, watchers = cluster_of(estate), in_home_subscriptions(estate, policy, NetworkWatcher)
    region = folded(cluster.value.location) if cluster.value is not None else ""
    here = watchers.where(lambda item: not region or folded(item.location) in {region, ""})
    return Listing(here.target, here.items, (*here.evidence, *cluster.evidence), here.problem or cluster.problem)


@derived
def flow_logs(estate: Estate, policy: Policy) -> tuple[tuple[Lookup[FlowLog], ...], tuple[Observation, ...]]:
    """Flow logs of the networks, their subnets and interfaces, and of the security groups; disabled ones included.

    A network lists its own. Those of subnets, interfaces and security groups are in the list of the watcher alone.
    """
    named = {
        log.id.lower(): log.id for observed in networks_of(estate) if observed.value for log in observed.value.flow_logs
    }
    watchers = watchers_here(estate, policy)
    listed: Listing[FlowLog] = merged(estate.cluster, *(estate.every(FlowLog, item.id) for item in watchers))
    groups, of_groups = _security_groups(estate)
    scopes = (*network_ids_of(estate), *groups, *(item.id for item in scale_sets_of(estate)))
    logs = {key: estate.one(FlowLog, log) for key, log in named.items()}
    for log in listed:
        if log.id.lower() not in logs and _is_about(log, scopes):
            logs[log.id.lower()] = Lookup(log.id, log, log.evidence)
    return tuple(logs[key] for key in sorted(logs)), (watchers, listed, *of_groups)


def _is_about(log: FlowLog, scopes: Iterable[str]) -> bool:
    """Whether the log is about one of these or what is below them; True where its target cannot be read."""
    try:
        target = log.target_resource_id
    except FactDamaged:
        return True
    return not target or any(same_id(target, scope) or is_below(target, scope) for scope in scopes)
