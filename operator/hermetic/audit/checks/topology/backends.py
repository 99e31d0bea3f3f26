"""Balancers and application gateways in reach of the nodes: each backend must be in the networks in reach as well."""

from __future__ import annotations

from collections.abc import Container, Iterator

from hermetic.audit.cluster.members import network_ids_of, node_group_of
from hermetic.audit.cluster.resource_lookup import readable
from hermetic.audit.estate.arm_ids import is_below, name_of, owner_of, parent_of
from hermetic.audit.estate.azure.balancing import BackendAddress, BackendPool, LoadBalancer
from hermetic.audit.estate.azure.managed_services import ApplicationGateway
from hermetic.audit.estate.azure.vnet import NetworkInterface, ScaleSet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation, not_answered
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import Space, space, union, without
from hermetic.audit.model.address_ranges import network as prefix_of
from hermetic.audit.model.hops import INTERNET, NODE_SUBNETS, Hop, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.remedies.filling import Fill
from hermetic.audit.rules.subnet_context import network_space
from hermetic.audit.scope.reachable_networks import reached_network_ids, throughout
from hermetic.audit.scope.reached_subnets import reached_space_behind

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


def of_gateway(
    estate: Estate, policy: Policy, gateway: ApplicationGateway, inside: Container[str]
) -> Iterator[CheckResult]:
    """An application gateway with an address in one of these subnets, by id in lower case."""
    homes = gateway.subnet_ids
    if homes and not any(subnet_id.lower() in inside for subnet_id in homes):
        return
    if not homes or gateway.backend_address_pools is None:
        yield unknown(gateway.id, "BackendsNotSeen", "the answer does not show where it is or leads", gateway)
        return
    local = _local(estate, policy)
    backends = [
        (pool.name, backend) for pool in gateway.backend_address_pools for backend in pool.backend_addresses or ()
    ]
    beyond = {
        backend.ip_address: pool
        for pool, backend in backends
        if backend.ip_address and not _is_in(backend.ip_address, local)
    }
    names = {backend.fqdn: pool for pool, backend in backends if backend.fqdn}
    fill = {"RULE_NAME": sorted({*beyond.values(), *names.values()})}
    if beyond:
        hop = hops.gateway(f"application gateway {gateway.name}")
        yield _relays(gateway, "GatewayRelays", hop, beyond, GATEWAY_REMEDY, fill)
    elif names:
        message = f"it passes requests on to {', '.join(sorted(names))}, and where a name leads is up to DNS"
        yield unknown(gateway.id, "BackendByName", message, gateway, remedy=GATEWAY_REMEDY, fill=fill)
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
    if not any(frontend.subnet is not None and frontend.subnet.id.lower() in inside for frontend in frontends):
        return
    if balancer.backend_address_pools is None:
        gap = not_answered(balancer.id, "list of backend pools")
        yield unknown(balancer.id, "BackendsNotSeen", gap.problem.detail, gap, balancer)
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
        message = f"it passes packets on to {', '.join(sorted(unseen))}, and no list shows in which network that is"
        yield unknown(balancer.id, "BackendNotSeen", message, balancer, remedy=BALANCER_REMEDY, fill=fill)


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
            yield _address_within(estate, policy, pool, member)


def _address_within(
    estate: Estate, policy: Policy, pool: BackendPool, member: BackendAddress
) -> tuple[str, bool | None]:
    network = member.virtual_network or pool.virtual_network
    home = parent_of(member.subnet.id) if member.subnet is not None else network.id if network is not None else ""
    address = member.ip_address or ""
    if home and home.lower() not in reached_network_ids(estate, policy):
        return f"{address or member.name} in {name_of(home)}", False
    return address or f"{member.name} of pool {pool.name}", _is_in(address, _local(estate, policy)) if address else None


def _is_owner_within(estate: Estate, policy: Policy, configuration: str) -> bool | None:
    """Whether the interface or scale set of an IP configuration is in the networks in reach; None where unlisted."""
    owner, group = owner_of(configuration).lower(), node_group_of(estate)
    if group and is_below(owner, group):
        return True
    homes = _homes(estate, policy).get(owner)
    return (
        None
        if not homes
        else any(parent_of(subnet_id).lower() in reached_network_ids(estate, policy) for subnet_id in homes)
    )


@derived
def _homes(estate: Estate, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Subnets of the listed interfaces and scale sets, by id in lower case."""
    listed = (*throughout(estate, policy, NetworkInterface), *throughout(estate, policy, ScaleSet))
    unread: list[Observation] = []  # what cannot be read is in no known network
    return {
        resource.id.lower(): homes for resource, homes in readable(listed, lambda resource: resource.subnet_ids, unread)
    }


def _relays(
    relay: ApplicationGateway | LoadBalancer, reason: str, hop: Hop, beyond: dict[str, str], remedy: str, fill: Fill
) -> CheckResult:
    message = f"it passes requests on to {', '.join(sorted(beyond))}, outside the networks in reach"
    paths = (path_of(NODE_SUBNETS, hop, INTERNET),)
    return fails(relay.id, reason, message, relay, paths=paths, remedy=remedy, fill=fill)


def _local(estate: Estate, policy: Policy) -> Space:
    near = (span for network_id in network_ids_of(estate) for span in network_space(estate, network_id))
    return union((*near, *reached_space_behind(estate, policy)))


def _is_in(address: str, local: Space) -> bool:
    prefix = prefix_of(address)
    return prefix is not None and not without(space((prefix,)), local)
