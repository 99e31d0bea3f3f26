"""Outbound security rules: which of them let a packet out to the internet before another stops it.

One group is one layer. Its rules are read in order of priority. What a deny covers for every port and source of the
subnet is removed, per protocol, for all later rules. A narrower deny removes nothing, and a narrower allow is still a
hole: in doubt a rule counts as open. Every group ends in a default deny of everything, so what is left after the last
rule means that the list is incomplete, and the fate of those packets is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from hermetic.api.ip_ranges import unmapped
from hermetic.audit.estate.azure.security_groups import SecurityRule
from hermetic.audit.estate.resource import Reference
from hermetic.audit.model.address_ranges import (
    ANY_V4,
    ANY_V6,
    Space,
    internet,
    network,
    networks,
    overlap,
    space,
    union,
    without,
)

LAST_PORT = 65535
WILDCARDS = ("*", "any")
PROTOCOLS = ("tcp", "udp", "icmp", "esp", "ah", "other")
Direction = Literal["inbound", "outbound"]
DIRECTIONS: Final = ("inbound", "outbound")
# Service tags of addresses that the host itself answers: such packets do not leave it.
HOST_LOCAL = ("azureloadbalancer", "azureplatformdns", "azureplatformimds", "azureplatformlkm")


@dataclass(frozen=True, slots=True)
class RuleContext:
    """The subnet that rules are evaluated for.

    `sources` are the addresses that its packets come from, empty when not known; `local` those of its virtual network
    and the network's peers. `network_tag_leads_out`: a user-defined default or public route widens the service tag
    VirtualNetwork to the internet; None where the routes were not seen. `application_groups` are the ids, in lower
    case, of the application security groups of its interfaces, None where not known; `prefix_sets` what such groups
    hold beside interfaces.
    """

    sources: Space = ()
    local: Space = ()
    has_v6: bool = False
    network_tag_leads_out: bool | None = False
    application_groups: frozenset[str] | None = None
    prefix_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def held_by(self, groups: Iterable[Reference] | None) -> tuple[str, ...]:
        """Prefixes that these application security groups hold beside interfaces."""
        return tuple(prefix for group in groups or () for prefix in self.prefix_sets.get(group.id.lower(), ()))

    @property
    def internet(self) -> Space:
        """Public addresses that no packet may reach; with IPv6 where the subnet has any."""
        return internet(self.local, with_v6=self.has_v6)


def in_order(rules: Iterable[SecurityRule], direction: Direction) -> list[SecurityRule]:
    """Rules of one direction by priority, allows first where equal; includes rules with an unknown direction."""
    other = "inbound" if direction == "outbound" else "outbound"
    directed_rules = [rule for rule in rules if (rule.direction or "").lower() != other]
    return sorted(directed_rules, key=lambda rule: (_number(rule), is_deny(rule), rule.name))


def is_deny(rule: SecurityRule) -> bool:
    """Whether the access is exactly "deny" and the direction is known; every other rule counts as an allow."""
    return (rule.access or "").lower() == "deny" and (rule.direction or "").lower() in DIRECTIONS


def protocols_of(rule: SecurityRule) -> tuple[str, ...]:
    """The protocols of a rule; for an unknown protocol none of a deny and all of an allow."""
    protocol = (rule.protocol or "").lower()
    if protocol in {*WILDCARDS, "all"}:
        return PROTOCOLS
    if protocol in PROTOCOLS:
        return (protocol,)
    return () if is_deny(rule) else PROTOCOLS


def may_match(rule: SecurityRule, rule_context: RuleContext) -> bool:
    """Whether an allow may match a packet of the subnet by its source."""
    groups = {group.id.lower() for group in rule.source_application_security_groups or ()}
    if groups and (rule_context.application_groups is None or groups & rule_context.application_groups):
        return True
    sources = (*rule.sources, *rule_context.held_by(rule.source_application_security_groups))
    if groups and not sources:
        return False
    prefixes = networks(sources)
    if len(prefixes) < len(sources) or not sources or not rule_context.sources:
        return True
    return bool(overlap(space(map(unmapped, prefixes)), rule_context.sources))


def is_for_every_source(rule: SecurityRule, rule_context: RuleContext) -> bool:
    """Whether a deny holds for every source address of the subnet and every source port."""
    sources = {word.lower() for word in rule.sources}
    if sources & {*WILDCARDS, "virtualnetwork"}:
        return is_from_every_port(rule)
    from_here = bool(rule_context.sources) and not without(rule_context.sources, space(networks(rule.sources)))
    return from_here and is_from_every_port(rule)


def is_from_every_port(rule: SecurityRule) -> bool:
    """Whether a rule holds for every source port, as it does without any."""
    return _covers(rule.source_ports, True)


def is_for_every_port(rule: SecurityRule, port: int | None = None) -> bool:
    """Whether a rule holds for every destination port, or for this one."""
    return _covers(rule.destination_ports, False, port)


def denies_every_machine(rule: SecurityRule, rule_context: RuleContext) -> bool:
    """Whether a deny stops every packet from the subnet to every machine in the network."""
    destinations = {word.lower() for word in rule.destinations}
    is_for_every_protocol = (rule.protocol or "").lower() in {*WILDCARDS, "all"}
    is_whole = is_for_every_protocol and is_for_every_source(rule, rule_context) and is_for_every_port(rule)
    return is_whole and bool(destinations & {*WILDCARDS, "virtualnetwork"})


def is_host_local(word: str) -> bool:
    """Whether it is the service tag of addresses that the host answers."""
    return word.lower() in HOST_LOCAL


def _number(rule: SecurityRule) -> int:
    if rule.priority is not None:
        return rule.priority
    return 1 << 20 if is_deny(rule) else 0  # without a priority a deny sorts last and an allow first


def _covers(ranges: tuple[str, ...], when_none: bool, port: int | None = None) -> bool:
    """Whether the ranges together contain every port, or this one; `when_none` without any range."""
    if not ranges:
        return when_none
    reached = 1 if port is None else port
    goal = LAST_PORT if port is None else port
    for low, high in sorted(_span(port_range) for port_range in ranges):
        if low <= reached <= high:
            reached = high + 1
    return reached > goal


def _span(text: str) -> tuple[int, int]:
    """First and last port; an empty span for text that cannot be read."""
    if text.strip().lower() in WILDCARDS:
        return (0, LAST_PORT)
    low, _, high = text.partition("-")
    try:
        return (int(low), int(high or low))
    except ValueError:
        return (1, 0)


ANYWHERE = ("*", "any", "")
INTERNET, VIRTUAL_NETWORK = "internet", "virtualnetwork"

NOT_ANSWERED = SecurityRule(name="a rule that was not answered")

Reach = dict[str, Space]
"""Open public addresses by protocol."""


@dataclass(frozen=True, slots=True)
class Hole:
    """An allow that packets to the internet reach. `word` is its destination that leads there.

    `is_sure` is False for the tag VirtualNetwork where no route is known to widen it, and for the end of a list
    without a default deny.
    """

    rule: SecurityRule
    reach: Reach
    word: str
    is_sure: bool = True

    @property
    def through_the_network_tag(self) -> bool:
        """Whether it is open only because a user-defined route widens the tag VirtualNetwork."""
        return self.word.lower() == VIRTUAL_NETWORK


def holes(rules: Iterable[SecurityRule], rule_context: RuleContext) -> tuple[Hole, ...]:
    """The allows of one group that let packets of a subnet out to the internet, in order of priority."""
    return tuple(_walk(rules, rule_context))


def reachable_through(layers: Sequence[Sequence[Hole]], rule_context: RuleContext) -> Reach:
    """What passes every layer; everything where there is no layer. Empty means sealed."""
    left: Reach = dict.fromkeys(PROTOCOLS, rule_context.internet)
    for layer in layers:
        left = {protocol: overlap(open_to, _reach(layer, protocol)) for protocol, open_to in left.items()}
    return {protocol: open_to for protocol, open_to in left.items() if open_to}


def sure(layers: Iterable[Iterable[Hole]]) -> tuple[tuple[Hole, ...], ...]:
    """The layers with only the holes that are sure."""
    return tuple(tuple(hole for hole in layer if hole.is_sure) for layer in layers)


def passes_all(hole: Hole, layers: Sequence[Sequence[Hole]], rule_context: RuleContext) -> bool:
    """Whether packets through one hole pass all other layers."""
    through = reachable_through(layers, rule_context)
    return any(overlap(open_to, through.get(protocol, ())) for protocol, open_to in hole.reach.items())


def denies_tag(rules: Iterable[SecurityRule], tag: str, rule_context: RuleContext, port: int | None = None) -> bool:
    """Whether a deny of exactly this service tag precedes every allow of it. No other rule applies to platform tags."""
    for rule in in_order(rules, "outbound"):
        if tag.lower() not in {word.lower() for word in rule.destinations}:
            continue
        if not is_deny(rule):
            if may_match(rule, rule_context):
                return False
        elif is_for_every_source(rule, rule_context) and is_for_every_port(rule, port) and _is_for_tcp_and_udp(rule):
            return True
    return False


def _walk(rules: Iterable[SecurityRule], rule_context: RuleContext) -> Iterator[Hole]:
    left: Reach = dict.fromkeys(PROTOCOLS, rule_context.internet)
    denied_tags: dict[str, set[str]] = {protocol: set() for protocol in PROTOCOLS}
    for rule in in_order(rules, "outbound"):
        if not is_deny(rule):
            if may_match(rule, rule_context):
                yield from _opened(rule, rule_context, left, denied_tags)
        elif is_for_every_source(rule, rule_context) and is_for_every_port(rule):
            denied = _taken(rule, rule_context)
            for protocol in protocols_of(rule):
                left[protocol] = without(left[protocol], denied)
                denied_tags[protocol] |= {word.lower() for word in rule.destinations}
    undecided = {protocol: open_to for protocol, open_to in left.items() if open_to}
    if undecided:
        yield Hole(NOT_ANSWERED, undecided, "*", is_sure=False)


def _opened(rule: SecurityRule, rule_context: RuleContext, left: Reach, denied: dict[str, set[str]]) -> Iterator[Hole]:
    for word in _destinations(rule, rule_context):
        allowed = _allowed(word, rule_context)
        reach = {
            protocol: overlap(allowed, left[protocol])
            for protocol in protocols_of(rule)
            if not _is_denied_tag(word, denied[protocol])
        }
        reach = {protocol: open_to for protocol, open_to in reach.items() if open_to}
        if reach:
            is_sure = word.lower() != VIRTUAL_NETWORK or rule_context.network_tag_leads_out is True
            yield Hole(rule, reach, word, is_sure)


def _destinations(rule: SecurityRule, rule_context: RuleContext) -> tuple[str, ...]:
    """The destinations of an allow; "*" where it has none and no application security group."""
    groups = rule.destination_application_security_groups
    if rule.destinations or groups:
        return (*rule.destinations, *rule_context.held_by(groups))
    return ("*",)


def _allowed(word: str, rule_context: RuleContext) -> Space:
    """Public addresses that an allow to this word may reach; all of them for a service tag of unknown prefixes."""
    lowered = word.lower()
    if lowered in ANYWHERE or lowered == INTERNET:
        return rule_context.internet
    if lowered == VIRTUAL_NETWORK:
        return () if rule_context.network_tag_leads_out is False else rule_context.internet
    if is_host_local(lowered):
        return ()
    prefix = network(word)
    return rule_context.internet if prefix is None else overlap(space((unmapped(prefix),)), rule_context.internet)


def _taken(rule: SecurityRule, rule_context: RuleContext) -> Space:
    """Public addresses that a deny is sure to stop; none for a service tag of unknown prefixes."""
    return union(span for word in rule.destinations for span in _taken_by(word, rule_context))


def _taken_by(word: str, rule_context: RuleContext) -> Space:
    lowered, prefix = word.lower(), network(word)
    if lowered in ("*", "any"):
        return space((ANY_V4, ANY_V6))
    if lowered == INTERNET:
        return rule_context.internet
    return space((prefix,)) if prefix is not None else ()


def _is_denied_tag(word: str, denied: set[str]) -> bool:
    """Whether the tag, or the tag that contains it, is denied: Storage.WestEurope lies inside Storage."""
    tag = word.lower()
    return network(word) is None and (tag in denied or tag.split(".")[0] in denied)


def _is_for_tcp_and_udp(rule: SecurityRule) -> bool:
    return {"tcp", "udp"} <= set(protocols_of(rule))


def _reach(layer: Sequence[Hole], protocol: str) -> Space:
    return union(span for hole in layer for span in hole.reach.get(protocol, ()))
