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

from hermetic.audit.cluster.resource_lookup import each_of, readable, values_of
from hermetic.audit.egress.machines import RelayMachine, members_of
from hermetic.audit.egress.reach import Destination, Reach, Senders, most_open, nodes_as_senders, reach_of, weakest
from hermetic.audit.estate.arm_ids import parent_of, same_id
from hermetic.audit.estate.azure.balancing import Frontend, LoadBalancer
from hermetic.audit.estate.azure.managed_services import ApplicationGateway
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation, missing
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.balancers import Members, pools_with
from hermetic.audit.scope.reachable_networks import throughout
from hermetic.audit.scope.reached_subnets import is_reached


@dataclass(frozen=True, slots=True)
class Backend:
    """What may be reached past such rules. `gateway_pools` are pools of application gateways that interfaces name."""

    destinations: tuple[Destination, ...]
    members: Members
    gateway_pools: frozenset[str] = frozenset()

    @property
    def named_gateways(self) -> frozenset[str]:
        """Ids of the gateways of these pools."""
        return frozenset(parent_of(pool_id) for pool_id in self.gateway_pools)

    def is_behind(self, gateway: ApplicationGateway) -> bool:
        """Whether it is a backend of a gateway, by its address or by its interface."""
        named = any(same_id(gateway.id, gateway_id) for gateway_id in self.named_gateways)
        return named or any(self.members.subnets_with(address) for address in gateway.backend_ip_addresses)


def backend_of(estate: Estate, machine: RelayMachine) -> tuple[Backend, tuple[Observation, ...]]:
    """A machine as a backend, and the observations that this rests on."""
    observations: list[Observation] = []
    members = members_of(estate, machine, observations)
    pools = frozenset(pool_id for part in machine.interfaces for pool_id in part.gateway_pool_ids)
    return Backend(machine.destinations, members, pools), tuple(observations)


def reach_by_others(estate: Estate, policy: Policy, backend: Backend) -> tuple[Reach, tuple[Observation, ...]]:
    """The most open reach of the nodes to it by a load balancer or an application gateway; shut without any."""
    observations: list[Observation] = []
    frontends = tuple(_frontends(estate, policy, backend.members, observations))
    reaches = [_by_frontends(estate, backend, frontends, nodes_as_senders(estate), observations)]
    for gateway, homes in _gateways(estate, policy, backend, observations):
        reaches.append(_by_gateway(estate, backend, gateway, homes, frontends, observations))
    return most_open(reaches), tuple(observations)


def _by_frontends(
    estate: Estate, backend: Backend, frontends: Iterable[Frontend], senders: Senders, observations: list[Observation]
) -> Reach:
    """Unseen where the senders reach a frontend and the machine's own rules let them in; else shut."""
    for frontend in frontends:
        home = (frontend.subnet.id,) if frontend.subnet is not None else ()
        address = (frontend.private_ip_address,) if frontend.private_ip_address else ()
        to_it, rests_on = reach_of(estate, (Destination(home, address, obeys_its_subnet=False),), senders)
        let_in, let_in_by = reach_of(estate, backend.destinations, replace(senders, by_their_rules=False))
        observations += (*rests_on, *let_in_by)
        if Reach.SHUT not in (to_it, let_in):
            message = (
                "it is not known which address rules see of a packet to a load balancer, its frontend or the backend"
            )
            observations.append(missing(f"{frontend.id or frontend.name}: {message}"))
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
    addresses = set(gateway.backend_ip_addresses)
    behind = [frontend for frontend in frontends if frontend.private_ip_address in addresses]
    if not behind and not backend.is_behind(gateway):
        return Reach.SHUT
    listens = [
        configuration.private_ip_address
        for configuration in gateway.frontend_ip_configurations or ()
        if configuration.private_ip_address
    ]
    to_it, rests_on = reach_of(estate, (Destination(homes, tuple(listens)),))
    senders = Senders(tuple((subnet_id, estate.one(Subnet, subnet_id)) for subnet_id in homes))
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
    listed_ids = {gateway.id.lower() for gateway in listed}
    unlisted = sorted(gateway_id for gateway_id in backend.named_gateways if gateway_id.lower() not in listed_ids)
    unlisted_gateways = [estate.one(ApplicationGateway, gateway_id) for gateway_id in unlisted]
    observations += (listed, *unlisted_gateways)
    for gateway, homes in readable(
        (*listed, *values_of(unlisted_gateways)), lambda gateway: gateway.subnet_ids, observations
    ):
        if not homes:
            observations.append(missing(f"{gateway.id}: the answer does not show in which subnet it is"))
        elif any(is_reached(estate, policy, subnet_id) for subnet_id in homes):
            yield gateway, homes


def _frontends(estate: Estate, policy: Policy, members: Members, observations: list[Observation]) -> Iterator[Frontend]:
    """The private frontends, in the networks in reach, of balancers that hold the machine."""
    listed = throughout(estate, policy, LoadBalancer)
    observations.append(listed)
    for frontend in each_of(listed, lambda balancer: _private_frontends(balancer, members), observations):
        if frontend.subnet is not None and is_reached(estate, policy, frontend.subnet.id):
            yield frontend


def _private_frontends(balancer: LoadBalancer, members: Members) -> tuple[Frontend, ...]:
    private = tuple(frontend for frontend in balancer.frontend_ip_configurations or () if not frontend.is_public)
    return private if private and pools_with(balancer, members) else ()
