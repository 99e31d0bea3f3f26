"""The platform's resolver: names that a policy blocks, and servers that a ruleset forwards to."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.dns.resolving_networks import deciding_networks
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import missing
from hermetic.audit.egress.address_ranges import is_public
from hermetic.audit.egress.dns import ByDefault, NamePolicy, names_by_default
from hermetic.audit.egress.locked_node_group import rulesets_behind_the_lock
from hermetic.audit.egress.prefixes import network as prefix_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.dns import ForwardingRule, LinkedRulesets
from hermetic.audit.estate.azure.vnet import VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Seen
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes
from hermetic.audit.hops import INTERNET, POD, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_network


@check_each("dns-security-policy", each_network)
def dns_security_policy(estate: Estate, policy: Policy, network: Seen[VirtualNetwork]) -> Iterator[Judgement]:
    """Every name that no rule allows is blocked, in the network and in the networks of its DNS servers."""
    deciding = deciding_networks(estate, network)
    for one in (network.target, *deciding.networks):
        yield _said_of(one, names_by_default(estate, policy, one))
    if deciding.elsewhere:
        words = f"{', '.join(deciding.elsewhere)}: in no network in reach; what is blocked there was not seen"
        yield cannot_say(network.target, "ServerNotInReach", words, *deciding.looks)


def _said_of(network: str, names: NamePolicy) -> Judgement:
    if names.verdict is ByDefault.BLOCKED:
        return passes(network, names.reason, names.words, *names.looks)
    if names.verdict is ByDefault.ANSWERED:
        path = path_of(POD, hops.dns(f"dns of vnet {name_of(network)}"), INTERNET)
        return fails(network, names.reason, names.words, *names.looks, paths=(path,), fill={"VNET_ID": network})
    return cannot_say(network, names.reason, names.words, *names.looks)


@check_each("dns-forwarding-ruleset", each_network)
def dns_forwarding_ruleset(estate: Estate, policy: Policy, network: Seen[VirtualNetwork]) -> Iterator[Judgement]:
    """Forwarding rulesets linked to the network, or to the networks of its DNS servers."""
    for one in (network.target, *deciding_networks(estate, network).networks):
        yield from _rulesets_of(estate, one)
        for linked, _ in rulesets_behind_the_lock(estate, policy, one):
            yield _ruleset(one, linked, estate.every(ForwardingRule, linked))


def _rulesets_of(estate: Estate, network: str) -> Iterator[Judgement]:
    linked = estate.asked(LinkedRulesets, network)
    found = (linked.value.value or ()) if linked.value is not None else ()
    for one in found:
        yield _ruleset(network, one.id, estate.every(ForwardingRule, one.id))
    if linked.value is not None and not linked.value.is_whole:
        odd = missing(f"{network}: the answer of {LinkedRulesets.ACTION} is not whole")
        yield cannot_say(network, "RulesetsNotSeen", "linked rulesets were not seen", linked, odd)
    elif not found:
        yield passes(network, "NoRuleset", "no forwarding ruleset is linked", linked)


def _ruleset(network: str, ruleset: str, rules: Listing[ForwardingRule]) -> Judgement:
    enabled = [one for one in rules if (one.forwarding_rule_state or "").lower() != "disabled"]
    servers = [(one, server.ip_address) for one in enabled for server in one.target_dns_servers or ()]
    public = [f"{rule.domain_name or 'every name'} to {address}" for rule, address in servers if _is_public(address)]
    odd = [one.name for one in enabled if not one.target_dns_servers]
    if public:
        path = path_of(
            POD, hops.dns(f"dns of vnet {name_of(network)}"), f"forwarding ruleset {name_of(ruleset)}", INTERNET
        )
        words = f"names are forwarded to public servers: {', '.join(public)}"
        ids = list(dict.fromkeys(rule.id for rule, address in servers if _is_public(address)))
        return fails(ruleset, "ForwardsOutside", words, rules, paths=(path,), fill={"ATTACHED_ID": ids})
    if odd:
        return cannot_say(ruleset, "NoServer", f"rules name no server: {', '.join(odd)}", rules)
    return passes(ruleset, "ForwardsInside", "names are forwarded to private addresses only", rules)


def _is_public(address: str | None) -> bool:
    """Whether the server's address is public, or is no address."""
    prefix = prefix_of(address or "")
    return prefix is None or is_public(prefix)
