"""Balancers and application gateways in reach of the nodes: each backend must be in the networks in reach as well."""

from __future__ import annotations

from collections.abc import Container, Iterator

from hermetic.audit import hops
from hermetic.audit.cluster_scope import missing, network_ids_of, node_group_of
from hermetic.audit.egress.address_ranges import Space, space, union, without
from hermetic.audit.egress.address_ranges import network as prefix_of
from hermetic.audit.egress.resource_lookup import readable
from hermetic.audit.egress.subnet_context import network_space
from hermetic.audit.estate.arm_ids import is_below, name_of, owner_of, parent_of
from hermetic.audit.estate.azure.balancing import BackendAddress, BackendPool, LoadBalancer
from hermetic.audit.estate.azure.managed_services import ApplicationGateway
from hermetic.audit.estate.azure.vnet import NetworkInterface, ScaleSet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown
from hermetic.audit.hops import INTERNET, NODE_SUBNETS, Hop, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import reached_network_ids, throughout
from hermetic.audit.remedies.filling import Fill

GATEWAY_REMEDY = """\
Take the backends that the message names out of the pools of the gateway, or name them by their private addresses.
Warning: clients of the gateway lose what these backends serve.
az network application-gateway address-pool update --subscription SUBSCRIPTION_ID --resource-group RESOURCE_GROUP \\
--gateway-name APPLICATION_GATEWAY_NAME --name RULE_NAME --servers PRIVATE_PREFIX"""

BALANCER_REMEDY = """\
Take the backends that the message names out of the pools of the load balancer.
Warning: clients of the load balancer lose what these backends serve.
az network lb address-pool delete --subscription SUBSCRIPTION_ID --resource-group RESOURCE_GROUP \\
--lb-name LOAD_BALANCER_NAME --name RULE_NAME"""


def of_gateway(estate: Estate, gateway: ApplicationGateway, inside: Container[str]) -> Iterator[CheckResult]:
    """An application gateway with an address in one of these subnets, by id in lower case."""
    homes = gateway.subnet_ids
    if homes and not any(one.lower() in inside for one in homes):
        return
    if not homes or gateway.backend_address_pools is None:
        yield unknown(gateway.id, "BackendsNotSeen", "the answer does not show where it is or leads", gateway)
        return
    local = _local(estate)
    backends = [(pool.name, one) for pool in gateway.backend_address_pools for one in pool.backend_addresses or ()]
    beyond = {one.ip_address: pool for pool, one in backends if one.ip_address and not _is_in(one.ip_address, local)}
    names = {one.fqdn: pool for pool, one in backends if one.fqdn}
    fill = {"RULE_NAME": sorted({*beyond.values(), *names.values()})}
    if beyond:
        hop = hops.gateway(f"application gateway {gateway.name}")
        yield _relays(gateway, "GatewayRelays", hop, beyond, GATEWAY_REMEDY, fill)
    elif names:
        words = f"it passes requests on to {', '.join(sorted(names))}, and where a name leads is up to DNS"
        yield unknown(gateway.id, "BackendByName", words, gateway, remedy=GATEWAY_REMEDY, fill=fill)
    else:
        yield passes(gateway.id, "BackendsInReach", "every backend is an address in the networks in reach", gateway)


def of_balancer(
    estate: Estate, policy: Policy, balancer: LoadBalancer, inside: Container[str]
) -> Iterator[CheckResult]:
    """A load balancer with an address in one of these subnets; nothing where all of its backends are in reach.

    Azure documents that backends are in the network of the load balancer (learn.microsoft.com/azure/load-balancer/
    backend-pool-management, limitations). Machines in reach are evaluated by `vm-pivot`, nodes by checks of their own.
    """
    frontends = balancer.frontend_ip_configurations or ()
    if not any(one.subnet is not None and one.subnet.id.lower() in inside for one in frontends):
        return
    if balancer.backend_address_pools is None:
        words = f"{balancer.id}: the answer has no list of backend pools"
        yield unknown(balancer.id, "BackendsNotSeen", words, missing(words), balancer)
        return
    beyond: dict[str, str] = {}
    unseen: dict[str, str] = {}
    for pool in balancer.backend_address_pools:
        for member, is_within in _members(estate, policy, pool):
            if is_within is not True:
                (beyond if is_within is False else unseen)[member] = pool.name
    fill = {"RULE_NAME": sorted({*beyond.values(), *unseen.values()})}
    if beyond:
        hop = hops.load_balancer(f"load balancer {balancer.name}")
        yield _relays(balancer, "BalancerRelays", hop, beyond, BALANCER_REMEDY, fill)
    elif unseen:
        words = f"it passes packets on to {', '.join(sorted(unseen))}, and no list shows in which network that is"
        yield unknown(balancer.id, "BackendNotSeen", words, balancer, remedy=BALANCER_REMEDY, fill=fill)


def _members(estate: Estate, policy: Policy, pool: BackendPool) -> Iterator[tuple[str, bool | None]]:
    """Each member of a pool, and whether it is in the networks in reach; None where that is not known."""
    for configuration in pool.backend_ip_configurations or ():
        yield owner_of(configuration.id), _is_owner_within(estate, policy, configuration.id)
    for member in pool.load_balancer_backend_addresses or ():
        configuration_of = member.network_interface_ip_configuration
        if configuration_of is not None:
            yield owner_of(configuration_of.id), _is_owner_within(estate, policy, configuration_of.id)
        elif member.load_balancer_frontend_ip_configuration is not None:
            yield member.load_balancer_frontend_ip_configuration.id, None
        else:
            yield _address_within(estate, pool, member)


def _address_within(estate: Estate, pool: BackendPool, member: BackendAddress) -> tuple[str, bool | None]:
    network = member.virtual_network or pool.virtual_network
    home = parent_of(member.subnet.id) if member.subnet is not None else network.id if network is not None else ""
    address = member.ip_address or ""
    if home and home.lower() not in reached_network_ids(estate):
        return f"{address or member.name} in {name_of(home)}", False
    return address or f"{member.name} of pool {pool.name}", _is_in(address, _local(estate)) if address else None


def _is_owner_within(estate: Estate, policy: Policy, configuration: str) -> bool | None:
    """Whether the interface or scale set of an IP configuration is in the networks in reach; None where unlisted."""
    owner, group = owner_of(configuration).lower(), node_group_of(estate)
    if group and is_below(owner, group):
        return True
    homes = _homes(estate, policy).get(owner)
    return None if not homes else any(parent_of(one).lower() in reached_network_ids(estate) for one in homes)


@derived
def _homes(estate: Estate, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Subnets of the listed interfaces and scale sets, by id in lower case."""
    listed = (*throughout(estate, policy, NetworkInterface), *throughout(estate, policy, ScaleSet))
    unread: list[Observation] = []  # what cannot be read is in no known network
    return {one.id.lower(): homes for one, homes in readable(listed, lambda one: one.subnet_ids, unread)}


def _relays(
    relay: ApplicationGateway | LoadBalancer, reason: str, hop: Hop, beyond: dict[str, str], remedy: str, fill: Fill
) -> CheckResult:
    words = f"it passes requests on to {', '.join(sorted(beyond))}, outside the networks in reach"
    paths = (path_of(NODE_SUBNETS, hop, INTERNET),)
    return fails(relay.id, reason, words, relay, paths=paths, remedy=remedy, fill=fill)


def _local(estate: Estate) -> Space:
    return union(span for one in network_ids_of(estate) for span in network_space(estate, one))


def _is_in(address: str, local: Space) -> bool:
    prefix = prefix_of(address)
    return prefix is not None and not without(space((prefix,)), local)
