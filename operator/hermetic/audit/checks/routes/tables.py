"""User-defined routes that lead out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import ScopedSubnet, cluster_of, each_subnet, instance_nics_of, missing
from hermetic.audit.egress.address_ranges import networks, space, without
from hermetic.audit.egress.firewall import declared_addresses, leads_to_the_firewall
from hermetic.audit.egress.methods import Methods, methods_of
from hermetic.audit.egress.resource_lookup import readable
from hermetic.audit.egress.routes import NextHopKind, OutboundRoute, leads_to_appliance, ways_beyond
from hermetic.audit.egress.subnet_context import SubnetContext, surroundings
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation, Seen
from hermetic.audit.evaluation import CheckResult, does_not_apply, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.findings import Severity
from hermetic.audit.hops import INTERNET, Hop, Path, path_of
from hermetic.audit.policy import Policy


@dataclass(frozen=True, slots=True)
class ServedTable:
    """A route table that was read, and the context of each subnet that uses it."""

    seen: Seen[RouteTable]
    table: RouteTable
    subnets: tuple[SubnetContext, ...]

    def lets_out(self, methods: Methods) -> bool:
        """Whether a route to the internet works in one of its subnets: default outbound access, or a method.

        A method that could not be read counts.
        """
        return any(not one.is_private or methods.may_serve(one.id) for one in self.subnets)


def each_table(
    estate: Estate, policy: Policy, evaluate: Callable[[ServedTable], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Apply `evaluate` to every route table of the cluster's subnets once; not applicable to a subnet without one."""
    by_table: defaultdict[str, list[SubnetContext]] = defaultdict(list)

    def gathered(scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
        around = surroundings(estate, scoped, subnet)
        if around.table is None:
            yield does_not_apply(scoped.id, "NoRouteTable", "it has no route table", scoped.seen)
        else:
            by_table[around.table.target.lower()].append(around)

    yield from each_subnet(estate, policy, gathered)
    for subnets in by_table.values():
        seen = subnets[0].table
        if seen is not None and seen.value is not None and not subnets[0].are_routes_seen:
            cut = missing(f"{seen.target}: the answer has no list of routes")
            yield unknown(seen.target, "RoutesNotSeen", "the routes of the table were not seen", cut, seen)
        elif seen is not None and seen.value is not None:
            yield from whatever_is_damaged(seen.target, evaluate(ServedTable(seen, seen.value, tuple(subnets))))
        elif seen is not None:
            yield unknown(seen.target, "RouteTableNotSeen", "the route table could not be read", seen)


@check_each("route-default-internet", each_table)
def route_default_internet(estate: Estate, policy: Policy, served: ServedTable) -> Iterator[CheckResult]:
    """Critical where a method or default outbound access carries it; otherwise medium, since a method may be added."""
    found = [way for way in _ways(served) if way.is_default and way.hop is NextHopKind.INTERNET]
    carried = served.lets_out(methods_of(estate, policy))
    for way in found:
        words = "a method or default outbound access carries it" if carried else "nothing carries it today"
        yield fails(
            served.table.id,
            "DefaultToInternet",
            f"route {way.route.name}: {way.words}; {words}",
            served.seen,
            paths=_paths(served, INTERNET),
            severity=None if carried else Severity.MEDIUM,
            fill={"RULE_NAME": way.route.name},
        )
    if not found:
        yield passes(served.table.id, "NoDefaultToInternet", "no default route leads to the internet", served.seen)


@check_each("route-default-appliance", each_table)
def route_default_appliance(estate: Estate, policy: Policy, served: ServedTable) -> Iterator[CheckResult]:
    """A default route must have next hop `None`, or the declared firewall in the profile `filtered`."""
    defaults = [way for way in _ways(served) if way.is_default and way.hop is not NextHopKind.INTERNET]
    addresses, observations = declared_addresses(estate, policy)
    unseen = [observation for observation in observations if observation.problem is not None]
    for way in defaults:
        if leads_to_the_firewall(way, addresses):
            words = "the default route leads to the declared firewall"
            yield passes(served.table.id, "ToTheFirewall", words, served.seen, *observations)
        elif unseen and way.hop is NextHopKind.FORWARDED:
            words = "whether the default route leads to the declared firewall could not be seen"
            yield unknown(served.table.id, "FirewallNotSeen", words, *unseen)
        else:
            yield _default(served, way)
    if not defaults:
        words = "no default route leads to an appliance or a gateway"
        yield passes(served.table.id, "NoDefaultToAppliance", words, served.seen)


def _default(served: ServedTable, way: OutboundRoute) -> CheckResult:
    if way.hop is NextHopKind.DROPPED:
        return passes(served.table.id, "DefaultToNowhere", f"{way.words}", served.seen)
    if way.hop is NextHopKind.STAYS:
        words = f"route {way.route.name}: {way.words}; what becomes of such packets is not documented"
        return unknown(served.table.id, "DefaultStays", words, served.seen)
    reason = "DefaultToUnknownHop" if way.hop is NextHopKind.UNKNOWN else "DefaultToAppliance"
    words = f"route {way.route.name}: {way.words}; what runs at that address decides about the internet"
    paths = _paths(served, way.next_hop, INTERNET)
    return fails(served.table.id, reason, words, served.seen, paths=paths, fill={"RULE_NAME": way.route.name})


@check_each("route-split-default", each_table)
def route_split_default(estate: Estate, policy: Policy, served: ServedTable) -> Iterator[CheckResult]:
    """Longer prefixes override the default route: its two halves, a public prefix, or a service tag."""
    found = [way for way in _ways(served) if not way.is_default]
    for way in found:
        yield _split(served, way, methods_of(estate, policy))
    yield from _beyond(estate, policy, served)
    if not found:
        words = "every route but the default one is to private prefixes, or to our own"
        yield passes(served.table.id, "NoPublicPrefix", words, served.seen)


def _beyond(estate: Estate, policy: Policy, served: ServedTable) -> Iterator[CheckResult]:
    """Private prefixes of no network in reach that are sent to an appliance or gateway: not evaluated here."""
    addresses, observations = declared_addresses(estate, policy)
    per_subnet = [
        ways_beyond(served.table.routes, one.ground.local, with_v6=one.ground.has_v6) for one in served.subnets
    ]
    for way in dict.fromkeys(way for ways in per_subnet for way in ways):
        if not (leads_to_appliance(way.route, addresses) or _is_to_pods(estate, way)):
            words = (
                f"route {way.route.name}: {way.words}; the prefix is in no network in reach: what is there was not read"
            )
            fill = {"RULE_NAME": way.route.name}
            yield unknown(served.table.id, "PrefixBeyond", words, served.seen, *observations, fill=fill)


def _is_to_pods(estate: Estate, way: OutboundRoute) -> bool:
    """Whether AKS made it: with kubenet it adds a route to each node for the pods there (configure-kubenet)."""
    cluster = cluster_of(estate).value
    profile = cluster.network_profile if cluster is not None else None
    if profile is None or way.prefix is None:
        return False
    pods = space(networks((*((profile.pod_cidr,) if profile.pod_cidr else ()), *(profile.pod_cidrs or ()))))
    return not without(space((way.prefix,)), pods) and way.route.next_hop_ip_address in _node_addresses(estate)


@derived
def _node_addresses(estate: Estate) -> frozenset[str | None]:
    """Private addresses of the nodes: with kubenet there is a route for each."""
    unread: list[Observation] = []  # a route to what cannot be read is evaluated as any other
    nics = readable(
        instance_nics_of(estate), lambda one: [each.private_ip_address for each in one.ip_configurations], unread
    )
    return frozenset(address for _, held in nics for address in held)


def _split(served: ServedTable, way: OutboundRoute, methods: Methods) -> CheckResult:
    if way.hop is NextHopKind.DROPPED:
        return passes(served.table.id, "PublicPrefixToNowhere", f"{way.words}", served.seen)
    if not way.route.address_prefix:
        words = f"route {way.route.name} names no prefix"
        return unknown(served.table.id, "PrefixUnknown", words, served.seen)
    if way.hop is NextHopKind.STAYS:
        words = f"route {way.route.name}: {way.words}; what becomes of such packets is not documented"
        return unknown(served.table.id, "PublicPrefixStays", words, served.seen)
    reason = "ServiceTag" if way.prefix is None else "PublicPrefix"
    carried = way.hop is NextHopKind.INTERNET and served.lets_out(methods)
    return fails(
        served.table.id,
        reason,
        f"route {way.route.name}: {way.words}; it is longer than a default route to nowhere, and wins",
        served.seen,
        paths=_paths(served, way.next_hop),
        severity=Severity.CRITICAL if carried else None,
        fill={"RULE_NAME": way.route.name},
    )


def _ways(served: ServedTable) -> tuple[OutboundRoute, ...]:
    """The routes that are public for any subnet of the table: local address space differs between networks."""
    per_subnet = [one.ways for one in served.subnets]
    return tuple(dict.fromkeys(way for ways in per_subnet for way in ways))


def _paths(served: ServedTable, *places: Hop) -> tuple[Path, ...]:
    return tuple(path_of(hops.subnet(name_of(one.id)), *places) for one in served.subnets)
