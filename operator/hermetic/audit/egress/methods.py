"""Outbound methods: what gives the machines of a subnet a public source address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hermetic.audit.cluster.members import (
    instance_nics_of,
    is_flexible,
    networks_of,
    pools_of,
    scale_sets_of,
    subnets_of,
)
from hermetic.audit.cluster.resource_lookup import each_of, everywhere, values_of
from hermetic.audit.estate.arm_ids import name_of, parent_of
from hermetic.audit.estate.azure.aks import AgentPool
from hermetic.audit.estate.azure.balancing import LoadBalancer, NatGateway, ScaleSetPublicAddress, ServiceGateway
from hermetic.audit.estate.azure.vnet import NicFields, ScaleSet, Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation
from hermetic.audit.model.hops import Hop
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.balancers import (
    balancers_of,
    nodes_of,
    pools_with,
    translating_outbound_rules,
    translating_rules,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Method:
    """One source of a public address. `kind` is its name on a path: "nat gateway"."""

    kind: str
    id: str

    @property
    def description(self) -> str:
        """Kind and name, for a message."""
        return f"{self.kind} {name_of(self.id)}".rstrip()

    @property
    def hop(self) -> Hop:
        return Hop(_PLACES[self.kind], self.description)


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
        resource_ids = (subnet_id.lower(), parent_of(subnet_id).lower(), "")
        methods = {method for resource_id in resource_ids for method in self.by_place.get(resource_id, ())}
        return tuple(sorted(methods, key=lambda method: (method.kind, method.id.lower())))

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
    methods_by_place: defaultdict[str, set[Method]] = defaultdict(set)
    for resource_id, method in (
        *_of_the_network(estate, policy, observations),
        *_of_the_nodes(estate, observations),
        *_of_balancers(estate, policy, observations),
    ):
        methods_by_place[resource_id.lower()].add(method)
    return Methods(
        {resource_id: frozenset(methods) for resource_id, methods in methods_by_place.items()}, tuple(observations)
    )


def _of_the_network(estate: Estate, policy: Policy, observations: list[Observation]) -> Iterator[Served]:
    subnets, scope = subnets_of(estate)
    networks = networks_of(estate)
    nat, service = everywhere(estate, policy, NatGateway), everywhere(estate, policy, ServiceGateway)
    observations += (*scope, *(scoped.observation for scoped in subnets), *networks, nat, service)
    yield from each_of(values_of(scoped.observation for scoped in subnets), by_subnet, observations)
    yield from each_of(values_of(networks), by_network, observations)
    yield from each_of(nat, by_nat_gateway, observations)
    yield from each_of(service, by_service_gateway, observations)


def _of_the_nodes(estate: Estate, observations: list[Observation]) -> Iterator[Served]:
    pools, sets, nics = pools_of(estate), scale_sets_of(estate), instance_nics_of(estate)
    addresses = [estate.every(ScaleSetPublicAddress, scale_set.id) for scale_set in sets if not is_flexible(scale_set)]
    observations += (pools, sets, nics, *addresses)
    yield from each_of(pools, _of_pool, observations)
    yield from each_of(sets, _of_model, observations)
    yield from each_of(nics, _of_nic, observations)
    yield from (("", Method("public ip", address.id or listing.target)) for listing in addresses for address in listing)


def _of_balancers(estate: Estate, policy: Policy, observations: list[Observation]) -> Iterator[Served]:
    nodes, node_observations = nodes_of(estate)
    balancers, listed = balancers_of(estate, policy)
    observations += (*node_observations, *listed, *balancers)
    yield from each_of(
        values_of(balancers), lambda balancer: by_balancer(balancer, pools_with(balancer, nodes)), observations
    )


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
        for configuration in nic.ip_configurations:
            if configuration.public_ip_address_configuration is not None:
                yield configuration.subnet.id if configuration.subnet else "", Method("public ip", scale_set.id)


def _of_nic(nic: NicFields) -> Iterator[Served]:
    if any(configuration.public_ip_address is not None for configuration in nic.ip_configurations):
        yield from ((subnet, Method("public ip", nic.id)) for subnet in nic.subnet_ids)


def by_balancer(balancer: LoadBalancer, pools: frozenset[str]) -> Iterator[Served]:
    """The methods of a balancer for members of these pools (ids in lower case)."""
    if translating_outbound_rules(balancer, pools):
        yield "", Method("outbound rule of load balancer", balancer.id)
    if translating_rules(balancer, pools):
        yield "", Method("rule of load balancer", balancer.id)
