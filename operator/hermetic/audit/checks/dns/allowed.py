"""Domains that a DNS security policy allows: data can be sent in names to the servers that answer for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.audit.checks.dns.servers import deciding_networks
from hermetic.audit.checks.dns.zones import links_of
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import cluster_of
from hermetic.audit.estate.arm_ids import group_of, name_of, parent_of, same_id
from hermetic.audit.estate.azure.dns import DnsSecurityRule, DomainList, ZoneLink
from hermetic.audit.estate.azure.vnet import VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, missing
from hermetic.audit.evaluation.each_resource import each_network
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.model.hops import INTERNET, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.domain_names import is_within, plain
from hermetic.audit.scope.dns import (
    EVERY_NAME,
    DefaultAction,
    Domains,
    in_force,
    is_of_a_service,
    names_by_default,
    own_domains,
)


@dataclass(frozen=True, slots=True)
class OwnDomains:
    """Domains that may be allowed, and the observations that this rests on."""

    domains: tuple[str, ...]
    observations: tuple[Observation, ...]


@check_each("dns-allowed-domains", each_network)
def dns_allowed_domains(estate: Estate, policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """Every domain list that is allowed above the rule that blocks every name."""
    for network_id in (network.target, *deciding_networks(estate, policy, network).networks):
        yield from _of_network(estate, policy, network_id)


def _of_network(estate: Estate, policy: Policy, network: str) -> Iterator[CheckResult]:
    names = names_by_default(estate, policy, network)
    if names.verdict is DefaultAction.ANSWERED:
        message = f"{names.message}: every name is answered, which dns-security-policy evaluates"
        yield does_not_apply(network, names.reason, message, *names.observations)
        return
    if names.verdict is DefaultAction.UNCLEAR:
        yield unknown(network, names.reason, names.message, *names.observations, severity=Severity.MEDIUM)
    rules = [rule for dns_policy in names.policies for rule in _letting_through(estate, dns_policy)]
    results = list(_of_rules(estate, rules, _own(estate, policy, network))) if rules else []
    if names.verdict is DefaultAction.UNCLEAR:
        yield from (
            result for result in results if result.verdict is Verdict.FAIL
        )  # Fails do not depend on the other names
        return
    yield from results
    if not results:
        yield passes(
            network, "NothingAllowed", "no domain is allowed above the rule that blocks all", *names.observations
        )


def _of_rules(estate: Estate, rules: list[DnsSecurityRule], own: OwnDomains) -> Iterator[CheckResult]:
    allowed_lists = [
        (rule, estate.one(DomainList, reference.id))
        for rule in rules
        for reference in rule.dns_resolver_domain_lists or ()
    ]
    managed = [rule for rule in rules if rule.managed_domain_lists]
    for rule, domain_list in allowed_lists:
        yield _evaluate(rule, domain_list, own)
    for rule in rules:
        if not rule.dns_resolver_domain_lists and not rule.managed_domain_lists:
            message = f"rule {rule.name} names no list of what it lets through"
            yield unknown(rule.id, "DomainsNotNamed", message, missing(f"{rule.id}: {message}"), rule)
    for rule in managed:
        message = (
            f"rule {rule.name} lets through lists of Azure's: {', '.join(sorted(rule.managed_domain_lists or ()))}"
        )
        yield fails(
            rule.id,
            "AllowsManagedList",
            message,
            rule,
            paths=(path_of(POD, hops.dns("platform dns"), "servers of others"),),
        )


def _own(estate: Estate, policy: Policy, network: str) -> OwnDomains:
    cluster, links = cluster_of(estate), links_of(estate, policy)
    region = cluster.value.location if cluster.value is not None else ""
    ours = [link for link in links if link.virtual_network is not None and same_id(link.virtual_network.id, network)]
    zones = [name_of(parent_of(link.id)) for link in ours if _answers_for_all(link)]
    return OwnDomains((*policy.allowed_dns_domains, *own_domains(region, zones)), (cluster, links))


def _answers_for_all(link: ZoneLink) -> bool:
    """Whether names below the zone are never resolved by public DNS, or only by Azure's own servers."""
    stays = (link.resolution_policy or "default").lower() == "default"
    return stays or is_of_a_service(name_of(parent_of(link.id)))


def _letting_through(estate: Estate, policy: str) -> Iterator[DnsSecurityRule]:
    """The rules of a DNS security policy that let names through, up to the one that blocks every name."""
    rules = estate.every(DnsSecurityRule, policy)
    domains = Domains(estate, rules)
    for rule in in_force(rules):
        action = ((rule.action.action_type if rule.action is not None else None) or "").lower()
        if action == "block" and EVERY_NAME in (domains.of(rule) or ()):
            break
        if action != "block":
            yield rule


def _evaluate(rule: DnsSecurityRule, domain_list: Lookup[DomainList], own: OwnDomains) -> CheckResult:
    domains = sorted((domain_list.value.listed or ()) if domain_list.value is not None else ())
    wide = [domain for domain in domains if not is_within(domain, own.domains)]
    if domain_list.value is None or domain_list.value.listed is None:
        return unknown(
            domain_list.target,
            "DomainListNotSeen",
            f"rule {rule.name}: the audit could not see its domains",
            domain_list,
        )
    if wide and any(observation.problem is not None for observation in own.observations):
        message = (
            f"rule {rule.name} allows {', '.join(wide)}: the audit could not see whether a private zone answers them"
        )
        return unknown(domain_list.target, "ZonesNotSeen", message, *own.observations, domain_list)
    if wide:
        message = f"rule {rule.name} lets through {', '.join(wide)} and every name below: none of the cluster's own"
        paths = tuple(
            path_of(POD, hops.dns("platform dns"), f"servers of {plain(domain)}", INTERNET) for domain in wide[:3]
        )
        fill = {"DOMAIN_LIST": name_of(domain_list.target), "OWN_GROUP": name_of(group_of(domain_list.target))}
        return fails(
            domain_list.target,
            "AllowsOthersNames",
            message,
            domain_list,
            rule,
            *own.observations,
            paths=paths,
            fill=fill,
        )
    message = f"rule {rule.name} allows the cluster's own names only: {', '.join(domains) or 'none'}"
    return passes(domain_list.target, "OwnNamesOnly", message, domain_list, rule, *own.observations)
