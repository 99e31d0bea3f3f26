"""Whether a security group stops every packet from one place to another, in either direction.

For machines beside the nodes: a group that stops all packets makes such a machine unreachable. In doubt a group stops
nothing. A deny counts only when it alone covers both ends and every port; partial denies are added up over protocols,
not over addresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hermetic.api.ip_ranges import Network
from hermetic.audit.egress.address_ranges import overlap, space, without
from hermetic.audit.egress.nsg_matching import (
    PROTOCOLS,
    Direction,
    in_order,
    is_deny,
    is_for_every_port,
    is_from_every_port,
    protocols_of,
)
from hermetic.audit.egress.prefixes import networks
from hermetic.audit.estate.azure.security_groups import SecurityRule
from hermetic.audit.estate.resource import Reference

# The tag covers a network, its peers and more, so both ends are in it.
BOTH_ENDS = ("*", "any", "virtualnetwork")


@dataclass(frozen=True, slots=True)
class Trip:
    """Source and destination prefixes: private addresses of joined networks."""

    sources: tuple[Network, ...]
    destinations: tuple[Network, ...]


def stops_all(rules: Iterable[SecurityRule], direction: Direction, trip: Trip) -> bool:
    """Whether the rules of one group stop every packet of the trip."""
    if not trip.sources or not trip.destinations:
        return False
    left = set(PROTOCOLS)
    for rule in in_order(rules, direction):
        concerned = left.intersection(protocols_of(rule))
        if is_deny(rule):
            if _covers(rule, trip):
                left -= concerned
        elif concerned and _touches(rule, trip):
            return False
        if not left:
            return True
    return False


def _covers(rule: SecurityRule, trip: Trip) -> bool:
    return (
        is_from_every_port(rule)
        and is_for_every_port(rule)
        and _holds(rule.sources, trip.sources)
        and _holds(rule.destinations, trip.destinations)
    )


def _holds(words: tuple[str, ...], all_of: tuple[Network, ...]) -> bool:
    if any(word.lower() in BOTH_ENDS for word in words):
        return True
    return not without(space(all_of), space(networks(words)))


def _touches(rule: SecurityRule, trip: Trip) -> bool:
    return _meets(rule.sources, rule.source_application_security_groups, trip.sources) and _meets(
        rule.destinations, rule.destination_application_security_groups, trip.destinations
    )


def _meets(words: tuple[str, ...], groups: list[Reference] | None, some_of: tuple[Network, ...]) -> bool:
    """Whether an allow may apply to one of these addresses; service tags contain no private address."""
    if groups or not words or any(word.lower() in BOTH_ENDS for word in words):
        return True
    return bool(overlap(space(networks(words)), space(some_of)))
