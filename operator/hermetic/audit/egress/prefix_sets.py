"""Addresses that application security groups hold beside interfaces: of pods, or of anything else.

An address prefix set is a child of such a group (Microsoft.Network 2025-09-01, `az network asg address-prefix-set`). No
document limits its prefixes to private ones. They count in rules that allow, and are not credited to rules that deny.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hermetic.audit.cluster_scope import missing
from hermetic.audit.egress.nsg_rules import in_order, is_deny
from hermetic.audit.egress.resource_lookup import each_of
from hermetic.audit.estate.azure.security_groups import AddressPrefixSet, SecurityGroup
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation


def prefix_sets(
    estate: Estate, groups: Iterable[SecurityGroup]
) -> tuple[Mapping[str, tuple[str, ...]], tuple[Observation, ...]]:
    """Prefixes by application security group, by id in lower case, of those that outbound allows of `groups` name."""
    unread: list[Observation] = []  # whatever evaluates these rules meets the same damage
    named = {one.lower(): one for one in each_of(groups, _named, unread)}
    found: dict[str, tuple[str, ...]] = {}
    observations: list[Observation] = []
    for key, group in sorted(named.items()):
        sets = estate.every(AddressPrefixSet, group)
        observations.append(sets)
        observations += (missing(f"{one.id}: the answer has no prefixes") for one in sets if not one.address_prefixes)
        found[key] = tuple(prefix for one in sets for prefix in one.address_prefixes or ())
    return {key: held for key, held in found.items() if held}, tuple(observations)


def _named(group: SecurityGroup) -> Iterator[str]:
    for rule in in_order(group.rules, "outbound"):
        if not is_deny(rule):
            yield from (one.id for one in rule.application_security_groups)
