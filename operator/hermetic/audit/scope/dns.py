"""Whether a DNS security policy blocks every name that it does not allow.

Ordinary security rules do not apply to the platform's resolver: it answers any name, and a name can carry data out.
Azure documents the catch-all form poorly: "." blocks every name, and every other form is Unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from hermetic.audit.estate.azure.dns import DnsSecurityRule, DomainList, LinkedDnsPolicies
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Observation, is_locked, missing
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.domain_names import plain
from hermetic.audit.scope.locked_node_group import policies_behind_the_lock

ALWAYS = ("internal.cloudapp.net", "reddog.microsoft.com")
"""Names that Azure gives to the machines of every network."""
API_SERVERS = ("azmk8s.io", "cx.aks.containerservice.azure.us", "cx.prod.service.azk8s.cn")
"""Prefixed by the name of the region: in the public cloud, the US government's and 21Vianet's."""
OF_SERVICES = (
    "azurecr.io", "azurecr.us", "azurecr.cn",
    "blob.core.windows.net", "file.core.windows.net", "queue.core.windows.net", "table.core.windows.net",
    "dfs.core.windows.net", "file.storage.azure.net",
    "blob.core.usgovcloudapi.net", "file.core.usgovcloudapi.net",
    "blob.core.chinacloudapi.cn", "file.core.chinacloudapi.cn",
    "vault.azure.net", "vaultcore.azure.net",
    "monitor.azure.com", "ods.opinsights.azure.com", "oms.opinsights.azure.com", "agentsvc.azure-automation.net",
)  # fmt: skip
"""Public names of private endpoints: allowed where their zone `privatelink.` is linked."""
PRIVATE_LINK = "privatelink."


def own_domains(region: str, zones: Iterable[str]) -> Iterator[str]:
    """Domains below which every name is the cluster's own. `zones`: names of private zones linked to the network.

    Resolving a name sends the name to the server that answers for it, with any answer. So a domain may be allowed when
    a linked private zone answers for it, or when Azure does and no customer can delegate a name below it to another
    server. Allowing a domain allows all names below it, and what their aliases (CNAME) lead to.
    """
    yield from ALWAYS
    if region:
        yield from (f"{region.replace(' ', '').lower()}.{domain}" for domain in API_SERVERS)
    for zone in map(plain, zones):
        yield zone
        yield from (domain for domain in OF_SERVICES if zone.startswith(PRIVATE_LINK) and _is_counterpart(zone, domain))


def is_of_a_service(zone: str) -> bool:
    """Whether it is a zone of Private Link, whose public names Azure's own servers answer."""
    name = plain(zone)
    return name.startswith(PRIVATE_LINK) and any(_is_counterpart(name, domain) for domain in OF_SERVICES)


def _is_counterpart(zone: str, service: str) -> bool:
    """Whether the zone is the one of the service; vaultcore.azure.net also serves the older name vault.azure.net."""
    public = zone.removeprefix(PRIVATE_LINK)
    return public == service or (public == "vaultcore.azure.net" and service == "vault.azure.net")


EVERY_NAME = "."


class DefaultAction(Enum):
    """What happens to a name that no rule lists."""

    BLOCKED = "blocked"
    ANSWERED = "answered"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class NamePolicy:
    """The conclusion about one network: a CamelCase reason, a message, and the observations that it rests on.

    `policies` are the ids of all policies that were seen linked to the network.
    """

    verdict: DefaultAction
    reason: str
    message: str
    observations: tuple[Observation, ...]
    policies: tuple[str, ...] = ()


def names_by_default(estate: Estate, policy: Policy, network: str) -> NamePolicy:
    """What the DNS security policies linked to a network do with a name that they do not list."""
    key = ("names by default", network.lower(), policy)
    return estate.once(key, lambda: _names_by_default(estate, policy, network))


def _names_by_default(estate: Estate, policy: Policy, network: str) -> NamePolicy:
    linked = estate.asked(LinkedDnsPolicies, network)
    if is_locked(linked):
        return _behind_the_lock(estate, policy, network, linked)
    if linked.value is None:
        return NamePolicy(DefaultAction.UNCLEAR, "PolicyNotSeen", "the linked policies were not seen", (linked,))
    if not linked.value.is_whole:
        gap = missing(f"{network}: the answer of {LinkedDnsPolicies.ACTION} is not whole")
        return NamePolicy(DefaultAction.UNCLEAR, "PolicyNotSeen", "the linked policies were not seen", (linked, gap))
    ids = [reference.id for reference in linked.value.value or ()]
    if not ids:
        return NamePolicy(DefaultAction.ANSWERED, "NoDnsPolicy", "no DNS security policy is linked", (linked,))
    return _several(ids, linked) if len(ids) > 1 else _by_policy(estate, ids[0], linked)


def _behind_the_lock(estate: Estate, policy: Policy, network: str, refused: Observation) -> NamePolicy:
    """Decided by the policy whose own link names the network; a network has at most one. UNCLEAR without any."""
    owners = policies_behind_the_lock(estate, policy, network)
    if not owners:
        return NamePolicy(DefaultAction.UNCLEAR, "PolicyNotSeen", "the linked policies were not seen", (refused,))
    ids = sorted({owner.lower(): owner for owner, _ in owners}.values())
    if len(ids) > 1:
        return _several(ids, *(link for _, link in owners))
    (owner, link), *_ = owners
    names = _by_policy(estate, owner, link)
    if names.verdict is not DefaultAction.BLOCKED or link.is_in_force:
        return names
    message = f"the link of its policy is in state {link.provisioning_state!r}: it is not known whether it blocks yet"
    return replace(names, verdict=DefaultAction.UNCLEAR, reason="LinkNotInForce", message=message)


def _several(ids: list[str], *observations: Observation) -> NamePolicy:
    message = f"{len(ids)} policies are linked, and which of them decides is not known"
    return NamePolicy(DefaultAction.UNCLEAR, "SeveralPolicies", message, observations, tuple(ids))


def _by_policy(estate: Estate, policy: str, link: Observation) -> NamePolicy:
    """What one DNS security policy does with a name that it does not list; `link` shows that it is linked."""
    rules = estate.every(DnsSecurityRule, policy)
    lists = Domains(estate, rules)
    observations = (link, rules, *lists.observations)
    if rules.problem is not None:
        message = "rules of the policy are missing from the answer, and any of them may decide"
        return NamePolicy(DefaultAction.UNCLEAR, "RulesNotSeen", message, observations, (policy,))
    verdict, reason, message = _first_for_every_name(rules, lists)
    return NamePolicy(verdict, reason, message, observations, (policy,))


class Domains:
    """The domains of each rule; all lists are read once."""

    def __init__(self, estate: Estate, rules: Listing[DnsSecurityRule]) -> None:
        ids = {
            reference.id.lower(): reference.id for rule in rules for reference in rule.dns_resolver_domain_lists or ()
        }
        self._seen = {key: estate.one(DomainList, list_id) for key, list_id in sorted(ids.items())}
        self.observations: tuple[Observation, ...] = tuple(self._seen.values())

    def of(self, rule: DnsSecurityRule) -> list[str] | None:
        """None when one of its lists was not seen."""
        domains: list[str] = []
        for reference in rule.dns_resolver_domain_lists or ():
            value = self._seen[reference.id.lower()].value
            if value is None or value.listed is None:
                return None
            domains += value.listed
        return domains


def in_force(rules: Iterable[DnsSecurityRule]) -> list[DnsSecurityRule]:
    """The rules that are not disabled, in order of priority; one without a priority comes first."""
    on = (rule for rule in rules if (rule.dns_security_rule_state or "").lower() != "disabled")
    return sorted(on, key=lambda rule: (rule.priority if rule.priority is not None else 0, rule.name))


def _first_for_every_name(rules: Listing[DnsSecurityRule], lists: Domains) -> tuple[DefaultAction, str, str]:
    for rule in in_force(rules):
        decision = next(iter(_decided_by(rule, lists)), None)
        if decision is not None:
            return decision
    return DefaultAction.ANSWERED, "NoCatchAll", 'no enabled rule blocks every name (".")'


def _decided_by(rule: DnsSecurityRule, lists: Domains) -> Iterator[tuple[DefaultAction, str, str]]:
    """Yields the decision for every name; nothing where the rule lists some names only and the next rule decides."""
    domains = lists.of(rule)
    action = ((rule.action.action_type if rule.action is not None else None) or "").lower()
    if domains is None:
        yield DefaultAction.UNCLEAR, "DomainListNotSeen", f"rule {rule.name}: the audit could not see its domains"
    elif (rule.dns_security_rule_state or "").lower() != "enabled" or rule.priority is None:
        message = f"rule {rule.name}: state {rule.dns_security_rule_state!r}, priority {rule.priority!r}"
        yield DefaultAction.UNCLEAR, "RuleUnknown", message
    elif action not in {"allow", "alert", "block"}:
        yield DefaultAction.UNCLEAR, "RuleUnknown", f"rule {rule.name}: action {action!r} is not known"
    elif any("*" in domain for domain in domains):
        yield (
            DefaultAction.UNCLEAR,
            "WildcardUnknown",
            f"rule {rule.name}: Azure does not document the meaning of a wildcard here",
        )
    elif EVERY_NAME in domains and action == "block":
        yield (
            DefaultAction.BLOCKED,
            "BlocksByDefault",
            f'rule {rule.name} blocks every name (".") that no rule above allows',
        )
    elif EVERY_NAME in domains:
        yield DefaultAction.ANSWERED, "AllowsEveryName", f"rule {rule.name} lets every name through"
    elif action != "block" and (wide := [domain for domain in domains if _is_top_level(domain)]):
        message = f"rule {rule.name} lets every name below {', '.join(wide)} through"
        yield DefaultAction.ANSWERED, "AllowsTopLevel", message


def _is_top_level(domain: str) -> bool:
    """Whether it is a top-level domain such as "com.", below which anyone can register a name."""
    return len(domain.strip(".").split(".")) == 1
