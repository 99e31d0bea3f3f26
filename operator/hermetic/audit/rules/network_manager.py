"""What Virtual Network Manager applies to a network. Both lists are paged by a token in the request's body."""

from __future__ import annotations

from typing import TypeVar

from hermetic.audit.estate.azure.network_manager import (
    AdminAddress,
    EffectiveAdminRules,
    EffectiveConnectivity,
    SecurityAdminRule,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, missing
from hermetic.audit.model.address_ranges import is_public, overlap, space
from hermetic.audit.model.address_ranges import network as prefix_of
from hermetic.audit.rules.nsg_reachability import BOTH_ENDS, Traffic
from hermetic.audit.rules.nsg_rules import VIRTUAL_NETWORK, Direction

INWARD_TAGS = {VIRTUAL_NETWORK, "azureloadbalancer"}
P = TypeVar("P", EffectiveConnectivity, EffectiveAdminRules)


def pages_of(estate: Estate, kind: type[P], network: str) -> tuple[list[P], tuple[Observation, ...]]:
    """All pages, and the observations; a page without its list, or a repeated token, adds a missing one."""
    pages: list[P] = []
    observations: list[Observation] = []
    tokens: set[str] = set()
    token: str | None = ""
    while token is not None:
        observation = estate.asked(kind, network, {"skipToken": token} if token else {})
        observations.append(observation)
        page = observation.value
        if page is None:
            break
        pages.append(page)
        if page.value is None:
            observations.append(missing(f"{network}: the answer of {kind.ACTION} has no list"))
        token = page.skip_token or None
        if token in tokens:
            observations.append(missing(f"{network}: {kind.ACTION} goes round in circles"))
            break
        tokens.add(token or "")
    return pages, tuple(observations)


def overrides_groups(
    estate: Estate, network: str, direction: Direction, traffic: Traffic
) -> tuple[bool, tuple[Observation, ...]]:
    """Whether an admin rule of this network lets packets of the traffic pass whatever a security group denies.

    AlwaysAllow ends the evaluation before any group (learn.microsoft.com/azure/virtual-network-manager/
    concept-security-admins). Sources are not compared, nor denies of a higher priority: in doubt a rule applies.
    """
    pages, observations = pages_of(estate, EffectiveAdminRules, network)
    rules = [rule for page in pages for rule in page.value or ()]
    return any(_may_always_allow(rule, direction, traffic) for rule in rules), observations


def rules_past_groups(
    estate: Estate, network: str, *, network_tag_leads_out: bool | None
) -> tuple[tuple[SecurityAdminRule, ...], tuple[Observation, ...]]:
    """The admin rules of a network that may let packets out to public addresses whatever a security group denies.

    `network_tag_leads_out`: whether user-defined routes widen the tag VirtualNetwork, None where they were not seen.
    A destination that may be public, and is not known to be, adds a missing observation.
    """
    pages, observations = pages_of(estate, EffectiveAdminRules, network)
    rules = [rule for page in pages for rule in page.value or () if _precedes_groups(rule, "outbound")]
    opening = tuple(rule for rule in rules if leads_out(rule) or (network_tag_leads_out and _names_network_tag(rule)))
    doubted = [
        rule
        for rule in rules
        if any(is_group(to) for to in rule.destinations or ())
        or (network_tag_leads_out is None and _names_network_tag(rule))
    ]
    message = f"{network}: it is not known whether the destinations of an admin rule that always allows are public"
    return opening, (*observations, *((missing(message),) if doubted else ()))


def _precedes_groups(rule: SecurityAdminRule, direction: Direction) -> bool:
    """Whether it may decide before any group: it is not known to be of the other direction, nor to do less."""
    other = "inbound" if direction == "outbound" else "outbound"
    return (rule.direction or "").lower() != other and (rule.access or "").lower() not in {"allow", "deny"}


def _names_network_tag(rule: SecurityAdminRule) -> bool:
    return any(
        (destination.address_prefix or "").strip().lower() == VIRTUAL_NETWORK for destination in rule.destinations or ()
    )


def leads_out(rule: SecurityAdminRule) -> bool:
    """Whether a destination is public; a rule without destinations applies to all."""
    return not rule.destinations or any(_is_public(destination) for destination in rule.destinations)


def _is_public(address: AdminAddress) -> bool:
    word = (address.address_prefix or "").strip()
    prefix = prefix_of(word)
    if prefix is not None:
        return is_public(prefix)
    return word.lower() not in INWARD_TAGS and not is_group(address)


def is_group(address: AdminAddress) -> bool:
    """Whether it stands for the address space of all member networks, which no other answer shows."""
    return (address.address_prefix_type or "").lower() == "networkgroup"


def _may_always_allow(rule: SecurityAdminRule, direction: Direction, traffic: Traffic) -> bool:
    if not _precedes_groups(rule, direction):
        return False
    return not rule.destinations or any(_may_be_one_of(destination, traffic) for destination in rule.destinations)


def _may_be_one_of(address: AdminAddress, traffic: Traffic) -> bool:
    """Whether a destination may contain one of the traffic's.

    Of the service tags only VirtualNetwork has private addresses.
    """
    word = (address.address_prefix or "").strip()
    prefix = prefix_of(word)
    if prefix is not None:
        return not traffic.destinations or bool(overlap(space((prefix,)), space(traffic.destinations)))
    is_tag = (address.address_prefix_type or "").lower() == "servicetag"
    return not is_tag or word.lower() in BOTH_ENDS
