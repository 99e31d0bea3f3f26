"""The effective route table of a sentinel, as Azure reports it for the sentinel's subnet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.text import first_of
from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import missing
from hermetic.audit.egress.address_ranges import is_default, is_public, network
from hermetic.audit.egress.firewall import declared_addresses
from hermetic.audit.egress.methods import Methods, methods_of
from hermetic.audit.egress.routes import NextHopKind, hop_of, next_hop
from hermetic.audit.egress.sentinels import each_sentinel, unless_locked
from hermetic.audit.egress.service_endpoints import storage_reach
from hermetic.audit.egress.subnet_context import SubnetContext
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.effective import EffectiveRoute, EffectiveRoutes
from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, Seen
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown
from hermetic.audit.findings import Severity
from hermetic.audit.hops import INTERNET, SERVICE_ENDPOINT, Path, path_of, written
from hermetic.audit.policy import Policy

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """The context of an effective route, which decides its severity."""

    around: SubnetContext
    methods: Methods
    firewall: tuple[str, ...]
    firewall_observations: tuple[Observation, ...]

    @property
    def carries(self) -> bool:
        """Whether a route to the internet works here: default outbound access is on, or a method was found."""
        return not self.around.is_private or bool(self.methods.of(self.around.id))

    @property
    def firewall_is_unseen(self) -> bool:
        """Whether the declared firewall could not be read, so that an appliance may be the declared one."""
        return any(observation.problem is not None for observation in self.firewall_observations)


class RouteKind:
    """Groups of effective routes; one finding each."""

    CARRIED = "RouteToInternet"
    IDLE = "IdleRouteToInternet"
    SYSTEM = "SystemRoute"
    FIREWALL = "DeclaredFirewall"
    APPLIANCE = "DefaultToAppliance"
    FORWARDED = "PublicPrefixForwarded"
    SERVICE = "ServiceEndpoint"
    UNSEEN_FIREWALL = "FirewallNotSeen"
    UNKNOWN = "HopUnknown"


@check_each("effective-routes", each_sentinel)
def effective_routes(
    estate: Estate, policy: Policy, around: SubnetContext, nic: NetworkInterface
) -> Iterator[CheckResult]:
    """The whole effective route table of each sentinel, for its subnet."""
    seen = estate.asked(EffectiveRoutes, nic.id)
    asked = Asked(around, methods_of(estate, policy), *declared_addresses(estate, policy))
    if seen.value is None:
        result = unknown(around.id, "RoutesNotSeen", f"effective routes of {nic.name} were not answered", seen)
        yield unless_locked(estate, policy, nic, seen, result)
    elif not seen.value.value:
        odd = missing(f"{nic.id}: no effective route, and every running machine has some")
        yield unknown(around.id, "NoRoutes", "the list of effective routes is empty", seen, odd)
    else:
        found = _by_kind(asked, seen.value.value)
        yield from _results(estate, policy, asked, found, seen)


def _by_kind(asked: Asked, routes: list[EffectiveRoute]) -> dict[str, list[Path]]:
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for route in routes:
        if (route.state or "").lower() != "invalid":
            for prefix in route.address_prefix or [""]:
                kind = _kind(asked, route, prefix)
                if kind:
                    hop = next_hop(route.next_hop_type, str(route.next_hop_type))
                    found[kind].append(path_of(prefix or "no prefix", hop))
    return {kind: sorted(found[kind], key=written) for kind in sorted(found)}


def _kind(asked: Asked, route: EffectiveRoute, text: str) -> str:
    """The group of one effective route; "" for one that does not lead out."""
    hop, prefix = hop_of(route.next_hop_type), network(text)
    if not text:
        return "" if hop in {NextHopKind.DROPPED, NextHopKind.STAYS} else RouteKind.UNKNOWN
    is_a_default = prefix is not None and is_default(prefix)
    # Anything but a prefix is a service tag: public addresses, which are not expanded here.
    if prefix is not None and not is_a_default and not is_public(prefix, asked.around.ground.local):
        return RouteKind.UNKNOWN if hop is NextHopKind.UNKNOWN else ""
    if hop is NextHopKind.INTERNET:
        return _to_internet(asked, route, is_a_default)
    if hop is NextHopKind.FORWARDED:
        return _forwarded(asked, route, is_a_default)
    return {NextHopKind.SERVICE: RouteKind.SERVICE, NextHopKind.UNKNOWN: RouteKind.UNKNOWN}.get(hop, "")


def _to_internet(asked: Asked, route: EffectiveRoute, is_a_default: bool) -> str:
    """Microsoft's edge is not the internet and needs no known method."""
    if (route.next_hop_type or "").lower() != "internet":
        return RouteKind.FORWARDED
    if asked.carries:
        return RouteKind.CARRIED
    return RouteKind.SYSTEM if (route.source or "").lower() == "default" and is_a_default else RouteKind.IDLE


def _forwarded(asked: Asked, route: EffectiveRoute, is_a_default: bool) -> str:
    if (route.next_hop_type or "").lower() != "virtualappliance":
        return RouteKind.FORWARDED
    if is_a_default and asked.firewall and set(route.next_hop_ip_address or [""]) <= set(asked.firewall):
        return RouteKind.FIREWALL
    if asked.firewall_is_unseen:
        return RouteKind.UNSEEN_FIREWALL
    return RouteKind.APPLIANCE if is_a_default else RouteKind.FORWARDED


def _results(
    estate: Estate, policy: Policy, asked: Asked, found: dict[str, list[Path]], seen: Seen[EffectiveRoutes]
) -> Iterator[CheckResult]:
    subnet, subnet_id = hops.subnet(name_of(asked.around.id)), asked.around.id
    severities = {
        RouteKind.CARRIED: Severity.CRITICAL,
        RouteKind.IDLE: Severity.MEDIUM if asked.methods.are_all_seen else Severity.CRITICAL,
        RouteKind.APPLIANCE: Severity.CRITICAL,
        RouteKind.FORWARDED: Severity.HIGH,
    }
    for kind, routes in found.items():
        if kind in severities:
            paths = tuple((subnet, one[-1], INTERNET) for one in routes[:SHOWN])
            fill = {"SENTINEL_NIC_ID": seen.target}
            yield fails(subnet_id, kind, _words(routes), seen, paths=paths, severity=severities[kind], fill=fill)
        elif kind == RouteKind.SERVICE:
            yield _service(estate, policy, asked, routes, seen)
        elif kind == RouteKind.UNSEEN_FIREWALL:
            words = "whether the appliance is the declared firewall could not be seen"
            yield unknown(subnet_id, kind, words, seen, *asked.firewall_observations)
        elif kind == RouteKind.UNKNOWN:
            yield unknown(subnet_id, kind, f"where it leads is not known: {_words(routes)}", seen)
    note = ""
    observations: tuple[Observation, ...] = (seen,)
    if RouteKind.SYSTEM in found:
        note = (
            "; Azure's own 0.0.0.0/0 -> Internet is there, and nothing carries it: private subnet, no outbound method"
        )
        observations = (*observations, *asked.methods.observations)
    if RouteKind.FIREWALL in found:
        note += "; the default route leads to the declared firewall"
        observations = (*observations, *asked.firewall_observations)
    yield passes(subnet_id, "NoEffectiveWayOut", f"no other effective route leads out{note}", *observations)


def _service(
    estate: Estate, policy: Policy, asked: Asked, routes: list[Path], seen: Seen[EffectiveRoutes]
) -> CheckResult:
    """The severity is that of the endpoint itself: its policy decides what is reachable."""
    reach = storage_reach(estate, policy, asked.around.subnet)
    path = path_of(hops.subnet(name_of(asked.around.id)), SERVICE_ENDPOINT, "any account it reaches")
    if reach is None:
        others = sorted({one.service for one in asked.around.subnet.service_endpoints if one.service})
        detail = (
            f"the subnet has endpoints to {', '.join(others)} only" if others else "no policy of the subnet narrows it"
        )
        words = f"service endpoint route, past every route of ours: {_words(routes)}; {detail}"
        severity = Severity.HIGH if others else Severity.CRITICAL
        observations, fill = (seen, asked.around.subnet), {"SENTINEL_NIC_ID": seen.target}
        return fails(
            asked.around.id, RouteKind.SERVICE, words, *observations, paths=(path,), severity=severity, fill=fill
        )
    words = f"service endpoint route, past every route of ours: {_words(routes)}; {reach.words}"
    if reach.severity is None:
        return unknown(asked.around.id, RouteKind.SERVICE, words, seen, *reach.observations)
    fill = {"SENTINEL_NIC_ID": seen.target}
    return fails(asked.around.id, RouteKind.SERVICE, words, seen, paths=(path,), severity=reach.severity, fill=fill)


def _words(routes: list[Path]) -> str:
    return first_of(list(map(written, routes)), SHOWN)
