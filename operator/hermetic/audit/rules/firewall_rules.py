"""What the rules of the declared firewall let out: each by itself, and all of their addresses together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hermetic.api.ip_ranges import Network
from hermetic.api.text import first_of
from hermetic.audit.cluster.resource_lookup import readable, values_of
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
from hermetic.audit.estate.observation import Observation, ObservedDocument, not_answered
from hermetic.audit.model import address_ranges
from hermetic.audit.model.address_ranges import Space, internet, is_default, is_public, networks, overlap, space, union
from hermetic.audit.policy.allowed_destinations import SHORTEST
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.remedies.filling import Fill
from hermetic.audit.rules.destinations import (
    OwnHosts,
    Recipient,
    host_in,
    is_of_an_instance,
    of_fqdn_tag,
    of_host,
    of_service_tag,
)
from hermetic.audit.rules.firewall import policies_of
from hermetic.audit.rules.firewall_sources import NAT64, RuleSources, prefixes_in, sources_of
from hermetic.audit.rules.own_hosts import own_hosts

EVERYWHERE = {"*", "internet", "any"}
TRANSLATION = {"firewallpolicynatrulecollection"}
FILTER = {"firewallpolicyfilterrulecollection"}
KNOWN_RULES = {"networkrule", "applicationrule"}
NAME_PORTS = {"53", "853"}
"""Of DNS, plain and over TLS."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rules of a firewall let out, which of them are not understood, and the observations.

    `unproven` are hosts of an unknown owner. `destinations` are the addresses that rules name, and that translations
    lead to; `public` those of rules that are public; `translated` those of translations. `first` are the values of the
    first wide rule of a policy, by placeholder of the remedy, and `first_sources` the sources of that rule. `accepted`
    are the entries of the policy file that were needed, `hosts` all hosts that rules name, `own_resources` the ids of
    the resources of ours among these hosts, `host_lists` the lists that do not have a host.
    """

    wide: tuple[str, ...]
    unclear: tuple[str, ...]
    unproven: tuple[str, ...]
    destinations: Space
    public: Space
    translated: Space
    observations: tuple[Observation, ...]
    first: Fill
    first_sources: RuleSources
    accepted: tuple[str, ...]
    hosts: frozenset[str]
    own_resources: tuple[str, ...]
    host_lists: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class _Allow:
    """A rule that allows, its name in messages, and its place as the remedy names it; none for a classic rule."""

    name: str
    rule: FirewallRule
    remedy_values: Fill
    sources: RuleSources


@dataclass(slots=True)
class _Addresses:
    """The destination addresses of a rule: words that stand for everything, tags, and prefixes narrow by themselves."""

    wide: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    """Entries of IP groups that are no addresses."""
    narrow: list[Network] = field(default_factory=list)


def rules_of(estate: Estate, policy: Policy, firewall: AzureFirewall, in_reach: Space | None) -> Rules:
    """All rules that packets from `in_reach` may match (None: from anywhere): classic ones, and those of policies."""
    problems: list[str] = []
    collections, observations = _collections(estate, firewall, problems)
    translated: list[Network] = []
    matching = [(rules, group, [*_sourced(estate, rules, in_reach, observations)]) for rules, group in collections]
    allows = list(_allowing(matching, problems, translated))
    hosts = frozenset(host_in(word) for allow in allows for word in _hosts(allow.rule))
    own, lists = own_hosts(estate, policy, sorted(hosts))
    observations += (*lists.shown, *(ObservedDocument(listing.evidence) for listing in lists.asked_in_vain))
    wide: dict[str, _Allow | None] = {}
    unproven: list[str] = []
    spaces: list[tuple[_Allow, Space]] = []
    destinations = [space(translated)]
    local = space(networks(policy.additional_private_ranges))
    for allow in allows:
        addresses = _addresses(estate, allow.rule, local, observations)
        wide |= dict.fromkeys((f"{allow.name} allows {target}" for target in _wide(allow.rule, addresses, own)), allow)
        problems.extend(f"{allow.name}: {description}" for description in _unclear_parts(allow, addresses, policy))
        unproven.extend(f"{allow.name}: {description}" for description in _unproven(allow.rule, own))
        spaces.append((allow, _public(addresses.narrow, local)))
        destinations.append(_destinations(allow.rule, addresses, policy))
    wide |= dict(_together(spaces))
    placed = {description: allow for description, allow in wide.items() if allow is not None and allow.remedy_values}
    first = placed[min(placed)] if placed else None  # Azure's lists have no guaranteed order
    return Rules(
        tuple(sorted(wide)),
        tuple(sorted(problems)),
        tuple(sorted(unproven)),
        union(span for destination_space in destinations for span in destination_space),
        union(span for allow, part in spaces for span in _beside_names(allow.rule, part, policy)),
        space(translated),
        tuple(observations),
        first.remedy_values if first is not None else {},
        first.sources if first is not None else RuleSources(matches=True),
        tuple(f"host {entry.host}: {entry.reason}" for entry in policy.allowed_hosts if entry.host in hosts),
        hosts,
        tuple(sorted(set(own.instances.values()))),
        tuple(lists.asked_in_vain),
    )


def _destinations(rule: FirewallRule, addresses: _Addresses, policy: Policy) -> Space:
    """The prefixes that a rule names."""
    return _beside_names(rule, space(addresses.narrow), policy)


def _beside_names(rule: FirewallRule, named: Space, policy: Policy) -> Space:
    """These addresses; a rule for DNS alone may name servers that the policy file lists."""
    ports = set(rule.destination_ports or ())
    if not ports or not ports <= NAME_PORTS:
        return named
    return address_ranges.without(named, space(networks(policy.allowed_dns_servers)))


def _collections(
    estate: Estate, firewall: AzureFirewall, problems: list[str]
) -> tuple[list[tuple[RuleCollection, str]], list[Observation]]:
    """Each collection with the id of its group, "" for a classic one; adds what cannot be read of it to `problems`."""
    listed, observations = _from_policies(estate, firewall)
    classic = (firewall.network_rule_collections, firewall.application_rule_collections, firewall.nat_rule_collections)
    listed += [(collection, "") for some in classic for collection in some or ()]
    return [(_salvaged(collection, problems), group) for collection, group in listed], observations


def _salvaged(collection: RuleCollection, problems: list[str]) -> RuleCollection:
    """The collection without what cannot be read of it, which goes to `problems`: one rule must not hide the others."""
    collection, damage = collection.salvaged()
    action, of_action = (None, ()) if collection.action is None else collection.action.salvaged()
    rules = [rule.salvaged() for rule in collection.rules or ()]
    of_rules = (item for _, damages in rules for item in damages)
    problems.extend(f"collection {collection.name}: {item.message}" for item in (*damage, *of_action, *of_rules))
    readable_rules = None if collection.rules is None else [rule for rule, _ in rules]
    return collection.model_copy(update={"action": action, "rules": readable_rules})


Sourced = list[tuple[FirewallRule, RuleSources]]


def _sourced(
    estate: Estate, collection: RuleCollection, in_reach: Space | None, observations: list[Observation]
) -> Iterator[tuple[FirewallRule, RuleSources]]:
    """The rules of a collection that packets from `in_reach` may match, with their sources."""
    for rule in collection.rules or ():
        sources = sources_of(estate, rule, in_reach, observations)
        if sources.matches:
            yield rule, sources


def _allowing(
    collections: Iterable[tuple[RuleCollection, str, Sourced]], problems: list[str], translated: list[Network]
) -> Iterator[_Allow]:
    """The rules that allow; adds collections that are not understood to `problems`, inside targets to `translated`."""
    for collection, group, rules in collections:
        action = (collection.action.type if collection.action is not None else None) or ""
        kind = (collection.rule_collection_type or "").lower()
        if action.lower() == "deny" and kind not in TRANSLATION:
            continue
        if collection.rules is None:
            problems.append(f"collection {collection.name}: the answer has no rules")
        if kind in TRANSLATION or (not group and action.lower() == "dnat"):
            problems.extend(_translated(collection, rules, translated))
            continue
        if action.lower() != "allow" or (group and kind not in FILTER):
            problems.append(
                f"collection {collection.name}: action {action!r}, type {collection.rule_collection_type!r}"
            )
            continue
        for rule, sources in rules:
            fill = _place(group, collection, rule) if group else {}
            yield _Allow(f"{collection.name}/{rule.name}", rule, fill, sources)


def _translated(collection: RuleCollection, rules: Sourced, translated: list[Network]) -> Iterator[str]:
    """Rules that send packets to another destination, which may be outside: a source may be private as well.

    learn.microsoft.com/powershell/module/az.network/new-azfirewallpolicynatrule: of a source 192.168.0.0/16, the
    destination 10.20.30.40 is translated to an address or a name. Where a name leads is up to DNS.
    """
    for rule, _ in rules:
        if not (rule.translated_address or rule.translated_fqdn):
            yield f"{collection.name}/{rule.name}: it does not name its translated address"
        if rule.translated_address and not is_inside(rule.translated_address):
            yield f"{collection.name}/{rule.name}: translates to {rule.translated_address}"
        elif rule.translated_address:
            translated += prefixes_in(rule.translated_address)
        if rule.translated_fqdn:
            yield f"{collection.name}/{rule.name}: translates to {rule.translated_fqdn}, and DNS decides where that is"


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
        for group, listed in readable(groups, lambda group: group.rule_collections, observations):
            if listed is None:
                observations.append(not_answered(group.id, "rule collections"))
            collections.extend((collection, group.id) for collection in listed or ())
    return collections, observations


def _addresses(estate: Estate, rule: FirewallRule, local: Space, observations: list[Observation]) -> _Addresses:
    addresses = _Addresses()
    for word in rule.destination_addresses or ():
        if _is_wide(word, local):
            addresses.wide.append(word)
        elif prefixes := prefixes_in(word):
            addresses.narrow.extend(prefixes)
        else:
            addresses.tags.append(word)
    for group_id in rule.destination_ip_groups or ():
        group = estate.one(IpGroup, group_id)
        observations.append(group)
        for _, texts in readable(values_of((group,)), lambda ip_group: ip_group.ip_addresses, observations):
            if texts is None:
                observations.append(not_answered(group_id, "addresses"))
            for word in texts or ():
                if _is_wide(word, local):
                    addresses.wide.append(f"{word} (IP group)")
                elif prefixes := prefixes_in(word):
                    addresses.narrow.extend(prefixes)
                else:
                    addresses.foreign.append(word)
    return addresses


def _hosts(rule: FirewallRule) -> tuple[str, ...]:
    return (*(rule.destination_fqdns or ()), *(rule.target_fqdns or ()), *(rule.target_urls or ()))


def _wide(rule: FirewallRule, addresses: _Addresses, own: OwnHosts) -> Iterator[str]:
    many = Recipient.OF_MANY_TENANTS
    yield from addresses.wide
    yield from (tag for tag in addresses.tags if of_service_tag(tag) is many)
    yield from (f"host {host}, which serves any tenant" for host in _hosts(rule) if of_host(host, own) is many)
    yield from (f"FQDN tag {tag}" for tag in rule.fqdn_tags or () if of_fqdn_tag(tag) is many)
    yield from (f"web category {category}" for category in rule.web_categories or ())


def _unclear_parts(allow: _Allow, addresses: _Addresses, policy: Policy) -> Iterator[str]:
    rule, unknown = allow.rule, Recipient.UNKNOWN
    if allow.remedy_values and (rule.rule_type or "").lower() not in KNOWN_RULES:
        yield f"rule type {rule.rule_type!r} is not known"
    aims = (rule.destination_addresses, rule.destination_ip_groups, _hosts(rule), rule.fqdn_tags, rule.web_categories)
    if not any(aims):
        yield "no destination is named"
    for kind, tags in (
        ("service tag", [tag for tag in addresses.tags if of_service_tag(tag) is unknown]),
        ("FQDN tag", [tag for tag in rule.fqdn_tags or () if of_fqdn_tag(tag) is unknown]),
    ):
        yield from (f"{kind} {tag}: it is not known whose instances it holds" for tag in tags)
    yield from (f"IP group entry {entry} is not an address" for entry in addresses.foreign)
    if NAME_PORTS & set(rule.destination_ports or ()) and (servers := _unlisted(rule, addresses, policy)):
        explanation = "a server that passes names on passes data on; list those that do not under `allowedDnsServers`"
        yield f"DNS to {', '.join(servers)}: {explanation}"


def _unproven(rule: FirewallRule, own: OwnHosts) -> Iterator[str]:
    """Hosts whose owner is not known."""
    return (_unknown_host(host, own) for host in _hosts(rule) if of_host(host, own) is Recipient.UNKNOWN)


def _unlisted(rule: FirewallRule, addresses: _Addresses, policy: Policy) -> tuple[str, ...]:
    """The named DNS servers of a rule that the policy file does not list."""
    left = address_ranges.without(space(addresses.narrow), space(networks(policy.allowed_dns_servers)))
    return (*map(str, address_ranges.prefixes(left)), *(rule.destination_fqdns or ()))


def _unknown_host(word: str, own: OwnHosts) -> str:
    host = host_in(word)
    if "*" in word:
        domain = "`allowedDnsDomains` of the policy file, or name each host"
        return (
            f"host {word}: it is not known whose names these are; where all are yours, list the domain under {domain}"
        )
    if "." not in host.strip(".") or prefixes_in(host):
        return f"host {word} is not a name of two labels or more"
    key = "accept it with a reason under `allowedHosts` of the policy file"
    if host in own.relays:
        return f"host {word} is of {own.relays[host]}; list its id under `allowedPrivateLinkServices`, or {key}"
    if is_of_an_instance(host):
        return f"host {word} is an instance of a service, and no list of our subscriptions has it; {key}"
    return (
        f"host {word}: its owner is not known; where it is yours, list its domain under `allowedDnsDomains`, or {key}"
    )


def _is_wide(word: str, local: Space) -> bool:
    """Any destination, the tag Internet, a default prefix or range, or a public one shorter than /8 (IPv6: /32)."""
    if word.strip().lower() in EVERYWHERE:
        return True
    return any(is_default(prefix) or (_is_short(prefix) and is_public(prefix, local)) for prefix in prefixes_in(word))


def _is_short(prefix: Network) -> bool:
    return prefix.prefixlen < SHORTEST[prefix.version]


def _public(prefixes: Iterable[Network], local: Space) -> Space:
    """The public addresses of some prefixes, those of NAT64 as the IPv4 addresses that they are translated to."""
    addresses, base = space(prefixes), int(NAT64.network_address)
    translated = ((4, first - base, last - base) for _, first, last in overlap(addresses, space((NAT64,))))
    plain = address_ranges.without(addresses, space((NAT64,)))
    return overlap(union((*plain, *translated)), internet(local))


def _together(spaces: Iterable[tuple[_Allow, Space]]) -> Iterator[tuple[str, _Allow | None]]:
    """A sentence for each IP version where all rules together allow more than the widest prefix of a single one.

    Otherwise the internet could be allowed in pieces. A deny before an allow is not subtracted, as for single rules.
    """
    parts = [(allow, addresses) for allow, addresses in spaces if addresses]
    all_addresses = union(span for _, addresses in parts for span in addresses)
    for version, length in SHORTEST.items():
        if _size(all_addresses, version) <= 1 << ((32 if version == 4 else 128) - length):
            continue
        ranked = sorted(parts, key=lambda part: (-_size(part[1], version), part[0].name))
        names = [allow.name for allow, addresses in ranked if _size(addresses, version)]
        message = f"{first_of(names, 3)} allow more public IPv{version} addresses than a /{length} together"
        yield (
            message,
            next((allow for allow, addresses in ranked if allow.remedy_values and _size(addresses, version)), None),
        )


def _size(addresses: Space, version: int) -> int:
    return sum(last - first + 1 for span_version, first, last in addresses if span_version == version)
