"""Subnets that packets of the nodes come to: in the networks in reach, or by the declared firewall.

A rule of the firewall that names a load balancer or an application gateway leads to its backends as well. These may be
in other subnets of that network (learn.microsoft.com/azure/load-balancer/backend-pool-management; an application
gateway has a subnet of its own: learn.microsoft.com/azure/application-gateway/configuration-infrastructure).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.cluster.resource_lookup import readable, values_of
from hermetic.audit.cluster.virtual_hubs import peer_ids_of
from hermetic.audit.estate.arm_ids import owner_of, parent_of
from hermetic.audit.estate.azure.balancing import BackendAddress, LoadBalancer
from hermetic.audit.estate.azure.managed_services import ApplicationGateway
from hermetic.audit.estate.azure.vnet import InhabitedNetwork, ModelNic, NetworkInterface, NicFields, ScaleSet, Subnet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation
from hermetic.audit.model.address_ranges import Space, networks, overlap, space, union
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.behind_firewall import ids_behind, is_let_in
from hermetic.audit.scope.balancers import gateway_pools_named_by, pools_named_by
from hermetic.audit.scope.reachable_networks import reached_network_ids, throughout


def is_reached(estate: Estate, policy: Policy, subnet_id: str) -> bool:
    """Whether a subnet is in a network in reach; behind the declared firewall, only where its rules lead to it."""
    network = parent_of(subnet_id).lower()
    if network in {near.lower() for near in (*network_ids_of(estate), *peer_ids_of(estate, policy))}:
        return True
    if network not in reached_network_ids(estate, policy):
        return False
    return is_let_in(estate, policy, subnet_id) or subnet_id.lower() in _subnets_of_backends(estate, policy)


@derived
def reached_space_behind(estate: Estate, policy: Policy) -> Space:
    """Addresses of the subnets behind the declared firewall that packets of the nodes come to."""
    prefixes = _prefixes_behind(estate, policy)
    return union(span for subnet, spans in prefixes.items() if is_reached(estate, policy, subnet) for span in spans)


@dataclass(frozen=True, slots=True)
class _Forwarder:
    """A load balancer or an application gateway: the subnets that it listens in, and those of its backends.

    Ids in lower case.
    """

    homes: frozenset[str]
    backends: frozenset[str]


@derived
def _subnets_of_backends(estate: Estate, policy: Policy) -> frozenset[str]:
    """Ids, in lower case, of the subnets behind the declared firewall that backends of forwarders in reach are in.

    A forwarder may be a backend of another. One that cannot be read is Unknown for `service-pivot`.
    """
    if not ids_behind(estate, policy):
        return frozenset()
    forwarders = tuple(_forwarders(estate, policy))
    reached = frozenset(home for forwarder in forwarders for home in forwarder.homes if is_let_in(estate, policy, home))
    while True:
        backends = frozenset(
            backend for forwarder in forwarders if forwarder.homes & reached for backend in forwarder.backends
        )
        if backends <= reached:
            return reached
        reached |= backends


def _forwarders(estate: Estate, policy: Policy) -> Iterator[_Forwarder]:
    """The load balancers and application gateways with an address in a subnet behind the declared firewall."""
    behind, damaged = _prefixes_behind(estate, policy), list[Observation]()
    gateways, balancers = throughout(estate, policy, ApplicationGateway), throughout(estate, policy, LoadBalancer)
    resources: tuple[ApplicationGateway | LoadBalancer, ...] = (*gateways, *balancers)
    for resource, homes in readable(resources, _homes, damaged):
        if homes & behind.keys():
            for _, backends in readable((resource,), lambda value: _backends(estate, policy, value), damaged):
                yield _Forwarder(homes, backends)


def _homes(forwarder: ApplicationGateway | LoadBalancer) -> frozenset[str]:
    if isinstance(forwarder, ApplicationGateway):
        return frozenset(subnet.lower() for subnet in forwarder.subnet_ids)
    frontends = forwarder.frontend_ip_configurations or ()
    return frozenset(frontend.subnet.id.lower() for frontend in frontends if frontend.subnet is not None)


def _backends(estate: Estate, policy: Policy, forwarder: ApplicationGateway | LoadBalancer) -> frozenset[str]:
    addresses = space(networks(_addresses(forwarder)))
    by_address = {subnet for subnet, spans in _prefixes_behind(estate, policy).items() if overlap(spans, addresses)}
    owners, forwarder_id = frozenset(_owners(forwarder)), forwarder.id.lower()
    holders = _holders(estate, policy)
    by_interface = {
        subnet
        for holder in holders
        if holder.id in owners or forwarder_id in holder.forwarders
        for subnet in holder.subnets
    }
    return frozenset(by_address | by_interface)


def _addresses(forwarder: ApplicationGateway | LoadBalancer) -> tuple[str, ...]:
    if isinstance(forwarder, ApplicationGateway):
        return forwarder.backend_ip_addresses
    return tuple(member.ip_address for member in _members(forwarder) if member.ip_address)


def _members(balancer: LoadBalancer) -> Iterator[BackendAddress]:
    for pool in balancer.backend_address_pools or ():
        yield from pool.load_balancer_backend_addresses or ()


def _owners(forwarder: ApplicationGateway | LoadBalancer) -> Iterator[str]:
    """Ids, in lower case, of the interfaces and scale sets that pools of a balancer name; a gateway names none."""
    if isinstance(forwarder, ApplicationGateway):
        return
    pools = forwarder.backend_address_pools or ()
    named = [reference for pool in pools for reference in pool.backend_ip_configurations or ()]
    named += [
        member.network_interface_ip_configuration
        for member in _members(forwarder)
        if member.network_interface_ip_configuration is not None
    ]
    yield from (owner_of(reference.id).lower() for reference in named)


@dataclass(frozen=True, slots=True)
class _Holder:
    """An interface or a scale set, its subnets, and the forwarders whose pools it names; ids in lower case."""

    id: str
    subnets: tuple[str, ...]
    forwarders: frozenset[str]


@derived
def _holders(estate: Estate, policy: Policy) -> tuple[_Holder, ...]:
    damaged: list[Observation] = []  # an interface that cannot be read is Unknown for `vm-pivot`
    nics, sets = throughout(estate, policy, NetworkInterface), throughout(estate, policy, ScaleSet)
    of_nics = readable(nics, lambda nic: _holder(nic.id, nic.subnet_ids, (nic,)), damaged)
    of_sets = readable(sets, lambda scale_set: _holder(scale_set.id, scale_set.subnet_ids, scale_set.nics), damaged)
    return (*(holder for _, holder in of_nics), *(holder for _, holder in of_sets))


def _holder(holder_id: str, subnets: tuple[str, ...], nics: tuple[NicFields | ModelNic, ...]) -> _Holder:
    pools = (pool for nic in nics for pool in (*pools_named_by(nic), *gateway_pools_named_by(nic)))
    forwarders = frozenset(parent_of(pool).lower() for pool in pools)
    return _Holder(holder_id.lower(), tuple(subnet.lower() for subnet in subnets), forwarders)


@derived
def _prefixes_behind(estate: Estate, policy: Policy) -> dict[str, Space]:
    """The prefixes of each subnet of the networks behind the declared firewall, by id in lower case."""
    behind = values_of(estate.one(InhabitedNetwork, network) for network in ids_behind(estate, policy))
    subnets = values_of(estate.one(Subnet, subnet.id) for network in behind for subnet in network.subnets or ())
    damaged: list[Observation] = []
    return {
        subnet.id.lower(): prefixes
        for subnet, prefixes in readable(subnets, lambda subnet: space(networks(subnet.prefixes)), damaged)
    }
