"""The platform's resolver: what a policy blocks, and where a ruleset forwards."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.egress.dns import ByDefault, names_by_default
from hermetic.audit.egress.prefixes import network as prefix_of
from hermetic.audit.egress.prefixes import public_part
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.dns import ForwardingRule, LinkedRulesets
from hermetic.audit.estate.azure.vnet import VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.look import Listing, Seen
from hermetic.audit.judging import Judgement, cannot_say, fails, passes
from hermetic.audit.policy import Policy
from hermetic.audit.reach import each_network
from hermetic.audit.scope import missing


def security_policy(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Every name is blocked that no rule allows."""

    def judge(network: Seen[VirtualNetwork]) -> Iterator[Judgement]:
        names = names_by_default(estate, network.target)
        if names.verdict is ByDefault.BLOCKED:
            yield passes(network.target, names.reason, names.words, *names.looks)
        elif names.verdict is ByDefault.ANSWERED:
            path = f"pod -> dns of vnet {name_of(network.target)} -> internet"
            yield fails(network.target, names.reason, names.words, *names.looks, paths=(path,))
        else:
            yield cannot_say(network.target, names.reason, names.words, *names.looks)

    yield from each_network(estate, judge)


def rulesets(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Each forwarding ruleset linked to the network."""

    def of_network(network: Seen[VirtualNetwork]) -> Iterator[Judgement]:
        linked = estate.asked(LinkedRulesets, network.target)
        found = (linked.value.value or ()) if linked.value is not None else ()
        for one in found:
            yield _ruleset(network.target, one.id, estate.every(ForwardingRule, one.id))
        if linked.value is not None and not linked.value.is_whole:
            odd = missing(f"{network.target}: the answer of {LinkedRulesets.ACTION} is not whole")
            yield cannot_say(network.target, "RulesetsNotSeen", "linked rulesets were not seen", linked, odd)
        elif not found:
            yield passes(network.target, "NoRuleset", "no forwarding ruleset is linked", linked)

    yield from each_network(estate, of_network)


def _ruleset(network: str, ruleset: str, rules: Listing[ForwardingRule]) -> Judgement:
    enabled = [one for one in rules if (one.forwarding_rule_state or "").lower() != "disabled"]
    servers = [(one, server.ip_address) for one in enabled for server in one.target_dns_servers or ()]
    public = [f"{rule.domain_name or 'every name'} to {address}" for rule, address in servers if _is_public(address)]
    odd = [one.name for one in enabled if not one.target_dns_servers]
    if public:
        path = f"pod -> dns of vnet {name_of(network)} -> forwarding ruleset {name_of(ruleset)} -> internet"
        words = f"names are forwarded to public servers: {', '.join(public)}"
        return fails(ruleset, "ForwardsOutside", words, rules, paths=(path,))
    if odd:
        return cannot_say(ruleset, "NoServer", f"rules name no server: {', '.join(odd)}", rules)
    return passes(ruleset, "ForwardsInside", "names are forwarded to private addresses only", rules)


def _is_public(address: str | None) -> bool:
    """What is no address counts as public."""
    prefix = prefix_of(address or "")
    return prefix is None or bool(public_part(prefix))
