"""Rules of a firewall that allow arbitrary destinations. A rule after a deny that covers it counts as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, summarize_address_range

from hermetic.api.ip_ranges import Network
from hermetic.audit.cluster_scope import missing
from hermetic.audit.egress.address_ranges import is_public
from hermetic.audit.egress.prefixes import is_default
from hermetic.audit.egress.prefixes import network as prefix_of
from hermetic.audit.estate.arm_ids import group_of, name_of, parent_of, subscription_of
from hermetic.audit.estate.azure.firewalls import (
    AzureFirewall,
    FirewallPolicy,
    FirewallRule,
    IpGroup,
    RuleCollection,
    RuleCollectionGroup,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.remedies.filling import Fill

WIDEST_V4 = 8
WIDEST_V6 = 32
EVERYWHERE = {"*", "internet", "any"}
TRANSLATION = {"firewallpolicynatrulecollection"}
FILTER = {"firewallpolicyfilterrulecollection"}
KNOWN_RULES = {"networkrule", "applicationrule"}


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rules of a firewall let out, which of them are not understood, and the observations.

    `first` are the values of the first such rule of a policy, by placeholder of the remedy.
    """

    wide: tuple[str, ...]
    odd: tuple[str, ...]
    looks: tuple[Observation, ...]
    first: Fill


def rules_of(estate: Estate, firewall: AzureFirewall) -> Rules:
    """All rules: classic ones, and those of its policy and the base policies of that."""
    collections, looks = _from_policies(estate, firewall)
    for one in (*(firewall.network_rule_collections or ()), *(firewall.application_rule_collections or ())):
        collections.append((one, ""))
    wide: list[str] = []
    odd: list[str] = []
    named: dict[str, Fill] = {}
    for collection, group in collections:
        if _is_translation(collection):
            continue
        action = (collection.action.type if collection.action is not None else None) or ""
        kind = (collection.rule_collection_type or "").lower()
        if action.lower() == "deny":
            continue
        if action.lower() != "allow" or (group and kind not in FILTER):
            odd.append(f"collection {collection.name}: action {action!r}, type {collection.rule_collection_type!r}")
            continue
        for rule in collection.rules or ():
            name = f"{collection.name}/{rule.name}"
            found = [f"{name} allows {words}" for words in _wide(estate, rule, looks)]
            if group:
                named |= dict.fromkeys(found, _named(group, collection, rule))
            wide.extend(found)
            odd.extend(f"{name}: {words}" for words in _odd(rule, classic=not group))
    first = named[min(named)] if named else {}  # Azure's lists have no guaranteed order
    return Rules(tuple(sorted(wide)), tuple(sorted(odd)), tuple(looks), first)


def _named(group: str, collection: RuleCollection, rule: FirewallRule) -> Fill:
    policy = parent_of(group)
    return {
        "FIREWALL_RULE": rule.name,
        "RULE_COLLECTION": collection.name,
        "RULE_GROUP": name_of(group),
        "FIREWALL_POLICY": name_of(policy),
        "RESOURCE_GROUP": name_of(group_of(policy)),
        "SUBSCRIPTION_ID": subscription_of(policy),
    }


def _from_policies(
    estate: Estate, firewall: AzureFirewall
) -> tuple[list[tuple[RuleCollection, str]], list[Observation]]:
    """Each rule collection with the id of its group."""
    looks: list[Observation] = []
    collections: list[tuple[RuleCollection, str]] = []
    reference, known = firewall.firewall_policy, set[str]()
    while reference is not None and reference.id.lower() not in known:
        known.add(reference.id.lower())
        policy = estate.one(FirewallPolicy, reference.id)
        groups = estate.every(RuleCollectionGroup, reference.id)
        looks.extend((policy, groups))
        for group in groups:
            if group.rule_collections is None:
                looks.append(missing(f"{group.id}: the answer has no rule collections"))
            collections.extend((one, group.id) for one in group.rule_collections or ())
        reference = policy.value.base_policy if policy.value is not None else None
    return collections, looks


def _is_translation(collection: RuleCollection) -> bool:
    return (collection.rule_collection_type or "").lower() in TRANSLATION


def _wide(estate: Estate, rule: FirewallRule, looks: list[Observation]) -> Iterator[str]:
    yield from (word for word in rule.destination_addresses or () if _is_wide(word))
    hosts = (*(rule.destination_fqdns or ()), *(rule.target_fqdns or ()), *(rule.target_urls or ()))
    yield from (f"host {word}" for word in hosts if word.strip() == "*")
    yield from (f"web category {word}" for word in rule.web_categories or ())
    for group_id in rule.destination_ip_groups or ():
        group = estate.one(IpGroup, group_id)
        looks.append(group)
        if group.value is not None and group.value.ip_addresses is None:
            looks.append(missing(f"{group_id}: the answer has no addresses"))
        said = (group.value.ip_addresses or ()) if group.value is not None else ()
        yield from (f"{word} (IP group)" for word in said if _is_wide(word))


def _odd(rule: FirewallRule, *, classic: bool) -> Iterator[str]:
    if not classic and (rule.rule_type or "").lower() not in KNOWN_RULES:
        yield f"rule type {rule.rule_type!r} is not known"
    aims = (
        rule.destination_addresses,
        rule.destination_ip_groups,
        rule.destination_fqdns,
        rule.target_fqdns,
        rule.target_urls,
        rule.fqdn_tags,
        rule.web_categories,
    )
    if not any(aims):
        yield "no destination is named"


def _is_wide(word: str) -> bool:
    """Any destination, the tag Internet, a default prefix or range, or a public one shorter than /8 (IPv6: /32)."""
    if word.strip().lower() in EVERYWHERE:
        return True
    return any(is_default(one) or (_is_short(one) and is_public(one)) for one in _prefixes(word))


def _is_short(prefix: Network) -> bool:
    return prefix.prefixlen < (WIDEST_V4 if prefix.version == 4 else WIDEST_V6)


def _prefixes(word: str) -> list[Network]:
    """The prefixes of a prefix or of a range a-b; none for a service tag."""
    prefix = prefix_of(word)
    if prefix is not None:
        return [prefix]
    first, dash, last = word.partition("-")
    if not dash:
        return []
    try:
        return list(summarize_address_range(ip_address(first.strip()), ip_address(last.strip())))
    except (TypeError, ValueError):
        return []
