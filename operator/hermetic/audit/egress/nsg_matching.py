"""Whether a security rule applies to packets of a subnet: direction, priority, source, ports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from hermetic.audit.egress.address_ranges import Space, internet, overlap, space, without
from hermetic.audit.egress.prefixes import networks
from hermetic.audit.estate.azure.security_groups import SecurityRule

LAST_PORT = 65535
WILDCARDS = ("*", "any")
PROTOCOLS = ("tcp", "udp", "icmp", "esp", "ah", "other")
Direction = Literal["inbound", "outbound"]
DIRECTIONS: Final = ("inbound", "outbound")
# Service tags of addresses that the host itself answers: such packets do not leave it.
HOST_LOCAL = ("azureloadbalancer", "azureplatformdns", "azureplatformimds", "azureplatformlkm")


@dataclass(frozen=True, slots=True)
class Ground:
    """The subnet that rules are evaluated for.

    `sources` are the addresses that its packets come from, empty when not known; `local` those of its virtual network
    and the network's peers. `network_tag_leads_out`: a user-defined default or public route widens the service tag
    VirtualNetwork to the internet; None where the routes were not seen. `application_groups` are the ids, in lower
    case, of the application security groups of its interfaces.
    """

    sources: Space = ()
    local: Space = ()
    has_v6: bool = False
    network_tag_leads_out: bool | None = False
    application_groups: frozenset[str] = frozenset()

    @property
    def internet(self) -> Space:
        """Public addresses that no packet may reach; with IPv6 where the subnet has any."""
        return internet(self.local, with_v6=self.has_v6)


def in_order(rules: Iterable[SecurityRule], direction: Direction) -> list[SecurityRule]:
    """Rules of one direction by priority, allows first where equal; includes rules with an unknown direction."""
    other = "inbound" if direction == "outbound" else "outbound"
    found = [rule for rule in rules if (rule.direction or "").lower() != other]
    return sorted(found, key=lambda rule: (_number(rule), is_deny(rule), rule.name))


def is_deny(rule: SecurityRule) -> bool:
    """Whether the access is exactly "deny" and the direction is known; every other rule counts as an allow."""
    return (rule.access or "").lower() == "deny" and (rule.direction or "").lower() in DIRECTIONS


def protocols_of(rule: SecurityRule) -> tuple[str, ...]:
    """The protocols of a rule; for an unknown protocol none of a deny and all of an allow."""
    said = (rule.protocol or "").lower()
    if said in {*WILDCARDS, "all"}:
        return PROTOCOLS
    if said in PROTOCOLS:
        return (said,)
    return () if is_deny(rule) else PROTOCOLS


def may_match(rule: SecurityRule, ground: Ground) -> bool:
    """Whether an allow may match a packet of the subnet by its source."""
    groups = {one.id.lower() for one in rule.source_application_security_groups or ()}
    if groups and not rule.sources:
        return bool(groups & ground.application_groups)
    prefixes = networks(rule.sources)
    if len(prefixes) < len(rule.sources) or not rule.sources or not ground.sources:
        return True
    return bool(overlap(space(prefixes), ground.sources))


def is_for_every_source(rule: SecurityRule, ground: Ground) -> bool:
    """Whether a deny holds for every source address of the subnet and every source port."""
    said = {word.lower() for word in rule.sources}
    if said & {*WILDCARDS, "virtualnetwork"}:
        return is_from_every_port(rule)
    from_here = bool(ground.sources) and not without(ground.sources, space(networks(rule.sources)))
    return from_here and is_from_every_port(rule)


def is_from_every_port(rule: SecurityRule) -> bool:
    """Whether a rule holds for every source port, as it does without any."""
    return _covers(rule.source_ports, True)


def is_for_every_port(rule: SecurityRule, port: int | None = None) -> bool:
    """Whether a rule holds for every destination port, or for this one."""
    return _covers(rule.destination_ports, False, port)


def denies_every_machine(rule: SecurityRule, ground: Ground) -> bool:
    """Whether a deny stops every packet from the subnet to every machine in the network."""
    said = {word.lower() for word in rule.destinations}
    is_for_every_protocol = (rule.protocol or "").lower() in {*WILDCARDS, "all"}
    is_whole = is_for_every_protocol and is_for_every_source(rule, ground) and is_for_every_port(rule)
    return is_whole and bool(said & {*WILDCARDS, "virtualnetwork"})


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
    for low, high in sorted(_span(one) for one in ranges):
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
