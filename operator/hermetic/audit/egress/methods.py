"""Outbound methods: what gives the machines of a subnet a public source address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hermetic.audit.cluster_scope import instance_nics_of, is_flexible, networks_of, pools_of, scale_sets_of, subnets_of
from hermetic.audit.egress.balancers import (
    balancers_of,
    nodes_of,
    pools_with,
    translating_outbound_rules,
    translating_rules,
)
from hermetic.audit.egress.resource_lookup import each_of, everywhere, values_of
from hermetic.audit.estate.arm_ids import name_of, parent_of
from hermetic.audit.estate.azure.aks import AgentPool
from hermetic.audit.estate.azure.balancing import LoadBalancer, NatGateway, ScaleSetPublicAddress, ServiceGateway
from hermetic.audit.estate.azure.vnet import NicFields, ScaleSet, Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation
from hermetic.audit.hops import Hop
from hermetic.audit.policy import Policy
from hermetic.audit.topology import PlaceKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Method:
    """One source of a public address. `kind` is its name on a path: "nat gateway"."""

    kind: str
    id: str

    @property
    def words(self) -> str:
        """Kind and name, for a message."""
        return f"{self.kind} {name_of(self.id)}".rstrip()

    @property
    def hop(self) -> Hop:
        return Hop(_PLACES[self.kind], self.words)


_PLACES = {
    "nat gateway": PlaceKind.NAT_GATEWAY,
    "service gateway": PlaceKind.SERVICE,
    "public ip": PlaceKind.PUBLIC_IP,
    "outbound rule of load balancer": PlaceKind.LOAD_BALANCER,
    "rule of load balancer": PlaceKind.LOAD_BALANCER,
}


Served = tuple[str, Method]
"""The id of what a method serves (a subnet, a network, or "" for every subnet of the cluster), and the method."""


@dataclass(frozen=True, slots=True)
class Methods:
    """Methods by what they serve, ids in lower case; `observations` decide whether the list is complete."""

    by_place: Mapping[str, frozenset[Method]]
    observations: tuple[Observation, ...]

    def of(self, subnet_id: str) -> tuple[Method, ...]:
        """The methods of one subnet, sorted."""
        places = (subnet_id.lower(), parent_of(subnet_id).lower(), "")
        found = {method for place in places for method in self.by_place.get(place, ())}
        return tuple(sorted(found, key=lambda method: (method.kind, method.id.lower())))

    @property
    def are_all_seen(self) -> bool:
        """Whether every observation is complete, so that no method can be missing."""
        return all(observation.problem is None for observation in self.observations)

    def may_serve(self, subnet_id: str) -> bool:
        """Whether the subnet has a method, or may have one that could not be read."""
        return bool(self.of(subnet_id)) or not self.are_all_seen


@derived
def methods_of(estate: Estate, policy: Policy) -> Methods:
    """Every outbound method of the cluster's subnets."""
    observations: list[Observation] = []
    found: defaultdict[str, set[Method]] = defaultdict(set)
    for place, method in (
        *_of_the_network(estate, policy, observations),
        *_of_the_nodes(estate, observations),
        *_of_balancers(estate, policy, observations),
    ):
        found[place.lower()].add(method)
    return Methods({place: frozenset(methods) for place, methods in found.items()}, tuple(observations))


def _of_the_network(estate: Estate, policy: Policy, observations: list[Observation]) -> Iterator[Served]:
    subnets, scope = subnets_of(estate)
    networks = networks_of(estate)
    nat, service = everywhere(estate, policy, NatGateway), everywhere(estate, policy, ServiceGateway)
    observations += (*scope, *(one.seen for one in subnets), *networks, nat, service)
    yield from each_of(values_of(one.seen for one in subnets), by_subnet, observations)
    yield from each_of(values_of(networks), by_network, observations)
    yield from each_of(nat, by_nat_gateway, observations)
    yield from each_of(service, by_service_gateway, observations)


def _of_the_nodes(estate: Estate, observations: list[Observation]) -> Iterator[Served]:
    pools, sets, nics = pools_of(estate), scale_sets_of(estate), instance_nics_of(estate)
    addresses = [estate.every(ScaleSetPublicAddress, one.id) for one in sets if not is_flexible(one)]
    observations += (pools, sets, nics, *addresses)
    yield from each_of(pools, _of_pool, observations)
    yield from each_of(sets, _of_model, observations)
    yield from each_of(nics, _of_nic, observations)
    yield from (("", Method("public ip", one.id or listing.target)) for listing in addresses for one in listing)


def _of_balancers(estate: Estate, policy: Policy, observations: list[Observation]) -> Iterator[Served]:
    nodes, known = nodes_of(estate)
    balancers, listed = balancers_of(estate, policy)
    observations += (*known, *listed, *balancers)
    yield from each_of(values_of(balancers), lambda one: by_balancer(one, pools_with(one, nodes)), observations)


def by_subnet(subnet: Subnet) -> Iterator[Served]:
    """Gateways that a subnet references."""
    if subnet.nat_gateway is not None:
        yield subnet.id, Method("nat gateway", subnet.nat_gateway.id)
    if subnet.service_gateway is not None:
        yield subnet.id, Method("service gateway", subnet.service_gateway.id)


def by_network(network: VirtualNetwork) -> Iterator[Served]:
    """The default gateway of a network, which serves all its subnets."""
    if network.default_public_nat_gateway is not None:
        yield network.id, Method("nat gateway", network.default_public_nat_gateway.id)


def by_nat_gateway(gateway: NatGateway) -> Iterator[Served]:
    """Subnets and network that a NAT gateway references."""
    yield from ((subnet.id, Method("nat gateway", gateway.id)) for subnet in gateway.subnets or ())
    if gateway.source_virtual_network is not None:
        yield gateway.source_virtual_network.id, Method("nat gateway", gateway.id)


def by_service_gateway(gateway: ServiceGateway) -> Iterator[Served]:
    """The network that a service gateway references."""
    if gateway.virtual_network is not None:
        yield gateway.virtual_network.id, Method("service gateway", gateway.id)


def _of_pool(pool: AgentPool) -> Iterator[Served]:
    if pool.enable_node_public_ip is True or pool.node_public_ip_prefix_id:
        yield pool.vnet_subnet_id or "", Method("public ip", pool.name)


def _of_model(scale_set: ScaleSet) -> Iterator[Served]:
    for nic in scale_set.nics:
        for one in nic.ip_configurations:
            if one.public_ip_address_configuration is not None:
                yield one.subnet.id if one.subnet else "", Method("public ip", scale_set.id)


def _of_nic(nic: NicFields) -> Iterator[Served]:
    if any(one.public_ip_address is not None for one in nic.ip_configurations):
        yield from ((subnet, Method("public ip", nic.id)) for subnet in nic.subnet_ids)


def by_balancer(balancer: LoadBalancer, pools: frozenset[str]) -> Iterator[Served]:
    """The methods of a balancer for members of these pools (ids in lower case)."""
    if translating_outbound_rules(balancer, pools):
        yield "", Method("outbound rule of load balancer", balancer.id)
    if translating_rules(balancer, pools):
        yield "", Method("rule of load balancer", balancer.id)
