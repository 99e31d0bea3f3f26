"""Configurations of Virtual Network Manager that are applied to the networks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import subnets_of
from hermetic.audit.cluster.resource_lookup import readable
from hermetic.audit.estate.arm_ids import is_below, name_of
from hermetic.audit.estate.azure.graph import AdminRulesInGraph, ConnectivityInGraph
from hermetic.audit.estate.azure.network_manager import (
    AdminRuleCollection,
    EffectiveAdminRules,
    EffectiveConnectivity,
    HeldAdminRule,
    SecurityAdminRule,
)
from hermetic.audit.estate.azure.vnet import VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, is_locked
from hermetic.audit.evaluation.each_resource import each_network
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import firewall_observations
from hermetic.audit.rules.network_manager import is_group, leads_out, pages_of
from hermetic.audit.rules.nsg_rules import VIRTUAL_NETWORK
from hermetic.audit.rules.subnet_context import surroundings

_SNAPSHOT = re.compile(r"/snapshots/[^/]+/?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Applied:
    """Configurations applied to a network (ids without the snapshot), the rows that name them, unreadable rows.

    The index has one row per network, which names the deployed snapshots. It lags, and omits what the caller may not
    read: a row proves that something is applied, its absence proves nothing. So findings here are about the
    configuration, and the network itself stays Unknown.
    """

    configurations: tuple[str, ...]
    observations: tuple[Observation, ...]
    damaged: tuple[Observation, ...]


def applied_in_graph(estate: Estate, kind: type[ConnectivityInGraph | AdminRulesInGraph], network: str) -> Applied:
    """The configurations that the rows of this network name."""
    damaged: list[Observation] = []
    rows = list(readable(estate.every(kind, network), lambda row: row.applied, damaged))
    configuration_ids = {_SNAPSHOT.sub("", configuration.id): None for _, applied in rows for configuration in applied}
    return Applied(tuple(configuration_ids), tuple(row for row, _ in rows), tuple(damaged))


def rules_of(estate: Estate, configuration: str) -> tuple[tuple[HeldAdminRule, ...], tuple[Observation, ...]]:
    """The current admin rules of a configuration; those of the deployed snapshot may differ."""
    collections = estate.every(AdminRuleCollection, configuration)
    listings = [estate.every(HeldAdminRule, collection.id) for collection in collections]
    return tuple(rule for listing in listings for rule in listing), (collections, *listings)


MANAGER = re.compile(
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.Network/networkManagers/([^/]+)/.+",
    re.IGNORECASE,
)


@check_each("avnm-connectivity", each_network)
def avnm_connectivity(estate: Estate, _policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """A mesh or hub configuration joins networks without a visible peering."""
    pages, observations = pages_of(estate, EffectiveConnectivity, network.target)
    applied = [configuration for page in pages for configuration in page.value or ()]
    if applied:
        names = ", ".join(configuration.id or "not named" for configuration in applied)
        yield fails(
            network.target,
            "ConnectivityApplied",
            f"Network Manager joins this network with others: {names}",
            *observations,
            paths=(path_of(hops.vnet(name_of(network.target)), hops.peer("peer vnet by network manager")),),
            fill=_named(estate, network.target, [configuration.id for configuration in applied]),
        )
    else:
        yield passes(network.target, "NothingApplied", "no connectivity configuration is applied", *observations)
        if is_locked(observations[0]):
            yield from _joined_behind_the_lock(estate, network.target)


@check_each("avnm-admin-rules", each_network)
def avnm_admin_rules(estate: Estate, policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """An admin rule that allows is evaluated before every security group."""
    pages, observations = pages_of(estate, EffectiveAdminRules, network.target)
    yield passes(network.target, "NoAdminAllow", "no admin rule allows packets to the internet", *observations)
    rules = [rule for page in pages for rule in page.value or ()]
    for rule in rules:
        yield from _filled(estate, network.target, rule, _rule(network.target, network.target, rule, observations))
    through_the_tag = [rule for rule in rules if _always_allows_the_network_tag(rule)]
    if through_the_tag:
        yield from _widened(estate, policy, network.target, network.target, through_the_tag, observations)
    if is_locked(observations[0]):
        yield from _rules_behind_the_lock(estate, policy, network.target)


def _joined_behind_the_lock(estate: Estate, network: str) -> Iterator[CheckResult]:
    applied = applied_in_graph(estate, ConnectivityInGraph, network)
    yield from _damaged(estate, network, applied)
    for configuration in applied.configurations:
        message = f"Network Manager joins {name_of(network)} with others: {name_of(configuration)}"
        path = path_of(hops.vnet(name_of(network)), hops.peer("peer vnet by network manager"))
        fill = _named(estate, network, [configuration])
        yield fails(configuration, "ConnectivityApplied", message, *applied.observations, paths=(path,), fill=fill)


def _rules_behind_the_lock(estate: Estate, policy: Policy, network: str) -> Iterator[CheckResult]:
    applied = applied_in_graph(estate, AdminRulesInGraph, network)
    yield from _damaged(estate, network, applied)
    for configuration in applied.configurations:
        rules, rule_observations = rules_of(estate, configuration)
        observations = (*applied.observations, *rule_observations)
        message = (
            f"{name_of(configuration)} is applied to {name_of(network)}, and the rules of the deployed "
            "snapshot were not seen"
        )
        yield unknown(configuration, "SnapshotNotSeen", message, *observations)
        for rule in rules:
            yield from whatever_is_damaged(rule.id, _held(estate, policy, network, rule, observations))


def _held(
    estate: Estate, policy: Policy, network: str, rule: SecurityAdminRule, observations: tuple[Observation, ...]
) -> Iterator[CheckResult]:
    yield from _filled(estate, network, rule, _rule(rule.id, network, rule, observations))
    if _always_allows_the_network_tag(rule):
        yield from _widened(estate, policy, rule.id, network, [rule], observations)


def _filled(
    estate: Estate, network: str, rule: SecurityAdminRule, results: Iterable[CheckResult]
) -> Iterator[CheckResult]:
    fill = _named(estate, network, [rule.id]) | ({"ADMIN_RULE_ID": [rule.id]} if MANAGER.fullmatch(rule.id) else {})
    yield from (replace(result, fill=fill) for result in results)


def _named(estate: Estate, network: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """Remedy values: the managers of these configurations and rules, each once, and the region to deploy to."""
    managers = dict.fromkeys(match.groups() for resource_id in ids if (match := MANAGER.fullmatch(resource_id)))
    names = ("MANAGER_SUBSCRIPTION", "MANAGER_GROUP", "MANAGER_NAME")
    fill = {name: list(values) for name, values in zip(names, zip(*managers, strict=True), strict=False)}
    virtual_network = estate.one(VirtualNetwork, network).value
    return fill | (
        {"LOCATION": [virtual_network.location]} if virtual_network is not None and virtual_network.location else {}
    )


def _damaged(estate: Estate, network: str, applied: Applied) -> Iterator[CheckResult]:
    if applied.damaged:
        message = f"the audit could not read what is applied to {name_of(network)} according to Resource Graph"
        yield unknown(estate.cluster, "RowNotReadable", message, *applied.damaged)


def _rule(
    resource: str, network: str, rule: SecurityAdminRule, observations: tuple[Observation, ...]
) -> Iterator[CheckResult]:
    name, access, direction = rule.id or "not named", (rule.access or "").lower(), (rule.direction or "").lower()
    if direction == "inbound" or access == "deny":
        return
    if not leads_out(rule):
        if access != "allow" and any(is_group(destination) for destination in rule.destinations or ()):
            explanation = (
                f"admin rule {name}: {rule.access} to a network group, whose prefixes may be public, was not read"
            )
            yield unknown(resource, "NetworkGroupNotRead", explanation, *observations)
        return
    if direction == "outbound" and access in {"allow", "alwaysallow"}:
        yield fails(
            resource,
            "AdminRuleAllows",
            f"admin rule {name}: {rule.access} outbound to public addresses",
            *observations,
            paths=(path_of(hops.vnet(name_of(network)), f"admin rule {name_of(name)}", INTERNET),),
        )
    else:
        message = f"admin rule {name}: access {rule.access!r}, direction {rule.direction!r} are not known"
        yield unknown(resource, "AdminRuleUnknown", message, *observations)


def _always_allows_the_network_tag(rule: SecurityAdminRule) -> bool:
    """AlwaysAllow only: after Allow the security groups still decide, and their checks evaluate the same tag."""
    prefixes = {(destination.address_prefix or "").strip().lower() for destination in rule.destinations or ()}
    is_inbound = (rule.direction or "").lower() == "inbound"
    return not is_inbound and (rule.access or "").lower() == "alwaysallow" and VIRTUAL_NETWORK in prefixes


def _widened(
    estate: Estate,
    policy: Policy,
    resource: str,
    network: str,
    rules: Sequence[SecurityAdminRule],
    observations: tuple[Observation, ...],
) -> Iterator[CheckResult]:
    """The tag includes the destinations of user-defined routes, as in a security group."""
    names = ", ".join(name_of(rule.id or "not named") for rule in rules)
    unseen = f"admin rule {names} always allows VirtualNetwork, and the audit could not see what widens the tag"
    for scoped in (scoped for scoped in subnets_of(estate)[0] if is_below(scoped.id, network)):
        if scoped.observation.value is None:
            yield unknown(resource, "SubnetNotSeen", unseen, scoped.observation)
            continue
        around = surroundings(estate, scoped, scoped.observation.value)
        if firewall_observations(estate, policy, around) is not None:
            continue  # the tag leads to the declared firewall, which decides
        if around.rule_context.network_tag_leads_out is None:
            yield unknown(resource, "RoutesNotSeen", unseen, *((around.table,) if around.table else ()), *observations)
        elif around.rule_context.network_tag_leads_out:
            message = f"admin rule {names} always allows VirtualNetwork, which holds the internet for subnet"
            message += f" {name_of(scoped.id)}: a user-defined route to a default or public prefix widens the tag"
            path = path_of(hops.subnet(name_of(scoped.id)), f"admin rule {names}", INTERNET)
            yield fails(resource, "AdminRuleAllows", message, *observations, paths=(path,))
