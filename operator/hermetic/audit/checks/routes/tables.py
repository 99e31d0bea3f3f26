"""User-defined routes that lead out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import ScopedSubnet, cluster_of, instance_nics_of
from hermetic.audit.cluster.resource_lookup import readable
from hermetic.audit.egress.methods import Methods, methods_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Lookup, Observation, not_answered
from hermetic.audit.evaluation.each_resource import each_subnet
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import networks, overlap, space, without
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, Hop, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.behind_firewall import behind_firewall
from hermetic.audit.rules.firewall import declared_addresses, leads_to_the_firewall
from hermetic.audit.rules.routes import NextHopKind, OutboundRoute, leads_to_appliance, routes_beyond
from hermetic.audit.rules.subnet_context import SubnetContext, surroundings

STAYS_UNDOCUMENTED = "Azure does not document what happens to such packets"


@dataclass(frozen=True, slots=True)
class ServedTable:
    """A route table that was read, and the context of each subnet that uses it."""

    observation: Lookup[RouteTable]
    table: RouteTable
    subnets: tuple[SubnetContext, ...]

    def lets_out(self, methods: Methods) -> bool:
        """Whether a route to the internet works in one of its subnets: default outbound access, or a method.

        A method that could not be read counts.
        """
        return any(not context.is_private or methods.may_serve(context.id) for context in self.subnets)


def each_table(
    estate: Estate, policy: Policy, evaluate: Callable[[ServedTable], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Apply `evaluate` to every route table of the cluster's subnets once; not applicable to a subnet without one."""
    by_table: defaultdict[str, list[SubnetContext]] = defaultdict(list)

    def gathered(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
        around = surroundings(estate, scoped, subnet)
        if around.table is None:
            yield does_not_apply(scoped.id, "NoRouteTable", "it has no route table", scoped.observation)
        else:
            by_table[around.table.target.lower()].append(around)

    yield from each_subnet(estate, policy, gathered)
    for subnets in by_table.values():
        table = subnets[0].table
        if table is not None and table.value is not None and not subnets[0].are_routes_seen:
            cut = not_answered(table.target, "list of routes")
            yield unknown(table.target, "RoutesNotSeen", "the routes of the table were not seen", cut, table)
        elif table is not None and table.value is not None:
            yield from whatever_is_damaged(table.target, evaluate(ServedTable(table, table.value, tuple(subnets))))
        elif table is not None:
            yield unknown(table.target, "RouteTableNotSeen", "the route table could not be read", table)


@check_each("route-default-internet", each_table)
def route_default_internet(estate: Estate, policy: Policy, served: ServedTable) -> Iterator[CheckResult]:
    """Critical where a method or default outbound access carries it; otherwise medium, since a method may be added."""
    default_routes = [
        route for route in _outbound_routes(served) if route.is_default and route.hop is NextHopKind.INTERNET
    ]
    carried = served.lets_out(methods_of(estate, policy))
    for outbound_route in default_routes:
        effect = "a method or default outbound access carries it" if carried else "nothing carries it today"
        yield fails(
            served.table.id,
            "DefaultToInternet",
            f"route {outbound_route.route.name}: {outbound_route.description}; {effect}",
            served.observation,
            paths=_paths(served, INTERNET),
            severity=None if carried else Severity.MEDIUM,
            fill={"RULE_NAME": outbound_route.route.name},
        )
    if not default_routes:
        yield passes(
            served.table.id, "NoDefaultToInternet", "no default route leads to the internet", served.observation
        )


@check_each("route-default-appliance", each_table)
def route_default_appliance(estate: Estate, policy: Policy, served: ServedTable) -> Iterator[CheckResult]:
    """A default route must have next hop `None`, or the declared firewall in the profile `filtered`."""
    defaults = [
        route for route in _outbound_routes(served) if route.is_default and route.hop is not NextHopKind.INTERNET
    ]
    addresses, observations = declared_addresses(estate, policy)
    unseen = [observation for observation in observations if observation.problem is not None]
    for outbound_route in defaults:
        if leads_to_the_firewall(outbound_route, addresses):
            message = "the default route leads to the declared firewall"
            yield passes(served.table.id, "ToTheFirewall", message, served.observation, *observations)
        elif unseen and outbound_route.hop is NextHopKind.FORWARDED:
            message = "the audit could not see whether the default route leads to the declared firewall"
            yield unknown(served.table.id, "FirewallNotSeen", message, *unseen)
        else:
            yield _default(served, outbound_route)
    if not defaults:
        message = "no default route leads to an appliance or a gateway"
        yield passes(served.table.id, "NoDefaultToAppliance", message, served.observation)


def _default(served: ServedTable, outbound_route: OutboundRoute) -> CheckResult:
    if outbound_route.hop is NextHopKind.DROPPED:
        return passes(served.table.id, "DefaultToNowhere", f"{outbound_route.description}", served.observation)
    if outbound_route.hop is NextHopKind.STAYS:
        message = f"route {outbound_route.route.name}: {outbound_route.description}; {STAYS_UNDOCUMENTED}"
        return unknown(served.table.id, "DefaultStays", message, served.observation)
    reason = "DefaultToUnknownHop" if outbound_route.hop is NextHopKind.UNKNOWN else "DefaultToAppliance"
    message = (
        f"route {outbound_route.route.name}: {outbound_route.description}; the host at that address decides about "
        "the internet"
    )
    paths = _paths(served, outbound_route.next_hop, INTERNET)
    return fails(
        served.table.id, reason, message, served.observation, paths=paths, fill={"RULE_NAME": outbound_route.route.name}
    )


@check_each("route-split-default", each_table)
def route_split_default(estate: Estate, policy: Policy, served: ServedTable) -> Iterator[CheckResult]:
    """Longer prefixes override the default route: its two halves, a public prefix, or a service tag."""
    other_routes = [route for route in _outbound_routes(served) if not route.is_default]
    for outbound_route in other_routes:
        yield _split(served, outbound_route, methods_of(estate, policy))
    yield from _beyond(estate, policy, served)
    if not other_routes:
        message = "every route but the default one is to private prefixes, or to our own"
        yield passes(served.table.id, "NoPublicPrefix", message, served.observation)


def _beyond(estate: Estate, policy: Policy, served: ServedTable) -> Iterator[CheckResult]:
    """Private prefixes of no network in reach that are sent to an appliance or gateway: not evaluated here."""
    addresses, observations = declared_addresses(estate, policy)
    per_subnet = [
        routes_beyond(served.table.routes, context.rule_context.local, with_v6=context.rule_context.has_v6)
        for context in served.subnets
    ]
    for outbound_route in dict.fromkeys(route for routes in per_subnet for route in routes):
        if leads_to_appliance(outbound_route.route, addresses):
            is_read = not _is_let_through(estate, policy, outbound_route)
        else:
            is_read = _is_to_pods(estate, outbound_route)
        if not is_read:
            message = (
                f"route {outbound_route.route.name}: {outbound_route.description}; the prefix is in no network in "
                "reach: the audit did not read what is there"
            )
            fill = {"RULE_NAME": outbound_route.route.name}
            yield unknown(served.table.id, "PrefixBeyond", message, served.observation, *observations, fill=fill)


def _is_let_through(estate: Estate, policy: Policy, outbound_route: OutboundRoute) -> bool:
    """Whether the rules of the declared firewall let packets into a part of this prefix that was not read."""
    behind = behind_firewall(estate, policy)
    return outbound_route.prefix is not None and (
        behind is None or bool(overlap(space((outbound_route.prefix,)), behind.beyond))
    )


def _is_to_pods(estate: Estate, outbound_route: OutboundRoute) -> bool:
    """Whether AKS made it: with kubenet it adds a route to each node for the pods there (configure-kubenet)."""
    cluster = cluster_of(estate).value
    profile = cluster.network_profile if cluster is not None else None
    if profile is None or outbound_route.prefix is None:
        return False
    pods = space(networks((*((profile.pod_cidr,) if profile.pod_cidr else ()), *(profile.pod_cidrs or ()))))
    return not without(
        space((outbound_route.prefix,)), pods
    ) and outbound_route.route.next_hop_ip_address in _node_addresses(estate)


@derived
def _node_addresses(estate: Estate) -> frozenset[str | None]:
    """Private addresses of the nodes: with kubenet there is a route for each."""
    unread: list[Observation] = []  # a route to what cannot be read is evaluated as any other
    nics = readable(
        instance_nics_of(estate),
        lambda nic: [configuration.private_ip_address for configuration in nic.ip_configurations],
        unread,
    )
    return frozenset(address for _, addresses in nics for address in addresses)


def _split(served: ServedTable, outbound_route: OutboundRoute, methods: Methods) -> CheckResult:
    if outbound_route.hop is NextHopKind.DROPPED:
        return passes(served.table.id, "PublicPrefixToNowhere", f"{outbound_route.description}", served.observation)
    if not outbound_route.route.address_prefix:
        message = f"route {outbound_route.route.name} names no prefix"
        return unknown(served.table.id, "PrefixUnknown", message, served.observation)
    if outbound_route.hop is NextHopKind.STAYS:
        message = f"route {outbound_route.route.name}: {outbound_route.description}; {STAYS_UNDOCUMENTED}"
        return unknown(served.table.id, "PublicPrefixStays", message, served.observation)
    reason = "ServiceTag" if outbound_route.prefix is None else "PublicPrefix"
    carried = outbound_route.hop is NextHopKind.INTERNET and served.lets_out(methods)
    return fails(
        served.table.id,
        reason,
        f"route {outbound_route.route.name}: {outbound_route.description}; it is longer than a default route to "
        "nowhere, and wins",
        served.observation,
        paths=_paths(served, outbound_route.next_hop),
        severity=Severity.CRITICAL if carried else None,
        fill={"RULE_NAME": outbound_route.route.name},
    )


def _outbound_routes(served: ServedTable) -> tuple[OutboundRoute, ...]:
    """The routes that are public for any subnet of the table: local address space differs between networks."""
    per_subnet = [context.outbound_routes for context in served.subnets]
    return tuple(dict.fromkeys(route for routes in per_subnet for route in routes))


def _paths(served: ServedTable, *next_hops: Hop) -> tuple[Path, ...]:
    return tuple(path_of(hops.subnet(name_of(context.id)), *next_hops) for context in served.subnets)
