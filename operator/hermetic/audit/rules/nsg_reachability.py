"""Whether a security group stops every packet from one place to another, in either direction.

For machines beside the nodes: a group that stops all packets makes such a machine unreachable. In doubt a group stops
nothing. A deny counts only when it alone covers both ends and every port; partial denies are added up over protocols,
not over addresses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hermetic.api.ip_ranges import Network, unmapped
from hermetic.audit.cluster.members import instance_nics_of, scale_sets_of
from hermetic.audit.cluster.resource_lookup import readable
from hermetic.audit.estate.azure.security_groups import SecurityRule
from hermetic.audit.estate.azure.vnet import ModelNic, NicFields
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation
from hermetic.audit.estate.resource import Reference
from hermetic.audit.model.address_ranges import networks, overlap, space, without
from hermetic.audit.rules.nsg_rules import (
    PROTOCOLS,
    VIRTUAL_NETWORK,
    WILDCARDS,
    Direction,
    in_order,
    is_deny,
    is_for_every_port,
    is_from_every_port,
    protocols_of,
)

# What an allow of may apply to any address of joined networks: the tag may cover a network, its peers and more.
BOTH_ENDS = (*WILDCARDS, VIRTUAL_NETWORK)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Source and destination prefixes: private addresses of joined networks.

    `tag_covers_far_end`: whether the tag VirtualNetwork of the group's own network contains the other end, too. It
    does not contain a peer where the peering says so (see `reach`); the group's own end it always contains.
    """

    sources: tuple[Network, ...]
    destinations: tuple[Network, ...]
    tag_covers_far_end: bool


def stops_all(rules: Iterable[SecurityRule], direction: Direction, traffic: Traffic) -> bool:
    """Whether the rules of one group stop every packet of the traffic."""
    if not traffic.sources or not traffic.destinations:
        return False
    left = set(PROTOCOLS)
    for rule in in_order(rules, direction):
        concerned = left.intersection(protocols_of(rule))
        if is_deny(rule):
            if _covers(rule, direction, traffic):
                left -= concerned
        elif concerned and _touches(rule, traffic):
            return False
        if not left:
            return True
    return False


def _covers(rule: SecurityRule, direction: Direction, traffic: Traffic) -> bool:
    return (
        is_from_every_port(rule)
        and is_for_every_port(rule)
        and _holds(rule.sources, traffic.sources, by_tag=direction == "outbound" or traffic.tag_covers_far_end)
        and _holds(rule.destinations, traffic.destinations, by_tag=direction == "inbound" or traffic.tag_covers_far_end)
    )


def _holds(entries: tuple[str, ...], all_of: tuple[Network, ...], *, by_tag: bool) -> bool:
    wildcards = BOTH_ENDS if by_tag else WILDCARDS
    if any(word.lower() in wildcards for word in entries):
        return True
    return not without(space(all_of), space(networks(entries)))


def _touches(rule: SecurityRule, traffic: Traffic) -> bool:
    return _meets(rule.sources, rule.source_application_security_groups, traffic.sources) and _meets(
        rule.destinations, rule.destination_application_security_groups, traffic.destinations
    )


def _meets(entries: tuple[str, ...], groups: list[Reference] | None, some_of: tuple[Network, ...]) -> bool:
    """Whether an allow may apply to one of these addresses; service tags contain no private address."""
    if groups or not entries or any(word.lower() in BOTH_ENDS for word in entries):
        return True
    return bool(overlap(space(map(unmapped, networks(entries))), space(some_of)))


@dataclass(slots=True)
class Attached:
    """`groups` maps interfaces' security group ids, in lower case, to their spelling; "" for an interface without."""

    groups: dict[str, str] = field(default_factory=dict)
    application_groups: set[str] = field(default_factory=set)


@derived
def attached(estate: Estate) -> tuple[Mapping[str, Attached], tuple[Observation, ...]]:
    """Groups by subnet id in lower case, of instances and models, and the observations that they rest on."""
    attached_by_subnet: dict[str, Attached] = defaultdict(Attached)
    damaged: list[Observation] = []
    models = [
        nic for _, nics in readable(scale_sets_of(estate), lambda scale_set: scale_set.nics, damaged) for nic in nics
    ]
    everything: Iterable[NicFields | ModelNic] = (*models, *instance_nics_of(estate))
    for _, (group, subnets) in readable(everything, _read, damaged):
        for subnet, application_groups in subnets:
            attached_by_subnet[subnet].groups[group.lower()] = group
            attached_by_subnet[subnet].application_groups |= application_groups
    return dict(attached_by_subnet), (scale_sets_of(estate), instance_nics_of(estate), *damaged)


def _read(nic: NicFields | ModelNic) -> tuple[str, list[tuple[str, set[str]]]]:
    group = nic.network_security_group.id if nic.network_security_group else ""
    return group, list(_subnets(nic))


def _subnets(nic: NicFields | ModelNic) -> Iterator[tuple[str, set[str]]]:
    for configuration in nic.ip_configurations:
        if configuration.subnet is not None:
            yield (
                configuration.subnet.id.lower(),
                {group.id.lower() for group in configuration.application_security_groups},
            )
