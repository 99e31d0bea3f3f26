"""What the rules of the declared firewall let out: each by itself, and all of their addresses together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv6Network, ip_address, summarize_address_range

from hermetic.api.ip_ranges import Network
from hermetic.api.text import first_of
from hermetic.audit.checks.topology.destinations import Recipient, of_fqdn_tag, of_host, of_service_tag
from hermetic.audit.cluster_scope import missing
from hermetic.audit.egress import address_ranges
from hermetic.audit.egress.address_ranges import Space, internet, is_default, is_public, networks, overlap, space, union
from hermetic.audit.egress.address_ranges import network as prefix_of
from hermetic.audit.egress.firewall import policies_of
from hermetic.audit.estate.arm_ids import group_of, name_of, parent_of, subscription_of
from hermetic.audit.estate.azure.managed_services import (
    AzureFirewall,
    FirewallRule,
    IpGroup,
    RuleCollection,
    RuleCollectionGroup,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.observation import Observation
from hermetic.audit.policy import Policy
from hermetic.audit.remedies.filling import Fill

WIDEST = {4: 8, 6: 32}
"""By IP version, the shortest public prefix that still counts as a named destination."""
EVERYWHERE = {"*", "internet", "any"}
TRANSLATION = {"firewallpolicynatrulecollection"}
FILTER = {"firewallpolicyfilterrulecollection"}
KNOWN_RULES = {"networkrule", "applicationrule"}
NAME_PORTS = {"53", "853"}
"""Of DNS, plain and over TLS."""
NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: its last 32 bits are an IPv4 address."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rules of a firewall let out, which of them are not understood, and the observations.

    `first` are the values of the first such rule of a policy, by placeholder of the remedy.
    """

    wide: tuple[str, ...]
    odd: tuple[str, ...]
    observations: tuple[Observation, ...]
    first: Fill


@dataclass(frozen=True, slots=True)
class _Allow:
    """A rule that allows, its name in messages, and its place as the remedy names it; none for a classic rule."""

    name: str
    rule: FirewallRule
    place: Fill


@dataclass(slots=True)
class _Addresses:
    """The destination addresses of a rule: words that stand for everything, tags, and prefixes narrow by themselves."""

    wide: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    """Entries of IP groups that are no addresses."""
    narrow: list[Network] = field(default_factory=list)


def rules_of(estate: Estate, policy: Policy, firewall: AzureFirewall) -> Rules:
    """All rules: classic ones, and those of its policy and the base policies of that."""
    collections, observations = _from_policies(estate, firewall)
    classic = (firewall.network_rule_collections, firewall.application_rule_collections, firewall.nat_rule_collections)
    collections += [(one, "") for some in classic for one in some or ()]
    odd: list[str] = []
    wide: dict[str, Fill] = {}
    spaces: list[tuple[_Allow, Space]] = []
    local = space(networks(policy.additional_private_ranges))
    for allow in _allowing(collections, odd):
        addresses = _addresses(estate, allow.rule, local, observations)
        found = [*_wide(allow.rule, addresses, policy)]
        wide |= dict.fromkeys((f"{allow.name} allows {words}" for words in found), allow.place)
        odd.extend(f"{allow.name}: {words}" for words in _odd(allow, addresses, policy))
        spaces.append((allow, _public(addresses.narrow, local)))
    wide |= dict(_together(spaces))
    places = {words: place for words, place in wide.items() if place}
    first = places[min(places)] if places else {}  # Azure's lists have no guaranteed order
    return Rules(tuple(sorted(wide)), tuple(sorted(odd)), tuple(observations), first)


def _allowing(collections: Iterable[tuple[RuleCollection, str]], odd: list[str]) -> Iterator[_Allow]:
    """The rules that allow; adds collections that are not understood to `odd`."""
    for collection, group in collections:
        action = (collection.action.type if collection.action is not None else None) or ""
        kind = (collection.rule_collection_type or "").lower()
        if action.lower() == "deny" and kind not in TRANSLATION:
            continue
        if collection.rules is None:
            odd.append(f"collection {collection.name}: the answer has no rules")
        if kind in TRANSLATION or (not group and action.lower() == "dnat"):
            odd.extend(_translated(collection))
            continue
        if action.lower() != "allow" or (group and kind not in FILTER):
            odd.append(f"collection {collection.name}: action {action!r}, type {collection.rule_collection_type!r}")
            continue
        for rule in collection.rules or ():
            place = _place(group, collection, rule) if group else {}
            yield _Allow(f"{collection.name}/{rule.name}", rule, place)


def _translated(collection: RuleCollection) -> Iterator[str]:
    """Rules that send packets to another destination, which may be outside: a source may be private as well.

    learn.microsoft.com/powershell/module/az.network/new-azfirewallpolicynatrule: of a source 192.168.0.0/16, the
    destination 10.20.30.40 is translated to an address or a name.
    """
    for rule in collection.rules or ():
        targets = [one for one in (rule.translated_address, rule.translated_fqdn) if one]
        if not targets:
            yield f"{collection.name}/{rule.name}: what it translates to is not named"
        for target in targets:
            if not is_inside(target):
                yield f"{collection.name}/{rule.name}: translates to {target}"


def _place(group: str, collection: RuleCollection, rule: FirewallRule) -> Fill:
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
    observations: list[Observation] = []
    collections: list[tuple[RuleCollection, str]] = []
    for policy in policies_of(estate, firewall):
        groups = estate.every(RuleCollectionGroup, policy.target)
        observations.extend((policy, groups))
        for group in groups:
            if group.rule_collections is None:
                observations.append(missing(f"{group.id}: the answer has no rule collections"))
            collections.extend((one, group.id) for one in group.rule_collections or ())
    return collections, observations


def _addresses(estate: Estate, rule: FirewallRule, local: Space, observations: list[Observation]) -> _Addresses:
    found = _Addresses()
    for word in rule.destination_addresses or ():
        if _is_wide(word, local):
            found.wide.append(word)
        elif prefixes := _prefixes(word):
            found.narrow.extend(prefixes)
        else:
            found.tags.append(word)
    for group_id in rule.destination_ip_groups or ():
        group = estate.one(IpGroup, group_id)
        observations.append(group)
        if group.value is not None and group.value.ip_addresses is None:
            observations.append(missing(f"{group_id}: the answer has no addresses"))
        for word in (group.value.ip_addresses or ()) if group.value is not None else ():
            if _is_wide(word, local):
                found.wide.append(f"{word} (IP group)")
            elif prefixes := _prefixes(word):
                found.narrow.extend(prefixes)
            else:
                found.foreign.append(word)
    return found


def _hosts(rule: FirewallRule) -> tuple[str, ...]:
    return (*(rule.destination_fqdns or ()), *(rule.target_fqdns or ()), *(rule.target_urls or ()))


def _wide(rule: FirewallRule, addresses: _Addresses, policy: Policy) -> Iterator[str]:
    many, own = Recipient.OF_MANY_TENANTS, policy.allowed_dns_domains
    yield from addresses.wide
    yield from (one for one in addresses.tags if of_service_tag(one) is many)
    yield from (f"host {one}" for one in _hosts(rule) if of_host(one, own) is many)
    yield from (f"FQDN tag {one}" for one in rule.fqdn_tags or () if of_fqdn_tag(one) is many)
    yield from (f"web category {one}" for one in rule.web_categories or ())


def _odd(allow: _Allow, addresses: _Addresses, policy: Policy) -> Iterator[str]:
    rule, unknown = allow.rule, Recipient.UNKNOWN
    if allow.place and (rule.rule_type or "").lower() not in KNOWN_RULES:
        yield f"rule type {rule.rule_type!r} is not known"
    aims = (rule.destination_addresses, rule.destination_ip_groups, _hosts(rule), rule.fqdn_tags, rule.web_categories)
    if not any(aims):
        yield "no destination is named"
    for kind, tags in (
        ("service tag", [one for one in addresses.tags if of_service_tag(one) is unknown]),
        ("FQDN tag", [one for one in rule.fqdn_tags or () if of_fqdn_tag(one) is unknown]),
    ):
        yield from (f"{kind} {one}: whose instances it holds is not known" for one in tags)
    yield from (f"IP group entry {one} is no address" for one in addresses.foreign)
    if NAME_PORTS & set(rule.destination_ports or ()) and (servers := _unlisted(rule, addresses, policy)):
        words = "a server that passes names on passes data on; list those that do not under `allowedDnsServers`"
        yield f"DNS to {', '.join(servers)}: {words}"
    for one in _hosts(rule):
        if of_host(one, policy.allowed_dns_domains) is unknown:
            yield _unknown_host(one)


def _unlisted(rule: FirewallRule, addresses: _Addresses, policy: Policy) -> tuple[str, ...]:
    """The named DNS servers of a rule that the policy file does not list."""
    left = address_ranges.without(space(addresses.narrow), space(networks(policy.allowed_dns_servers)))
    return (*map(str, address_ranges.prefixes(left)), *(rule.destination_fqdns or ()))


def _unknown_host(word: str) -> str:
    if "*" not in word:
        return f"host {word} is no name of two labels or more"
    domain = "`allowedDnsDomains` of the policy file, or name each host"
    return f"host {word}: whose names these are is not known; where they are all yours, list the domain under {domain}"


def _is_wide(word: str, local: Space) -> bool:
    """Any destination, the tag Internet, a default prefix or range, or a public one shorter than /8 (IPv6: /32)."""
    if word.strip().lower() in EVERYWHERE:
        return True
    return any(is_default(one) or (_is_short(one) and is_public(one, local)) for one in _prefixes(word))


def _is_short(prefix: Network) -> bool:
    return prefix.prefixlen < WIDEST[prefix.version]


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


def _public(prefixes: Iterable[Network], local: Space) -> Space:
    """The public addresses of some prefixes, those of NAT64 as the IPv4 addresses that they are translated to."""
    whole, base = space(prefixes), int(NAT64.network_address)
    translated = ((4, first - base, last - base) for _, first, last in overlap(whole, space((NAT64,))))
    plain = address_ranges.without(whole, space((NAT64,)))
    return overlap(union((*plain, *translated)), internet(local))


def _together(spaces: Iterable[tuple[_Allow, Space]]) -> Iterator[tuple[str, Fill]]:
    """A sentence for each IP version where all rules together allow more than the widest prefix of a single one.

    Otherwise the internet could be allowed in pieces. A deny before an allow is not subtracted, as for single rules.
    """
    parts = [(allow, found) for allow, found in spaces if found]
    whole = union(span for _, found in parts for span in found)
    for version, length in WIDEST.items():
        if _size(whole, version) <= 1 << ((32 if version == 4 else 128) - length):
            continue
        ranked = sorted(parts, key=lambda part: (-_size(part[1], version), part[0].name))
        names = [allow.name for allow, found in ranked if _size(found, version)]
        words = f"{first_of(names, 3)} allow more public IPv{version} addresses than a /{length} together"
        yield words, next((allow.place for allow, found in ranked if allow.place and _size(found, version)), {})


def _size(found: Space, version: int) -> int:
    return sum(last - first + 1 for one, first, last in found if one == version)
