"""Load balancers with nodes in their pools: source translation, public frontends, chaining, default outbound access."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import subnets_of
from hermetic.audit.cluster.resource_lookup import interfaces_in_the_networks, readable
from hermetic.audit.egress.masks import masks_of_nodes
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.balancing import BackendAddress, BackendPool, LoadBalancer
from hermetic.audit.estate.azure.vnet import NicFields
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, not_answered
from hermetic.audit.evaluation.each_resource import found_or_none, of_cluster, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged, with_masks
from hermetic.audit.model import hops
from hermetic.audit.model.hops import DEFAULT_OUTBOUND, INTERNET, NODE, Hop, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.remedies.filling import Fill
from hermetic.audit.scope.balancers import (
    balancers_of,
    nodes_of,
    pools_with,
    public_frontends,
    translating_outbound_rules,
    translating_rules,
)

UNCHAIN = """\
A scale set's interface has it from the model of the scale set, which AKS owns: find who changed the model.
For an interface of a machine of your own:
az network nic ip-config update --subscription SUBSCRIPTION_ID --resource-group RESOURCE_GROUP --nic-name NIC_NAME \\
--name CONFIGURATION_NAME --remove gatewayLoadBalancer"""
"""The remedy for an interface: the page's remedy is for frontends."""


def _each(
    estate: Estate, policy: Policy, evaluate: Callable[[LoadBalancer], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    balancers, observations = balancers_of(estate, policy)
    for balancer in balancers:
        if balancer.value is None:
            yield unknown(
                balancer.target, "BalancerNotSeen", "nodes are in a pool of it, and it was not seen", balancer
            )
        elif balancer.value.backend_address_pools is None:
            yield _without(balancer.value, "backend pools")
        else:
            yield from whatever_is_damaged(balancer.target, evaluate(balancer.value))
    none = ("NoBalancer", "nodes are behind no load balancer")
    yield from found_or_none(estate.cluster, balancers, "load balancers", none, *observations)


@check_each("lb-outbound-rule", _each)
def lb_outbound_rule(estate: Estate, _policy: Policy, balancer: LoadBalancer) -> Iterator[CheckResult]:
    """An outbound rule gives all members of its pool a public source address."""
    nodes, _ = nodes_of(estate)
    if balancer.outbound_rules is None:
        yield _without(balancer, "outbound rules")
        return
    names = sorted(rule.name for rule in translating_outbound_rules(balancer, pools_with(balancer, nodes)))
    if names:
        message = f"outbound rule {', '.join(names)} lends nodes a public address"
        yield _translates(estate, balancer, "OutboundRule", message, "outbound rule", names)
    else:
        yield passes(balancer.id, "NoOutboundRule", "no outbound rule for a pool with nodes", balancer)


@check_each("lb-rule-snat", _each)
def lb_rule_snat(estate: Estate, _policy: Policy, balancer: LoadBalancer) -> Iterator[CheckResult]:
    """A rule on a public frontend also translates outbound connections unless disableOutboundSnat is true."""
    nodes, _ = nodes_of(estate)
    if balancer.load_balancing_rules is None:
        yield _without(balancer, "rules")
        return
    names = sorted(rule.name for rule in translating_rules(balancer, pools_with(balancer, nodes)))
    if names:
        message = f"rule {', '.join(names)} has a public frontend and disableOutboundSnat is not true"
        yield _translates(estate, balancer, "RuleTranslates", message, "rule with SNAT", names)
    else:
        yield passes(balancer.id, "NoTranslation", "no rule lends nodes a public address", balancer)


def _without(balancer: LoadBalancer, list_name: str) -> CheckResult:
    """Azure answers these lists even when they are empty: a missing one was cut off."""
    gap = not_answered(balancer.id, f"list of {list_name}")
    return unknown(balancer.id, "ListNotAnswered", gap.problem.detail, gap, balancer)


def _translates(
    estate: Estate, balancer: LoadBalancer, reason: str, message: str, by: str, rules: list[str]
) -> CheckResult:
    paths, fill = (_path(balancer, by),), {"RULE_NAME": rules}
    return with_masks(fails(balancer.id, reason, message, balancer, paths=paths, fill=fill), masks_of_nodes(estate))


@check_each("lb-public-frontend", _each)
def lb_public_frontend(_estate: Estate, _policy: Policy, balancer: LoadBalancer) -> Iterator[CheckResult]:
    """A public frontend with nodes behind it is reachable from outside; one outbound rule makes it an egress path."""
    names = sorted(frontend.name for frontend in public_frontends(balancer))
    if balancer.frontend_ip_configurations is None:
        yield _without(balancer, "frontends")
    elif names:
        message = f"frontend {', '.join(names)} is public, or not known to be private"
        paths, fill = ((INTERNET, *_path(balancer, "in")),), {"RULE_NAME": names}
        yield fails(balancer.id, "PublicFrontend", message, balancer, paths=paths, fill=fill)
    elif not balancer.frontend_ip_configurations:
        yield passes(balancer.id, "NoFrontend", "it has no frontend", balancer)
    else:
        yield passes(balancer.id, "PrivateFrontends", "every frontend is an address in a subnet", balancer)


@check_each("lb-basic-sku", _each)
def lb_basic_sku(estate: Estate, _policy: Policy, balancer: LoadBalancer) -> Iterator[CheckResult]:
    """Basic load balancers, internal ones included, leave their members default outbound access."""
    sku = (balancer.sku.name if balancer.sku is not None else None) or ""
    if sku.lower() == "standard":
        yield passes(balancer.id, "StandardSku", "its SKU is Standard", balancer)
    elif sku.lower() == "basic":
        message = "a Basic load balancer leaves its members default outbound access"
        path = path_of(NODE, hops.load_balancer(f"basic load balancer {balancer.name}"), DEFAULT_OUTBOUND, INTERNET)
        yield with_masks(fails(balancer.id, "BasicSku", message, balancer, paths=(path,)), masks_of_nodes(estate))
    else:
        yield unknown(balancer.id, "SkuUnknown", f"it is not known what SKU {sku!r} does for outbound", balancer)


@check("lb-gateway-chain")
def lb_gateway_chain(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A gateway load balancer sends every packet of a frontend or interface through an appliance, maybe of others."""

    def evaluate(balancer: LoadBalancer) -> Iterator[CheckResult]:
        frontends = [
            frontend
            for frontend in balancer.frontend_ip_configurations or ()
            if frontend.gateway_load_balancer is not None
        ]
        chained = {
            frontend.gateway_load_balancer.id for frontend in frontends if frontend.gateway_load_balancer is not None
        }
        if balancer.frontend_ip_configurations is None:
            yield _without(balancer, "frontends")
        elif chained:
            fill = {"RULE_NAME": sorted(frontend.name for frontend in frontends)}
            yield _chained(balancer.id, hops.load_balancer(f"load balancer {balancer.name}"), chained, balancer, fill)
        else:
            yield passes(balancer.id, "NotChained", "no frontend is chained to a gateway load balancer", balancer)

    yield from _each(estate, policy, evaluate)
    yield from _chained_interfaces(estate, policy)


def _chained_interfaces(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Chained interfaces are rare among many: only those get a finding of their own."""
    interfaces, observations = interfaces_in_the_networks(estate, policy)
    damaged: list[Observation] = []
    any_chained = False
    for nic, chained in readable(interfaces, _gateways, damaged):
        if chained:
            any_chained = True
            names = [
                configuration.name
                for configuration in nic.ip_configurations
                if configuration.gateway_load_balancer is not None
            ]
            yield _chained(nic.id, hops.nic(name_of(nic.id)), chained, nic, {"CONFIGURATION_NAME": names}, UNCHAIN)
    if not any_chained:
        message = f"none of {len(interfaces)} network interfaces is chained to a gateway load balancer"
        yield passes(estate.cluster, "NoInterfaceChained", message, *observations, *damaged)
    else:
        yield from whole_or_unknown(estate.cluster, "the network interfaces", *observations, *damaged)


def _gateways(nic: NicFields) -> set[str]:
    return {
        configuration.gateway_load_balancer.id
        for configuration in nic.ip_configurations
        if configuration.gateway_load_balancer is not None
    }


def _chained(
    resource: str, hop: Hop, gateways: set[str], observation: Observation, fill: Fill, remedy: str = ""
) -> CheckResult:
    message = f"chained to {', '.join(sorted(gateways))}: packets pass an appliance that another team may run"
    paths = (path_of(hop, hops.gateway("gateway load balancer"), hops.firewall("appliance")),)
    return fails(resource, "Chained", message, observation, paths=paths, remedy=remedy, fill=fill)


@check("lb-ip-based-pool")
def lb_ip_based_pool(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Pool members by address keep default outbound access, which internal load balancers mask for interfaces only."""
    nodes, _ = nodes_of(estate)
    open_subnets, unseen = _with_default_outbound(estate)

    def evaluate(balancer: LoadBalancer) -> Iterator[CheckResult]:
        members = _members_by_address(balancer)
        by_address = {subnet for pool, member in members for subnet in nodes.subnets_of_address(pool, member)}
        leaking = sorted(name_of(subnet) for subnet in by_address if subnet.lower() in open_subnets)
        if leaking:
            yield _leaks(estate, balancer.id, "a pool lists node addresses", leaking, balancer)
        elif by_address:
            message = "a pool lists node addresses, and their subnets are private"
            yield passes(balancer.id, "PrivateSubnets", message, balancer, *unseen)
        else:
            # Subnets show whose the addresses are: one that was not read may contain them.
            needed = unseen if members else ()
            yield passes(balancer.id, "NoNodeAddresses", "no pool lists node addresses", balancer, *needed)

    yield from of_cluster(estate, policy, partial(_of_the_cluster, estate, open_subnets, unseen))
    yield from _each(estate, policy, evaluate)


def _members_by_address(balancer: LoadBalancer) -> list[tuple[BackendPool, BackendAddress]]:
    return [
        (pool, member)
        for pool in balancer.backend_address_pools or ()
        for member in pool.load_balancer_backend_addresses or ()
        if member.ip_address and member.network_interface_ip_configuration is None
    ]


def _of_the_cluster(
    estate: Estate, open_subnets: dict[str, str], unseen: tuple[Observation, ...], cluster: ManagedCluster
) -> Iterator[CheckResult]:
    profile = cluster.network_profile.load_balancer_profile if cluster.network_profile is not None else None
    pool_type = (profile.backend_pool_type if profile is not None else None) or "nodeIPConfiguration"
    if pool_type.lower() == "nodeipconfiguration":
        yield passes(estate.cluster, "PoolsByInterface", "backend pools hold interfaces, not addresses", cluster)
    elif pool_type.lower() != "nodeip":
        yield unknown(estate.cluster, "PoolTypeUnknown", f"backendPoolType {pool_type!r} is not known", cluster)
    elif open_subnets:
        yield _leaks(estate, estate.cluster, "backendPoolType is nodeIP", sorted(open_subnets.values()), cluster)
    else:
        message = "backendPoolType is nodeIP, and every subnet of the nodes is private"
        yield passes(estate.cluster, "PrivateSubnets", message, cluster, *unseen)


def _with_default_outbound(estate: Estate) -> tuple[dict[str, str], tuple[Observation, ...]]:
    """Names, by id in lower case, of the cluster's subnets that are not private, and the observations they rest on."""
    subnets, observations = subnets_of(estate)
    of_nodes = [scoped for scoped in subnets if not scoped.is_for_the_api_server_only]
    damaged: list[Observation] = []
    read_subnets = [scoped.observation.value for scoped in of_nodes if scoped.observation.value is not None]
    names_by_id = {
        subnet.id.lower(): subnet.name
        for subnet, private in readable(read_subnets, lambda subnet: subnet.default_outbound_access is False, damaged)
        if not private
    }
    return names_by_id, (*observations, *(scoped.observation for scoped in of_nodes), *damaged)


def _leaks(estate: Estate, resource: str, cause: str, subnets: Iterable[str], observation: Observation) -> CheckResult:
    names = list(subnets)
    message = f"{cause}, and default outbound access is not off in {', '.join(names)}: no balancer masks it there"
    paths = (path_of(hops.subnet(name), DEFAULT_OUTBOUND, INTERNET) for name in names)
    return with_masks(fails(resource, "PoolByAddress", message, observation, paths=paths), masks_of_nodes(estate))


def _path(balancer: LoadBalancer, by: str) -> Path:
    if by == "in":
        return path_of(hops.load_balancer(f"load balancer {balancer.name}"), NODE)
    return path_of(NODE, hops.load_balancer(f"{by} of load balancer {balancer.name}"), INTERNET)
