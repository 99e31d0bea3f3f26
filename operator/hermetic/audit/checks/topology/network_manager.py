"""What Virtual Network Manager applies from outside. Both lists page by a token in the request's body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from hermetic.audit.egress.prefixes import network as prefix_of
from hermetic.audit.egress.prefixes import public_part
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.network_manager import (
    AdminAddress,
    AdminRule,
    EffectiveAdminRules,
    EffectiveConnectivity,
)
from hermetic.audit.estate.azure.vnet import VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.look import Look, Seen
from hermetic.audit.judging import Judgement, cannot_say, fails, passes
from hermetic.audit.policy import Policy
from hermetic.audit.reach import each_network
from hermetic.audit.scope import missing

P = TypeVar("P", EffectiveConnectivity, EffectiveAdminRules)

INWARD_TAGS = {"virtualnetwork", "azureloadbalancer"}


def connectivity(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A mesh or hub joins networks without any peering that could be seen."""

    def judge(network: Seen[VirtualNetwork]) -> Iterator[Judgement]:
        pages, looks = _pages(estate, EffectiveConnectivity, network.target)
        applied = [one for page in pages for one in page.value or ()]
        if applied:
            names = ", ".join(one.id or "not named" for one in applied)
            yield fails(
                network.target,
                "ConnectivityApplied",
                f"Network Manager joins this network with others: {names}",
                *looks,
                paths=(f"vnet {name_of(network.target)} -> peer vnet by network manager",),
            )
        else:
            yield passes(network.target, "NothingApplied", "no connectivity configuration is applied", *looks)

    yield from each_network(estate, judge)


def admin_rules(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """An admin rule that allows is read before every security group."""

    def judge(network: Seen[VirtualNetwork]) -> Iterator[Judgement]:
        pages, looks = _pages(estate, EffectiveAdminRules, network.target)
        yield passes(network.target, "NoAdminAllow", "no admin rule allows packets to the internet", *looks)
        for rule in (rule for page in pages for rule in page.value or ()):
            yield from _rule(network.target, rule, looks)

    yield from each_network(estate, judge)


def _rule(network: str, rule: AdminRule, looks: tuple[Look, ...]) -> Iterator[Judgement]:
    name, access, direction = rule.id or "not named", (rule.access or "").lower(), (rule.direction or "").lower()
    if direction == "inbound" or access == "deny" or not _leads_out(rule):
        return
    if direction == "outbound" and access in {"allow", "alwaysallow"}:
        yield fails(
            network,
            "AdminRuleAllows",
            f"admin rule {name}: {rule.access} outbound to public addresses",
            *looks,
            paths=(f"vnet {name_of(network)} -> admin rule {name_of(name)} -> internet",),
        )
    else:
        message = f"admin rule {name}: access {rule.access!r}, direction {rule.direction!r} are not known"
        yield cannot_say(network, "AdminRuleUnknown", message, *looks)


def _leads_out(rule: AdminRule) -> bool:
    """No destination means every one."""
    return not rule.destinations or any(_is_public(one) for one in rule.destinations)


def _is_public(address: AdminAddress) -> bool:
    word = (address.address_prefix or "").strip()
    prefix = prefix_of(word)
    if prefix is not None:
        return bool(public_part(prefix))
    return word.lower() not in INWARD_TAGS and (address.address_prefix_type or "").lower() != "networkgroup"


def _pages(estate: Estate, kind: type[P], network: str) -> tuple[list[P], tuple[Look, ...]]:
    """Every page, and the looks that a conclusion rests on: a page without its list, or one seen twice, is no truth."""
    pages: list[P] = []
    looks: list[Look] = []
    tokens: set[str] = set()
    token: str | None = ""
    while token is not None:
        seen = estate.asked(kind, network, {"skipToken": token} if token else {})
        looks.append(seen)
        page = seen.value
        if page is None:
            break
        pages.append(page)
        if page.value is None:
            looks.append(missing(f"{network}: the answer of {kind.ACTION} has no list"))
        token = page.skip_token or None
        if token in tokens:
            looks.append(missing(f"{network}: {kind.ACTION} goes round in circles"))
            break
        tokens.add(token or "")
    return pages, tuple(looks)
