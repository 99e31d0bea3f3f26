"""Effective rules of a sentinel's interface as Azure reports them: all groups on its way, tags and groups expanded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermetic.audit.checks.family import check_each
from hermetic.audit.checks.nsg.combinations import describe, path
from hermetic.audit.estate.azure.effective import EffectiveGroup, EffectiveGroups
from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, missing
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.evaluation.sentinels import each_sentinel, unless_locked
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import firewall_observations
from hermetic.audit.rules.nsg_rules import Hole, holes, reachable_through, sure
from hermetic.audit.rules.subnet_context import Layers, SubnetContext

Rules = tuple[Hole, ...]


@check_each("nsg-effective", each_sentinel)
def nsg_effective(
    estate: Estate, policy: Policy, around: SubnetContext, nic: NetworkInterface
) -> Iterator[CheckResult]:
    """All groups on a sentinel's way: if its packets get out, those of the nodes in its subnet can."""
    effective_groups = estate.asked(EffectiveGroups, nic.id)
    by_firewall = firewall_observations(estate, policy, around)
    if effective_groups.value is None:
        result = unknown(
            around.id, "RulesNotSeen", f"effective rules of {nic.name} were not answered", effective_groups
        )
        yield unless_locked(estate, policy, nic, effective_groups, result)
    elif by_firewall is not None:
        message = "every default route leads to the declared firewall, which decides"
        yield does_not_apply(around.id, "FirewallDecides", message, effective_groups, *by_firewall)
    else:
        yield _result(around, nic, effective_groups, effective_groups.value.value or [])


def _result(
    around: SubnetContext, nic: NetworkInterface, observation: Lookup[EffectiveGroups], groups: list[EffectiveGroup]
) -> CheckResult:
    unread = [group for group in groups if not group.effective_security_rules]
    is_attached = nic.network_security_group is not None or around.subnet.network_security_group is not None
    if unread or (not groups and is_attached):
        message = f"the effective rules of {nic.name} came without rules, though a security group is attached"
        return unknown(around.id, "NoEffectiveRules", message, observation)
    layers = [holes(group.effective_security_rules or (), around.rule_context) for group in groups]
    if not reachable_through(layers, around.rule_context):
        return passes(around.id, "InternetDenied", f"the effective rules of {nic.name} deny the internet", observation)
    if not reachable_through(sure(layers), around.rule_context):
        message = (
            f"the audit could not see completely whether the effective rules of {nic.name} let packets out to the "
            "internet"
        )
        return unknown(around.id, "RulesNotSeen", message, *_doubts(around, layers), observation)
    message = f"the effective rules of {nic.name} let packets out to the internet: {_first(sure(layers))}"
    paths, fill = (path(around, Layers(())),), {"SENTINEL_NIC_ID": nic.id}
    return fails(around.id, "InternetNotDenied", message, observation, paths=paths, fill=fill)


def _doubts(around: SubnetContext, layers: Sequence[Rules]) -> tuple[Observation, ...]:
    if any(hole.through_the_network_tag for layer in layers for hole in layer) and around.table is not None:
        return (around.table,)
    return (missing(f"{around.id}: effective rules without the deny that every group ends in"),)


def _first(layers: Sequence[Rules]) -> str:
    hole = next((hole for layer in layers for hole in layer), None)
    return describe(hole) if hole is not None else "no group is attached"
