"""The effective route table of a sentinel, as Azure reports it for the sentinel's subnet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.text import first_of
from hermetic.audit.checks.family import check_each
from hermetic.audit.egress.methods import Methods, methods_of
from hermetic.audit.egress.service_endpoints import storage_reach
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.effective import EffectiveRoute, EffectiveRoutes
from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation, missing
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.evaluation.sentinels import each_sentinel, unless_locked
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import is_default, is_public, network
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, SERVICE_ENDPOINT, Path, path_of, written
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import declared_addresses
from hermetic.audit.rules.routes import NextHopKind, hop_of, next_hop
from hermetic.audit.rules.subnet_context import SubnetContext

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
    observation = estate.asked(EffectiveRoutes, nic.id)
    question = Asked(around, methods_of(estate, policy), *declared_addresses(estate, policy))
    if observation.value is None:
        result = unknown(around.id, "RoutesNotSeen", f"effective routes of {nic.name} were not answered", observation)
        yield unless_locked(estate, policy, nic, observation, result)
    elif not observation.value.value:
        gap = missing(f"{nic.id}: no effective route, and every running machine has some")
        yield unknown(around.id, "NoRoutes", "the list of effective routes is empty", observation, gap)
    else:
        paths_by_kind = _by_kind(question, observation.value.value)
        yield from _results(estate, policy, question, paths_by_kind, observation)


def _by_kind(question: Asked, routes: list[EffectiveRoute]) -> dict[str, list[Path]]:
    paths_by_kind: defaultdict[str, list[Path]] = defaultdict(list)
    for route in routes:
        if (route.state or "").lower() != "invalid":
            for prefix in route.address_prefix or [""]:
                kind = _kind(question, route, prefix)
                if kind:
                    hop = next_hop(route.next_hop_type, str(route.next_hop_type))
                    paths_by_kind[kind].append(path_of(prefix or "no prefix", hop))
    return {kind: sorted(paths_by_kind[kind], key=written) for kind in sorted(paths_by_kind)}


def _kind(question: Asked, route: EffectiveRoute, text: str) -> str:
    """The group of one effective route; "" for one that does not lead out."""
    hop, prefix = hop_of(route.next_hop_type), network(text)
    if not text:
        return "" if hop in {NextHopKind.DROPPED, NextHopKind.STAYS} else RouteKind.UNKNOWN
    is_a_default = prefix is not None and is_default(prefix)
    # Anything but a prefix is a service tag: public addresses, which are not expanded here.
    if prefix is not None and not is_a_default and not is_public(prefix, question.around.rule_context.local):
        return RouteKind.UNKNOWN if hop is NextHopKind.UNKNOWN else ""
    if hop is NextHopKind.INTERNET:
        return _to_internet(question, route, is_a_default)
    if hop is NextHopKind.FORWARDED:
        return _forwarded(question, route, is_a_default)
    return {NextHopKind.SERVICE: RouteKind.SERVICE, NextHopKind.UNKNOWN: RouteKind.UNKNOWN}.get(hop, "")


def _to_internet(question: Asked, route: EffectiveRoute, is_a_default: bool) -> str:
    """Microsoft's edge is not the internet and needs no known method."""
    if (route.next_hop_type or "").lower() != "internet":
        return RouteKind.FORWARDED
    if question.carries:
        return RouteKind.CARRIED
    return RouteKind.SYSTEM if (route.source or "").lower() == "default" and is_a_default else RouteKind.IDLE


def _forwarded(question: Asked, route: EffectiveRoute, is_a_default: bool) -> str:
    if (route.next_hop_type or "").lower() != "virtualappliance":
        return RouteKind.FORWARDED
    if is_a_default and question.firewall and set(route.next_hop_ip_address or [""]) <= set(question.firewall):
        return RouteKind.FIREWALL
    if question.firewall_is_unseen:
        return RouteKind.UNSEEN_FIREWALL
    return RouteKind.APPLIANCE if is_a_default else RouteKind.FORWARDED


def _results(
    estate: Estate,
    policy: Policy,
    question: Asked,
    paths_by_kind: dict[str, list[Path]],
    observation: Lookup[EffectiveRoutes],
) -> Iterator[CheckResult]:
    subnet, subnet_id = hops.subnet(name_of(question.around.id)), question.around.id
    severities = {
        RouteKind.CARRIED: Severity.CRITICAL,
        RouteKind.IDLE: Severity.MEDIUM if question.methods.are_all_seen else Severity.CRITICAL,
        RouteKind.APPLIANCE: Severity.CRITICAL,
        RouteKind.FORWARDED: Severity.HIGH,
    }
    for kind, routes in paths_by_kind.items():
        if kind in severities:
            paths = tuple((subnet, path[-1], INTERNET) for path in routes[:SHOWN])
            fill = {"SENTINEL_NIC_ID": observation.target}
            yield fails(subnet_id, kind, _words(routes), observation, paths=paths, severity=severities[kind], fill=fill)
        elif kind == RouteKind.SERVICE:
            yield _service(estate, policy, question, routes, observation)
        elif kind == RouteKind.UNSEEN_FIREWALL:
            message = "the audit could not see whether the appliance is the declared firewall"
            yield unknown(subnet_id, kind, message, observation, *question.firewall_observations)
        elif kind == RouteKind.UNKNOWN:
            yield unknown(subnet_id, kind, f"where it leads is not known: {_words(routes)}", observation)
    note = ""
    observations: tuple[Observation, ...] = (observation,)
    if RouteKind.SYSTEM in paths_by_kind:
        note = (
            "; Azure's own 0.0.0.0/0 -> Internet is there, and nothing carries it: private subnet, no outbound method"
        )
        observations = (*observations, *question.methods.observations)
    if RouteKind.FIREWALL in paths_by_kind:
        note += "; the default route leads to the declared firewall"
        observations = (*observations, *question.firewall_observations)
    yield passes(subnet_id, "NoEffectiveWayOut", f"no other effective route leads out{note}", *observations)


def _service(
    estate: Estate, policy: Policy, question: Asked, routes: list[Path], observation: Lookup[EffectiveRoutes]
) -> CheckResult:
    """The severity is that of the endpoint itself: its policy decides what is reachable."""
    reach = storage_reach(estate, policy, question.around.subnet)
    path = path_of(hops.subnet(name_of(question.around.id)), SERVICE_ENDPOINT, "any account it reaches")
    if reach is None:
        services = sorted(
            {endpoint.service for endpoint in question.around.subnet.service_endpoints if endpoint.service}
        )
        detail = (
            f"the subnet has endpoints to {', '.join(services)} only"
            if services
            else "no policy of the subnet narrows it"
        )
        message = f"service endpoint route, past every route of ours: {_words(routes)}; {detail}"
        severity = Severity.HIGH if services else Severity.CRITICAL
        observations, fill = (observation, question.around.subnet), {"SENTINEL_NIC_ID": observation.target}
        return fails(
            question.around.id, RouteKind.SERVICE, message, *observations, paths=(path,), severity=severity, fill=fill
        )
    message = f"service endpoint route, past every route of ours: {_words(routes)}; {reach.message}"
    if reach.severity is None:
        return unknown(question.around.id, RouteKind.SERVICE, message, observation, *reach.observations)
    fill = {"SENTINEL_NIC_ID": observation.target}
    return fails(
        question.around.id, RouteKind.SERVICE, message, observation, paths=(path,), severity=reach.severity, fill=fill
    )


def _words(routes: list[Path]) -> str:
    return first_of(list(map(written, routes)), SHOWN)
