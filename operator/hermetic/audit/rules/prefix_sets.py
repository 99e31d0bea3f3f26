"""Addresses that application security groups hold beside interfaces: of pods, or of anything else.

An address prefix set is a child of such a group (Microsoft.Network 2025-09-01, `az network asg address-prefix-set`). No
document limits its prefixes to private ones. They count in rules that allow, and are not credited to rules that deny.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hermetic.audit.cluster.resource_lookup import each_of
from hermetic.audit.estate.azure.security_groups import AddressPrefixSet, SecurityGroup
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, not_answered
from hermetic.audit.rules.nsg_rules import in_order, is_deny


def prefix_sets(
    estate: Estate, groups: Iterable[SecurityGroup]
) -> tuple[Mapping[str, tuple[str, ...]], tuple[Observation, ...]]:
    """Prefixes by application security group, by id in lower case, of those that outbound allows of `groups` name."""
    unread: list[Observation] = []  # whatever evaluates these rules meets the same damage
    named = {group_id.lower(): group_id for group_id in each_of(groups, _named, unread)}
    prefixes_by_group: dict[str, tuple[str, ...]] = {}
    observations: list[Observation] = []
    for key, group in sorted(named.items()):
        sets = estate.every(AddressPrefixSet, group)
        observations.append(sets)
        observations += (
            not_answered(prefix_set.id, "prefixes") for prefix_set in sets if not prefix_set.address_prefixes
        )
        prefixes_by_group[key] = tuple(prefix for prefix_set in sets for prefix in prefix_set.address_prefixes or ())
    return {key: prefixes for key, prefixes in prefixes_by_group.items() if prefixes}, tuple(observations)


def _named(group: SecurityGroup) -> Iterator[str]:
    for rule in in_order(group.rules, "outbound"):
        if not is_deny(rule):
            yield from (group.id for group in rule.application_security_groups)
