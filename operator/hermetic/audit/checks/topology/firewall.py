"""A firewall is a path out: every one that packets can reach is a finding, except the declared one."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.checks.topology.firewall_rules import rules_of
from hermetic.audit.cluster_scope import found_or_none, network_ids_of, peerings_of, subnets_of
from hermetic.audit.estate.arm_ids import is_below, name_of, same_id
from hermetic.audit.estate.azure.managed_services import AzureFirewall
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown
from hermetic.audit.findings import Severity
from hermetic.audit.gateway_finding import Joined, hub_connections, joins
from hermetic.audit.hops import INTERNET, NODE_SUBNETS, Hop, Path, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import is_in, reached_network_ids, throughout
from hermetic.audit.topology import PlaceKind


@check("firewall-in-path")
def firewall_in_path(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Firewalls in the network, in a peer, in a connected hub or behind a route; and the rules of the declared one."""
    firewalls = throughout(estate, policy, AzureFirewall)
    others = firewalls.where(lambda one: not _is_declared(one.id, policy))
    next_hops, tables = _next_hops(estate)
    for firewall in others:
        yield from _reached(estate, policy, firewall, next_hops)
    if policy.profile == "filtered":
        yield from _declared(estate, policy)
    observations = (firewalls, peerings_of(estate), *tables)
    none = ("NoFirewall", "there is no firewall but a declared one")
    yield from found_or_none(estate.cluster, others, "firewalls in reach", none, *observations)


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


def _reached(
    estate: Estate, policy: Policy, firewall: AzureFirewall, next_hops: frozenset[str]
) -> Iterator[CheckResult]:
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


def _declared(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """The declared firewall of the profile `filtered`: no rule may allow arbitrary destinations."""
    seen = estate.one(AzureFirewall, policy.firewall)
    if seen.value is None:
        words = "the declared firewall could not be read"
        yield unknown(policy.firewall, "FirewallNotSeen", words, seen, severity=Severity.CRITICAL)
        return
    rules = rules_of(estate, policy, seen.value)
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
        yield unknown(policy.firewall, "RuleUnknown", words, *observations, severity=Severity.CRITICAL)
    else:
        words = "every rule names what it allows"
        yield passes(policy.firewall, "NamedOnly", words, *observations, severity=Severity.CRITICAL)
