"""Ways to a machine or service past rules that deny its address: by a gateway or load balancer in front of it.

An application gateway ends the session of its client and opens one of its own from its private addresses
(learn.microsoft.com/azure/application-gateway/how-application-gateway-works): rules of the nodes see the gateway as the
destination, and rules of the backend see it as the source. A load balancer leaves the source as it is, and rules of the
backend see the client (learn.microsoft.com/azure/virtual-network/network-security-groups-overview, virtual machines in
load-balanced pools). Which destination rules of the client see, its frontend or the backend, is not documented.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hermetic.audit.cluster_scope import missing
from hermetic.audit.egress.balancers import Members, pools_with
from hermetic.audit.egress.machines import RelayMachine, members_of
from hermetic.audit.egress.reach import Destination, Reach, Senders, most_open, nodes_as_senders, reach_of, weakest
from hermetic.audit.egress.resource_lookup import each_of, readable, values_of
from hermetic.audit.estate.arm_ids import parent_of, same_id
from hermetic.audit.estate.azure.balancing import Frontend, LoadBalancer
from hermetic.audit.estate.azure.managed_services import ApplicationGateway
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import is_in, reached_network_ids, throughout


@dataclass(frozen=True, slots=True)
class Backend:
    """What may be reached past such rules. `gateway_pools` are pools of application gateways that interfaces name."""

    destinations: tuple[Destination, ...]
    members: Members
    gateway_pools: frozenset[str] = frozenset()

    @property
    def named_gateways(self) -> frozenset[str]:
        """Ids of the gateways of these pools."""
        return frozenset(parent_of(one) for one in self.gateway_pools)

    def is_behind(self, gateway: ApplicationGateway) -> bool:
        """Whether it is a backend of a gateway, by its address or by its interface."""
        named = any(same_id(gateway.id, one) for one in self.named_gateways)
        return named or any(self.members.subnets_with(one) for one in _addresses(gateway))


def backend_of(estate: Estate, machine: RelayMachine) -> tuple[Backend, tuple[Observation, ...]]:
    """A machine as a backend, and the observations that this rests on."""
    observations: list[Observation] = []
    members = members_of(estate, machine, observations)
    pools = frozenset(one for part in machine.interfaces for one in part.gateway_pool_ids)
    return Backend(machine.destinations, members, pools), tuple(observations)


def reach_by_others(estate: Estate, policy: Policy, backend: Backend) -> tuple[Reach, tuple[Observation, ...]]:
    """The most open reach of the nodes to it by a load balancer or an application gateway; shut without any."""
    observations: list[Observation] = []
    frontends = tuple(_frontends(estate, policy, backend.members, observations))
    found = [_by_frontends(estate, backend, frontends, nodes_as_senders(estate), observations)]
    for gateway, homes in _gateways(estate, policy, backend, observations):
        found.append(_by_gateway(estate, backend, gateway, homes, frontends, observations))
    return most_open(found), tuple(observations)


def _by_frontends(
    estate: Estate, backend: Backend, frontends: Iterable[Frontend], senders: Senders, observations: list[Observation]
) -> Reach:
    """Unseen where the senders reach a frontend and the machine's own rules let them in; else shut."""
    for one in frontends:
        home = (one.subnet.id,) if one.subnet is not None else ()
        address = (one.private_ip_address,) if one.private_ip_address else ()
        to_it, rests_on = reach_of(estate, (Destination(home, address, obeys_its_subnet=False),), senders)
        let_in, let_in_by = reach_of(estate, backend.destinations, replace(senders, by_their_rules=False))
        observations += (*rests_on, *let_in_by)
        if Reach.SHUT not in (to_it, let_in):
            words = "which address rules see of a packet to a load balancer, its frontend or the backend, is not known"
            observations.append(missing(f"{one.id or one.name}: {words}"))
            return Reach.UNSEEN
    return Reach.SHUT


def _by_gateway(
    estate: Estate,
    backend: Backend,
    gateway: ApplicationGateway,
    homes: tuple[str, ...],
    frontends: Iterable[Frontend],
    observations: list[Observation],
) -> Reach:
    """By a gateway with the backend, or one of its `frontends`, in a pool; shut by any other."""
    addresses = set(_addresses(gateway))
    behind = [one for one in frontends if one.private_ip_address in addresses]
    if not behind and not backend.is_behind(gateway):
        return Reach.SHUT
    listens = [one.private_ip_address for one in gateway.frontend_ip_configurations or () if one.private_ip_address]
    to_it, rests_on = reach_of(estate, (Destination(homes, tuple(listens)),))
    senders = Senders(tuple((one, estate.one(Subnet, one)) for one in homes))
    onward = [_by_frontends(estate, backend, behind, senders, observations)]
    if backend.is_behind(gateway):
        reach, onward_by = reach_of(estate, backend.destinations, senders)
        onward.append(reach)
        observations += onward_by
    observations += rests_on
    return weakest(to_it, most_open(onward))


def _gateways(
    estate: Estate, policy: Policy, backend: Backend, observations: list[Observation]
) -> Iterator[tuple[ApplicationGateway, tuple[str, ...]]]:
    """The gateways in the networks in reach, with their subnets; those in no list that interfaces name as well."""
    listed = throughout(estate, policy, ApplicationGateway)
    known = {one.id.lower() for one in listed}
    unlisted = sorted(one for one in backend.named_gateways if one.lower() not in known)
    asked = [estate.one(ApplicationGateway, one) for one in unlisted]
    observations += (listed, *asked)
    networks = reached_network_ids(estate)
    for gateway, homes in readable((*listed, *values_of(asked)), lambda one: one.subnet_ids, observations):
        if not homes:
            observations.append(missing(f"{gateway.id}: the answer does not show in which subnet it is"))
        elif is_in(homes, networks):
            yield gateway, homes


def _addresses(gateway: ApplicationGateway) -> tuple[str, ...]:
    pools = gateway.backend_address_pools or ()
    return tuple(one.ip_address for pool in pools for one in pool.backend_addresses or () if one.ip_address)


def _frontends(estate: Estate, policy: Policy, members: Members, observations: list[Observation]) -> Iterator[Frontend]:
    """The private frontends, in the networks in reach, of balancers that hold the machine."""
    listed, networks = throughout(estate, policy, LoadBalancer), reached_network_ids(estate)
    observations.append(listed)
    for one in each_of(listed, lambda balancer: _private_frontends(balancer, members), observations):
        if one.subnet is not None and is_in((one.subnet.id,), networks):
            yield one


def _private_frontends(balancer: LoadBalancer, members: Members) -> tuple[Frontend, ...]:
    private = tuple(one for one in balancer.frontend_ip_configurations or () if not one.is_public)
    return private if private and pools_with(balancer, members) else ()
