"""Whether a security group stops every packet from one place to another, in either direction.

For machines beside the nodes: a group that stops them all makes such a machine unreachable. In doubt nothing stops. A
deny counts when it alone covers both ends and every port; denies in parts are added up over protocols, not addresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hermetic.api.ip_ranges import Network
from hermetic.audit.egress.nsg_matching import is_for_every_port
from hermetic.audit.egress.nsg_rules import PROTOCOLS
from hermetic.audit.egress.prefixes import network, overlap, without
from hermetic.audit.estate.azure.security_groups import SecurityRule
from hermetic.audit.estate.resource import Reference

Direction = Literal["inbound", "outbound"]
EVERY = ("*", "any", "0-65535")
# The tag covers a network, its peers, and more: both ends are in it.
BOTH_ENDS = ("*", "any", "virtualnetwork")


@dataclass(frozen=True, slots=True)
class Trip:
    """From where to where, in private addresses of joined networks."""

    sources: tuple[Network, ...]
    destinations: tuple[Network, ...]


def stops_all(rules: Iterable[SecurityRule], direction: Direction, trip: Trip) -> bool:
    """Whether no packet of the trip gets through one group."""
    if not trip.sources or not trip.destinations:
        return False
    left = set(PROTOCOLS)
    for rule in _in_order(rules, direction):
        concerned = _protocols(rule) & left
        if _is_deny(rule):
            if _covers(rule, trip):
                left -= concerned
        elif concerned and _touches(rule, trip):
            return False
        if not left:
            return True
    return False


def _in_order(rules: Iterable[SecurityRule], direction: Direction) -> list[SecurityRule]:
    """By number, allows first among equals; a rule whose direction is unknown counts when it allows."""
    other = "outbound" if direction == "inbound" else "inbound"
    about = [
        rule
        for rule in rules
        if (rule.direction or "").lower() == direction
        or (not _is_deny(rule) and (rule.direction or "").lower() != other)
    ]
    return sorted(about, key=lambda rule: (_number(rule), _is_deny(rule), rule.name))


def _number(rule: SecurityRule) -> int:
    if rule.priority is not None:
        return rule.priority
    return 1 << 20 if _is_deny(rule) else 0


def _is_deny(rule: SecurityRule) -> bool:
    return (rule.access or "").lower() == "deny"


def _protocols(rule: SecurityRule) -> set[str]:
    said = (rule.protocol or "").lower()
    if said in {"*", "all", "any"}:
        return set(PROTOCOLS)
    if said in PROTOCOLS:
        return {said}
    return set() if _is_deny(rule) else set(PROTOCOLS)


def _covers(rule: SecurityRule, trip: Trip) -> bool:
    from_everywhere = not rule.source_ports or any(one.strip().lower() in EVERY for one in rule.source_ports)
    return (
        from_everywhere
        and is_for_every_port(rule)
        and _holds(rule.sources, trip.sources)
        and _holds(rule.destinations, trip.destinations)
    )


def _holds(words: tuple[str, ...], all_of: tuple[Network, ...]) -> bool:
    if any(word.lower() in BOTH_ENDS for word in words):
        return True
    return not without(all_of, (prefix for word in words if (prefix := network(word)) is not None))


def _touches(rule: SecurityRule, trip: Trip) -> bool:
    return _meets(rule.sources, rule.source_application_security_groups, trip.sources) and _meets(
        rule.destinations, rule.destination_application_security_groups, trip.destinations
    )


def _meets(words: tuple[str, ...], groups: list[Reference] | None, some_of: tuple[Network, ...]) -> bool:
    """Whether an allow may hold for one of these addresses; tags of services hold no private address."""
    if groups or not words or any(word.lower() in BOTH_ENDS for word in words):
        return True
    return bool(overlap((prefix for word in words if (prefix := network(word)) is not None), some_of))
