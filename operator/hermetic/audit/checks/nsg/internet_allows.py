"""Rules that allow the internet before any deny. Findings name the group that has the rule, which is what to change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hermetic.audit.checks.family import check
from hermetic.audit.checks.nsg.combinations import describe, each_surrounded, path
from hermetic.audit.cluster.resource_lookup import interfaces_in_the_networks, readable
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.azure.vnet import NicFields
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, PUBLIC_IP, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import firewall_observations
from hermetic.audit.rules.nsg_rules import (
    NOT_ANSWERED,
    Hole,
    denies_every_machine,
    holes,
    in_order,
    is_deny,
    may_match,
    passes_all,
    sure,
)
from hermetic.audit.rules.prefix_sets import prefix_sets
from hermetic.audit.rules.subnet_context import Layers, SubnetContext

FIRST_DEFAULT_RULE = 65000


@dataclass(slots=True)
class UsedGroup:
    """A group and the subnets and layers that use it. `by_firewall` holds those where the declared firewall decides."""

    observation: Lookup[SecurityGroup]
    contexts: list[tuple[SubnetContext, Layers]] = field(default_factory=list)
    by_firewall: list[tuple[Observation, ...]] = field(default_factory=list)


@check("nsg-broad-allow")
def nsg_broad_allow(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Each group once: it passes only if none of its subnets fails."""
    used: dict[str, UsedGroup] = {}

    def gathered(around: SubnetContext) -> Iterator[CheckResult]:
        by_firewall = firewall_observations(estate, policy, around)
        for layers in around.combinations:
            for security_group in layers.groups:
                use = used.setdefault(security_group.target.lower(), UsedGroup(security_group))
                if by_firewall is None:
                    use.contexts.append((around, layers))
                else:
                    use.by_firewall.append(by_firewall)
        if not any(layers.groups for layers in around.combinations):
            yield does_not_apply(
                around.id, "NoSecurityGroup", "it has no rule to evaluate", around.subnet, *around.observations
            )

    yield from each_surrounded(estate, policy, gathered)
    exposed, observations = _exposed_groups(estate, policy)
    for _, group in sorted(used.items()):
        yield from whatever_is_damaged(group.observation.target, _results(estate, group, exposed, observations))


def _results(
    estate: Estate, group: UsedGroup, exposed: frozenset[str], observations: tuple[Observation, ...]
) -> Iterator[CheckResult]:
    security_group = group.observation
    if security_group.value is None:
        yield unknown(
            security_group.target, "SecurityGroupNotSeen", "the security group could not be read", security_group
        )
    elif not group.contexts:
        rests_on = (observation for by_firewall in group.by_firewall for observation in by_firewall)
        message = "every default route behind it leads to the declared firewall, which decides"
        yield does_not_apply(security_group.target, "FirewallDecides", message, security_group, *rests_on)
    else:
        for around, layers in group.contexts:
            yield from _holes(security_group, security_group.value, around, layers)
        yield from _to_exposed_machines(security_group, security_group.value, group.contexts, exposed)
        needed = observations if _names_application_groups(security_group.value) else ()
        needed = (*needed, *prefix_sets(estate, (security_group.value,))[1])
        yield passes(
            security_group.target,
            "NoBroadAllow",
            "no rule of ours allows the internet before a deny",
            security_group,
            *needed,
        )


def _holes(
    observation: Lookup[SecurityGroup], group: SecurityGroup, around: SubnetContext, layers: Layers
) -> Iterator[CheckResult]:
    everyone = around.holes_of(layers)
    for hole in holes(group.rules, around.rule_context):
        if _is_by_default(hole) or hole.through_the_network_tag:
            continue  # reported by nsg-internet-deny for the subnet
        is_open = passes_all(hole, sure(everyone), around.rule_context)
        if not is_open and passes_all(hole, everyone, around.rule_context):
            message = f"{describe(hole)}: the audit could not see completely whether another layer seals it"
            yield unknown(observation.target, "RulesNotSeen", message, *around.doubts(layers))
            continue
        message = "nothing else stops it" if is_open else "another layer seals it: a single change opens it"
        yield fails(
            observation.target,
            "BroadAllow" if is_open else "BroadAllowUnderSeal",
            f"{describe(hole)} for subnet {name_of(around.id)}; {message}",
            observation,
            paths=(path(around, layers),) if is_open else (),
            severity=None if is_open else Severity.MEDIUM,
            fill={"RULE_NAME": hole.rule.name},
        )


def _is_by_default(hole: Hole) -> bool:
    return hole.rule is NOT_ANSWERED or (hole.rule.priority or 0) >= FIRST_DEFAULT_RULE


def _to_exposed_machines(
    observation: Lookup[SecurityGroup],
    group: SecurityGroup,
    contexts: Iterable[tuple[SubnetContext, Layers]],
    exposed: frozenset[str],
) -> Iterator[CheckResult]:
    """An allow to an application security group with a publicly addressed machine: one hop to the internet."""
    for around, _ in contexts:
        for rule in in_order(group.rules, "outbound"):
            if is_deny(rule):
                if denies_every_machine(rule, around.rule_context):
                    break
                continue
            named = {
                application_group.id.lower(): application_group.id
                for application_group in rule.destination_application_security_groups or ()
            }
            for group_id in sorted(named.keys() & exposed):
                if may_match(rule, around.rule_context):
                    message = (
                        f"rule {rule.name} ({rule.priority}) allows {named[group_id]}: machines with public addresses"
                    )
                    machine = path_of(
                        hops.subnet(name_of(around.id)),
                        hops.machine(f"machine of {name_of(group_id)}"),
                        PUBLIC_IP,
                        INTERNET,
                    )
                    fill = {"RULE_NAME": rule.name}
                    yield fails(
                        observation.target, "AllowToExposedMachines", message, observation, paths=(machine,), fill=fill
                    )


def _names_application_groups(group: SecurityGroup) -> bool:
    return any(rule.destination_application_security_groups for rule in group.rules)


def _exposed_groups(estate: Estate, policy: Policy) -> tuple[frozenset[str], tuple[Observation, ...]]:
    """Ids, in lower case, of application security groups with a member that has a public address."""
    interfaces, observations = interfaces_in_the_networks(estate, policy)
    damaged: list[Observation] = []
    members_by_group: defaultdict[str, set[str]] = defaultdict(set)
    for nic, groups in readable(interfaces, _groups_if_public, damaged):
        for group in groups:
            members_by_group[group].add(nic.id)
    return frozenset(members_by_group), (*observations, *damaged)


def _groups_if_public(nic: NicFields) -> set[str]:
    if not any(configuration.public_ip_address is not None for configuration in nic.ip_configurations):
        return set()
    return {
        group.id.lower()
        for configuration in nic.ip_configurations
        for group in configuration.application_security_groups
    }
