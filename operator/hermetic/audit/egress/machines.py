"""Machines in the cluster's networks and their peers that are not nodes, with all their interfaces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from hermetic.api.ip_ranges import Network
from hermetic.audit.cluster.members import is_flexible, is_of_the_cluster, node_group_of, pools_of, subnets_of
from hermetic.audit.cluster.resource_lookup import each_of, instances_of, readable, values_of
from hermetic.audit.egress.default_outbound import default_outbound_of
from hermetic.audit.egress.methods import by_nat_gateway, by_network, by_service_gateway, by_subnet
from hermetic.audit.egress.reach import Destination
from hermetic.audit.egress.relay_balancers import balancer_egress_paths
from hermetic.audit.egress.relay_routes import (
    RulesOf,
    endpoint_egress_paths,
    learned_egress_paths,
    storage_egress_paths,
)
from hermetic.audit.estate.arm_ids import is_below, parent_of
from hermetic.audit.estate.azure.balancing import NatGateway, ScaleSetPublicAddress, ServiceGateway
from hermetic.audit.estate.azure.routing import RouteTable
from hermetic.audit.estate.azure.vnet import ModelNic, NetworkInterface, NicFields, ScaleSet, Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Lookup, Observation, missing, not_answered
from hermetic.audit.model.address_ranges import networks
from hermetic.audit.model.hops import DEFAULT_OUTBOUND, PUBLIC_IP, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import declared_addresses, leads_to_the_firewall
from hermetic.audit.rules.routes import NextHopKind, OutboundRoute, public_routes
from hermetic.audit.rules.subnet_context import local_space
from hermetic.audit.scope.balancers import Members, gateway_pools_named_by, pools_named_by
from hermetic.audit.scope.reachable_networks import throughout
from hermetic.audit.scope.reached_subnets import is_reached

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface of a machine, with its own egress paths.

    `addresses` are private and empty for a scale set's model, whose machines may have any address of its subnets.
    `own_ways` are the egress paths of the interface itself, `doubts` are observations that may hide more of them.
    `pool_ids` are what it names of load balancers, in lower case: backend pools, and inbound NAT rules or pools;
    `gateway_pool_ids` are backend pools of application gateways. `id` is "" for a scale set's model.
    """

    id: str
    subnet_ids: tuple[str, ...]
    addresses: tuple[str, ...]
    rules: RulesOf
    pool_ids: tuple[str, ...]
    gateway_pool_ids: tuple[str, ...]
    own_ways: tuple[Path, ...]
    doubts: tuple[Observation, ...] = ()


@dataclass(frozen=True, slots=True)
class RelayMachine:
    """A virtual machine, or a scale set with all its machines, that can relay from one interface to another.

    `id` is the resource to change: the interface where there is only one. `own_ways` and `doubts` are those that
    belong to no single interface.
    """

    id: str
    interfaces: tuple[Interface, ...]
    observations: tuple[Observation, ...]
    own_ways: tuple[Path, ...] = ()
    doubts: tuple[Observation, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Private addresses of all interfaces."""
        return tuple(address for interface in self.interfaces for address in interface.addresses)

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Where packets to the machine go: to any of its interfaces."""
        return tuple(
            Destination(interface.subnet_ids, interface.addresses, interface.rules.group_id)
            for interface in self.interfaces
        )

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """Subnets of all interfaces, each once."""
        return tuple(dict.fromkeys(subnet for interface in self.interfaces for subnet in interface.subnet_ids))


@derived
def machines_of(estate: Estate, policy: Policy) -> Listing[RelayMachine]:
    """All such machines, sorted by id."""
    nics, sets = throughout(estate, policy, NetworkInterface), throughout(estate, policy, ScaleSet)
    damaged: list[Observation] = []
    machines = [*_standing(estate, nics, damaged), *_together(estate, policy, sets, damaged)]
    problems = (observation.problem for observation in (nics, sets, *damaged))
    return Listing(
        estate.cluster,
        tuple(
            sorted(
                (
                    machine
                    for machine in machines
                    if any(is_reached(estate, policy, subnet) for subnet in machine.subnet_ids)
                ),
                key=lambda machine: machine.id.lower(),
            )
        ),
        (*nics.evidence, *sets.evidence),
        next((problem for problem in problems if problem is not None), None),
    )


def _standing(estate: Estate, nics: Iterable[NetworkInterface], damaged: list[Observation]) -> Iterator[RelayMachine]:
    """One machine for all interfaces that name it."""
    nodes_alone = any((pool.type or "").lower() == "virtualmachines" for pool in pools_of(estate))
    parts: defaultdict[str, list[tuple[NetworkInterface, str, Interface]]] = defaultdict(list)
    for nic, attachment in readable(nics, lambda nic: _of_interface(estate, nic), damaged):
        if attachment is None:
            continue
        machine, interface = attachment
        if not (nodes_alone and _is_node(estate, machine)):
            parts[machine.lower()].append((nic, machine, interface))
    for several in parts.values():
        (first, machine, _), *other_parts = several
        named = machine if other_parts else first.id
        yield RelayMachine(named, tuple(interface for _, _, interface in several), tuple(nic for nic, _, _ in several))


def _together(
    estate: Estate, policy: Policy, sets: Iterable[ScaleSet], damaged: list[Observation]
) -> Iterator[RelayMachine]:
    other_sets = (scale_set for scale_set in sets if not _is_node(estate, scale_set.id))
    for scale_set, models in readable(
        other_sets, lambda scale_set: [_of_model(nic) for nic in scale_set.nics], damaged
    ):
        if any(is_reached(estate, policy, subnet) for model in models for subnet in model.subnet_ids):
            yield _whole(estate, scale_set, models)


def _whole(estate: Estate, scale_set: ScaleSet, models: list[Interface]) -> RelayMachine:
    """The model and its instances; an instance that differs from the model shows only in the lists of instances."""
    if is_flexible(scale_set):
        return RelayMachine(scale_set.id, tuple(models), (scale_set,))
    nics, public = instances_of(estate, scale_set), estate.every(ScaleSetPublicAddress, scale_set.id)
    doubts: list[Observation] = [nics, public]
    instances = [instance for _, instance in readable(nics, lambda nic: _read(estate, nic), doubts)]
    paths = ((PUBLIC_IP,),) if public.items else ()
    return RelayMachine(scale_set.id, (*models, *instances), (scale_set,), paths, tuple(doubts))


def _is_node(estate: Estate, arm_id: str) -> bool:
    group = node_group_of(estate)
    return bool(group) and is_below(arm_id, group)


def _of_interface(estate: Estate, nic: NetworkInterface) -> tuple[str, Interface] | None:
    """The id of the machine and the interface; None where no machine is attached."""
    if nic.virtual_machine is None and nic.hosted_workloads:
        unreported = missing(f"{nic.id}: it is of {nic.hosted_workloads[0]}, whose other egress paths are not read")
        interface = _read(estate, nic)
        return nic.hosted_workloads[0], replace(interface, doubts=(*interface.doubts, unreported))
    return None if nic.virtual_machine is None else (nic.virtual_machine.id, _read(estate, nic))


def _read(estate: Estate, nic: NicFields) -> Interface:
    paths: list[Path] = (
        [(PUBLIC_IP,)]
        if any(configuration.public_ip_address is not None for configuration in nic.ip_configurations)
        else []
    )
    by_default, observations = default_outbound_of(estate, nic)
    paths += [(DEFAULT_OUTBOUND,)] if by_default else []
    unreported = missing(f"{nic.id}: defaultOutboundConnectivityEnabled of this interface is not reported")
    return Interface(
        nic.id,
        nic.subnet_ids,
        tuple(
            configuration.private_ip_address
            for configuration in nic.ip_configurations
            if configuration.private_ip_address
        ),
        _rules_of(nic),
        tuple(pools_named_by(nic)),
        gateway_pools_named_by(nic),
        tuple(paths),
        (*observations, *((unreported,) if by_default is None else ())),
    )


def _of_model(nic: ModelNic) -> Interface:
    public = any(configuration.public_ip_address_configuration is not None for configuration in nic.ip_configurations)
    return Interface(
        "",
        tuple(
            dict.fromkeys(
                configuration.subnet.id for configuration in nic.ip_configurations if configuration.subnet is not None
            )
        ),
        (),
        _rules_of(nic),
        tuple(pools_named_by(nic)),
        gateway_pools_named_by(nic),
        ((PUBLIC_IP,),) if public else (),
    )


def _rules_of(nic: NicFields | ModelNic) -> RulesOf:
    named = {
        group.id.lower()
        for configuration in nic.ip_configurations
        for group in configuration.application_security_groups
    }
    return RulesOf(nic.network_security_group.id if nic.network_security_group else "", tuple(sorted(named)))


def egress_paths(
    estate: Estate, policy: Policy, machine: RelayMachine
) -> tuple[tuple[Path, ...], tuple[Observation, ...]]:
    """Every egress path, and the observations it rests on; where one has a problem, there may be more ways.

    Subnets of the cluster and their route tables are skipped: other checks evaluate them.
    """
    observations: list[Observation] = [
        *machine.doubts,
        *(observation for interface in machine.interfaces for observation in interface.doubts),
    ]
    paths = [*machine.own_ways, *(path for interface in machine.interfaces for path in interface.own_ways)]
    paths += balancer_egress_paths(estate, policy, members_of(estate, machine, observations), observations)
    for subnet_id in machine.subnet_ids:
        if not is_of_the_cluster(estate, subnet_id):
            rules = {interface.rules for interface in machine.interfaces if subnet_id in interface.subnet_ids}
            paths += _of_place(estate, policy, subnet_id, sorted(rules), observations)
    return tuple(dict.fromkeys(paths)), tuple(observations)


def members_of(estate: Estate, machine: RelayMachine, observations: list[Observation]) -> Members:
    """What identifies the machine in pools of load balancers."""
    return Members(
        group="",
        interfaces=frozenset(interface.id.lower() for interface in machine.interfaces if interface.id),
        sets=tuple(resource.id.lower() for resource in machine.observations if isinstance(resource, ScaleSet)),
        pools=frozenset(pool for interface in machine.interfaces for pool in interface.pool_ids),
        prefixes=tuple(
            prefix for interface in machine.interfaces for prefix in _prefixes(estate, interface, observations)
        ),
        networks=frozenset(parent_of(subnet_id).lower() for subnet_id in machine.subnet_ids),
    )


def _prefixes(estate: Estate, interface: Interface, observations: list[Observation]) -> Iterator[tuple[str, Network]]:
    """The addresses of an interface; those of its subnets where it may have any of them."""
    if interface.addresses:
        yield from ((name, prefix) for name in interface.subnet_ids for prefix in networks(interface.addresses))
        return
    for observation in (estate.one(Subnet, subnet_id) for subnet_id in interface.subnet_ids):
        observations.append(observation)
        for subnet in values_of((observation,)):
            yield from ((observation.target, prefix) for prefix in networks(subnet.prefixes))


def _of_place(
    estate: Estate, policy: Policy, subnet_id: str, rules: list[RulesOf], observations: list[Observation]
) -> Iterator[Path]:
    """The ways that a subnet or its network gives to a machine; `rules` are those of its interfaces there."""
    subnet, network = estate.one(Subnet, subnet_id), estate.one(VirtualNetwork, parent_of(subnet_id))
    nat, service = throughout(estate, policy, NatGateway), throughout(estate, policy, ServiceGateway)
    observations += (subnet, network, nat, service)
    resource_ids = {subnet_id.lower(), parent_of(subnet_id).lower()}
    for resource_id, method in (
        *each_of(values_of((subnet,)), by_subnet, observations),
        *each_of(values_of((network,)), by_network, observations),
        *each_of(nat, by_nat_gateway, observations),
        *each_of(service, by_service_gateway, observations),
    ):
        if resource_id.lower() in resource_ids:
            yield (method.hop,)
    yield from each_of(values_of((subnet,)), _by_default, observations)
    yield from each_of(
        values_of((subnet,)), lambda value: _given(estate, policy, value, network, rules, observations), observations
    )
    yield from each_of(
        values_of((subnet,)), lambda value: _routed(estate, policy, subnet_id, value, observations), observations
    )


def _given(
    estate: Estate,
    policy: Policy,
    subnet: Subnet,
    network: Lookup[VirtualNetwork],
    rules: list[RulesOf],
    observations: list[Observation],
) -> Iterator[Path]:
    """What needs no address: learned routes, service endpoints, storage of the region past the weakest group."""
    yield from learned_egress_paths(estate, policy, subnet, network, observations)
    yield from endpoint_egress_paths(estate, policy, subnet, observations)
    for interface_rules in rules:
        yield from storage_egress_paths(estate, subnet, interface_rules, observations)


def _by_default(subnet: Subnet) -> Iterator[Path]:
    if subnet.default_outbound_access is not False:
        yield (DEFAULT_OUTBOUND,)


def _routed(
    estate: Estate, policy: Policy, subnet_id: str, subnet: Subnet, observations: list[Observation]
) -> Iterator[Path]:
    if subnet.route_table is None or subnet.route_table.id.lower() in _tables_of_the_cluster(estate):
        return
    table = estate.one(RouteTable, subnet.route_table.id)
    addresses, firewall = declared_addresses(estate, policy)
    observations += (table, *firewall)
    routes = table.value.routes if table.value is not None else None
    if routes is None:
        observations.append(not_answered(table.target, "list of routes"))
    # Where the declared firewall was not seen, a default route to an appliance is taken for one that leads to it.
    unseen = any(observation.problem is not None for observation in firewall)
    for outbound_route in public_routes(routes, local_space(estate, subnet_id)):
        if outbound_route.leads_on and not (
            _may_lead_to_it(outbound_route) if unseen else leads_to_the_firewall(outbound_route, addresses)
        ):
            yield path_of(f"route {outbound_route.route.address_prefix}", outbound_route.next_hop)


def _tables_of_the_cluster(estate: Estate) -> frozenset[str]:
    """Ids, in lower case, of the route tables of the cluster's subnets."""
    subnets = [scoped.observation.value for scoped in subnets_of(estate)[0] if scoped.observation.value is not None]
    unread: list[Observation] = []  # a reference that cannot be read excludes no table
    tables = readable(subnets, lambda subnet: subnet.route_table, unread)
    return frozenset(table.id.lower() for _, table in tables if table is not None)


def _may_lead_to_it(outbound_route: OutboundRoute) -> bool:
    return outbound_route.is_default and outbound_route.hop is NextHopKind.FORWARDED
