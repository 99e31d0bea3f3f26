"""A firewall is a path out: every one that packets can reach is a finding, except the declared one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, summarize_address_range

from hermetic.api.ip_ranges import Network
from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.checks.topology.destinations import is_of_many_tenants, is_of_microsoft, is_wildcard_of_many
from hermetic.audit.cluster_scope import missing, network_ids_of, peerings_of, subnets_of, whole_or_unknown
from hermetic.audit.egress.address_ranges import is_default, is_public
from hermetic.audit.egress.address_ranges import network as prefix_of
from hermetic.audit.estate.arm_ids import group_of, is_below, name_of, parent_of, same_id, subscription_of
from hermetic.audit.estate.azure.managed_services import (
    AzureFirewall,
    FirewallPolicy,
    FirewallRule,
    IpGroup,
    RuleCollection,
    RuleCollectionGroup,
)
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes
from hermetic.audit.findings import Severity
from hermetic.audit.gateway_finding import Joined, hub_connections, joins
from hermetic.audit.hops import INTERNET, NODE_SUBNETS, Hop, Path, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import is_in, reached_network_ids, throughout
from hermetic.audit.remedies.filling import Fill
from hermetic.audit.topology import PlaceKind

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
    observations: tuple[Observation, ...]
    first: Fill


def rules_of(estate: Estate, firewall: AzureFirewall) -> Rules:
    """All rules: classic ones, and those of its policy and the base policies of that."""
    collections, observations = _from_policies(estate, firewall)
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
            found = [f"{name} allows {words}" for words in _wide(estate, rule, observations)]
            if group:
                named |= dict.fromkeys(found, _named(group, collection, rule))
            wide.extend(found)
            odd.extend(f"{name}: {words}" for words in _odd(rule, classic=not group))
    first = named[min(named)] if named else {}  # Azure's lists have no guaranteed order
    return Rules(tuple(sorted(wide)), tuple(sorted(odd)), tuple(observations), first)


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
    observations: list[Observation] = []
    collections: list[tuple[RuleCollection, str]] = []
    reference, known = firewall.firewall_policy, set[str]()
    while reference is not None and reference.id.lower() not in known:
        known.add(reference.id.lower())
        policy = estate.one(FirewallPolicy, reference.id)
        groups = estate.every(RuleCollectionGroup, reference.id)
        observations.extend((policy, groups))
        for group in groups:
            if group.rule_collections is None:
                observations.append(missing(f"{group.id}: the answer has no rule collections"))
            collections.extend((one, group.id) for one in group.rule_collections or ())
        reference = policy.value.base_policy if policy.value is not None else None
    return collections, observations


def _is_translation(collection: RuleCollection) -> bool:
    return (collection.rule_collection_type or "").lower() in TRANSLATION


def _wide(estate: Estate, rule: FirewallRule, observations: list[Observation]) -> Iterator[str]:
    yield from (word for word in rule.destination_addresses or () if _is_wide(word) or is_of_many_tenants(word))
    hosts = (*(rule.destination_fqdns or ()), *(rule.target_fqdns or ()), *(rule.target_urls or ()))
    yield from (f"host {word}" for word in hosts if is_wildcard_of_many(word))
    yield from (f"web category {word}" for word in rule.web_categories or ())
    for group_id in rule.destination_ip_groups or ():
        group = estate.one(IpGroup, group_id)
        observations.append(group)
        if group.value is not None and group.value.ip_addresses is None:
            observations.append(missing(f"{group_id}: the answer has no addresses"))
        addresses = (group.value.ip_addresses or ()) if group.value is not None else ()
        yield from (f"{word} (IP group)" for word in addresses if _is_wide(word))


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
    tags = [one for one in rule.destination_addresses or () if not (_prefixes(one) or _is_wide(one))]
    yield from (
        f"service tag {one}: whose instances it holds is not known"
        for one in tags
        if not (is_of_many_tenants(one) or is_of_microsoft(one))
    )


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


@check("firewall-in-path")
def firewall_in_path(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Firewalls in the network, in a peer, in a connected hub or behind a route; and the rules of the declared one."""
    firewalls = throughout(estate, policy, AzureFirewall)
    others = firewalls.where(lambda one: not _is_declared(one.id, policy))
    next_hops, tables = _next_hops(estate)
    for firewall in others:
        yield from _reached(estate, policy, firewall, next_hops)
    if policy.profile == "filtered":
        yield from _declared(estate, policy)
    observations = (firewalls, peerings_of(estate), *tables)
    if others.items:
        yield from whole_or_unknown(estate.cluster, "firewalls in reach", *observations)
    else:
        yield passes(estate.cluster, "NoFirewall", "there is no firewall but a declared one", *observations)


def _is_declared(firewall: str, policy: Policy) -> bool:
    return policy.profile == "filtered" and same_id(firewall, policy.firewall)


def _next_hops(estate: Estate) -> tuple[frozenset[str], tuple[Observation, ...]]:
    """Next hop addresses of the routes of the cluster's subnets."""
    subnets = [one.seen for one in subnets_of(estate)[0]]
    ids = {
        seen.value.route_table.id.lower(): seen.value.route_table.id
        for seen in subnets
        if seen.value is not None and seen.value.route_table is not None
    }
    tables = [estate.one(RouteTable, one) for _, one in sorted(ids.items())]
    routes = [route for table in tables if table.value is not None for route in table.value.routes or ()]
    return frozenset(one.next_hop_ip_address for one in routes if one.next_hop_ip_address), (*subnets, *tables)


def _reached(estate: Estate, policy: Policy, firewall: AzureFirewall, next_hops: frozenset[str]) -> Iterator[Judgement]:
    observations: tuple[Observation, ...] = (firewall,)
    own = frozenset(one.lower() for one in network_ids_of(estate))
    way: Path = ()
    if is_in(firewall.subnet_ids, own):
        way = (NODE_SUBNETS,)
    elif is_in(firewall.subnet_ids, reached_network_ids(estate)):
        way = path_of(NODE_SUBNETS, hops.peer("peering"))
    elif next_hops & set(firewall.private_addresses):
        way = path_of(NODE_SUBNETS, Hop(PlaceKind.ROUTE_TABLE, "route table"))
    elif firewall.virtual_hub is not None:
        joined = hub_connections(estate, policy)
        observations = (firewall, joined)
        if any(is_below(f"{one.connection.id}/", firewall.virtual_hub.id) and _is_ours(estate, one) for one in joined):
            way = path_of(NODE_SUBNETS, hops.peer(f"virtual hub {name_of(firewall.virtual_hub.id)}"))
    if way:
        words = "packets can come to this firewall; whether they leave is up to its rules"
        yield fails(
            firewall.id,
            "FirewallInReach",
            words,
            *observations,
            paths=(path_of(*way, hops.firewall(f"firewall {firewall.name}"), INTERNET),),
        )
    else:
        yield passes(
            firewall.id, "OutOfReach", "no peering, hub or route leads to it", *observations, peerings_of(estate)
        )


def _is_ours(estate: Estate, joined: Joined) -> bool:
    return any(joins(joined, one) for one in network_ids_of(estate))


def _declared(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """The declared firewall of the profile `filtered`: no rule may allow arbitrary destinations."""
    seen = estate.one(AzureFirewall, policy.firewall)
    if seen.value is None:
        words = "the declared firewall could not be read"
        yield cannot_say(policy.firewall, "FirewallNotSeen", words, seen, severity=Severity.CRITICAL)
        return
    rules = rules_of(estate, seen.value)
    observations = (seen, *rules.observations)
    if rules.wide:
        path = path_of(
            NODE_SUBNETS, hops.peer("peering"), hops.firewall(f"firewall {name_of(policy.firewall)}"), INTERNET
        )
        words = f"rules let anything out: {'; '.join(rules.wide)}"
        critical = Severity.CRITICAL
        yield fails(
            policy.firewall, "AllowsAnything", words, *observations, paths=(path,), severity=critical, fill=rules.first
        )
    elif rules.odd:
        words = f"rules are not understood: {'; '.join(rules.odd)}"
        yield cannot_say(policy.firewall, "RuleUnknown", words, *observations, severity=Severity.CRITICAL)
    else:
        words = "every rule names what it allows"
        yield passes(policy.firewall, "NamedOnly", words, *observations, severity=Severity.CRITICAL)
