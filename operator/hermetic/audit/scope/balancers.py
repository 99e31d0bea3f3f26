"""Load balancers with nodes in their pools, and which of their rules translate source addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from hermetic.api.ip_ranges import Network
from hermetic.audit.cluster.members import (
    ScopedSubnet,
    instance_nics_of,
    network_ids_of,
    node_group_of,
    scale_sets_of,
    subnets_of,
)
from hermetic.audit.cluster.resource_lookup import readable
from hermetic.audit.estate.arm_ids import is_below, owner_of, parent_of, same_id
from hermetic.audit.estate.azure.balancing import (
    BackendAddress,
    BackendPool,
    BalancingRule,
    Frontend,
    LoadBalancer,
    OutboundRule,
)
from hermetic.audit.estate.azure.vnet import IpConfiguration, ModelIpConfiguration, ModelNic, NicFields
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.estate.resource import Reference
from hermetic.audit.model.address_ranges import networks
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.reachable_networks import throughout


@dataclass(frozen=True, slots=True)
class Members:
    """What identifies machines as members of a pool: interface, scale set or address. Ids in lower case.

    `group` is the node resource group, "" for machines beside the nodes. `pools` are what interfaces and models name:
    backend pools, and inbound NAT rules and pools. `prefixes` are the addresses of the machines, by subnet.
    """

    group: str
    interfaces: frozenset[str]
    sets: tuple[str, ...]
    pools: frozenset[str]
    prefixes: tuple[tuple[str, Network], ...]
    networks: frozenset[str]

    def subnets_of_address(self, pool: BackendPool, address: BackendAddress) -> tuple[str, ...]:
        """Ids of the subnets whose prefixes contain the address of a pool member.

        The network is named by the member, or by its pool (learn.microsoft.com/azure/load-balancer/
        backend-pool-management): the same address may exist in a network that is not peered.
        """
        inside = address.subnet or address.virtual_network or pool.virtual_network
        if inside is not None and not any(
            same_id(inside.id, network_id) or is_below(inside.id, network_id) for network_id in self.networks
        ):
            return ()
        return self.subnets_with(address.ip_address or "")

    def subnets_with(self, address: str) -> tuple[str, ...]:
        """Ids of the subnets whose prefixes contain an address, in whichever network that is."""
        try:
            parsed_address = ip_address(address)
        except ValueError:
            return ()
        return tuple(subnet for subnet, prefix in self.prefixes if parsed_address in prefix)

    def are_in(self, balancer: LoadBalancer, pool: BackendPool) -> bool:
        """Whether they are members of a pool, or the balancer is in the node resource group."""
        if self.group and is_below(balancer.id, self.group):
            return True
        if pool_id(balancer, pool) in self.pools:
            return True
        by_interface = (configuration.id.lower() for configuration in pool.backend_ip_configurations or ())
        if any(self.owns(configuration_id) for configuration_id in by_interface):
            return True
        return any(self._is_member(pool, address) for address in pool.load_balancer_backend_addresses or ())

    def _is_member(self, pool: BackendPool, address: BackendAddress) -> bool:
        chained = address.load_balancer_frontend_ip_configuration
        if chained is not None and self.balances(owner_of(chained.id)):
            return True
        configuration = address.network_interface_ip_configuration
        if configuration is not None and self.owns(configuration.id.lower()):
            return True
        return bool(self.subnets_of_address(pool, address))

    def balances(self, balancer: str) -> bool:
        """Whether a load balancer has them in a pool, as far as they name it."""
        of_group = bool(self.group) and is_below(balancer, self.group)
        return of_group or any(is_below(pool, balancer) for pool in self.pools)

    def owns(self, ip_configuration: str) -> bool:
        """Whether an IP configuration belongs to one of their interfaces."""
        return parent_of(ip_configuration) in self.interfaces or any(
            ip_configuration.startswith(f"{scale_set_id}/") for scale_set_id in self.sets
        )


def pool_id(balancer: LoadBalancer, pool: BackendPool) -> str:
    """The id in lower case, built from the balancer's id and the pool's name where the pool has none."""
    return (pool.id or f"{balancer.id}/backendAddressPools/{pool.name}").lower()


@derived
def nodes_of(estate: Estate) -> tuple[Members, tuple[Observation, ...]]:
    """What identifies the cluster's nodes in pools, and the observations that it rests on."""
    damaged: list[Observation] = []
    sets, nics, (subnets, _) = scale_sets_of(estate), instance_nics_of(estate), subnets_of(estate)
    models = [nic for _, model_nics in readable(sets, lambda scale_set: scale_set.nics, damaged) for nic in model_nics]
    pools = {pool for _, ids in readable((*models, *nics), pools_named_by, damaged) for pool in ids}
    members = Members(
        group=node_group_of(estate),
        interfaces=frozenset(nic.id.lower() for nic in nics),
        sets=tuple(scale_set.id.lower() for scale_set in sets),
        pools=frozenset(pools),
        prefixes=tuple(_prefixes(subnets, damaged)),
        networks=frozenset(network_id.lower() for network_id in network_ids_of(estate)),
    )
    return members, (sets, nics, *(scoped.observation for scoped in subnets), *damaged)


def pools_named_by(nic: NicFields | ModelNic) -> list[str]:
    """What an interface names of load balancers, in lower case: backend pools, and inbound NAT rules or pools."""
    return [
        reference.id.lower()
        for configuration in nic.ip_configurations
        for reference in (*configuration.load_balancer_backend_address_pools, *_translations(configuration))
    ]


def gateway_pools_named_by(nic: NicFields | ModelNic) -> tuple[str, ...]:
    """The backend pools of application gateways that an interface names."""
    return tuple(
        pool.id
        for configuration in nic.ip_configurations
        for pool in configuration.application_gateway_backend_address_pools
    )


def _translations(configuration: IpConfiguration | ModelIpConfiguration) -> list[Reference]:
    """Inbound NAT rules of an interface, or inbound NAT pools of a scale set's model."""
    if isinstance(configuration, IpConfiguration):
        return configuration.load_balancer_inbound_nat_rules
    return configuration.load_balancer_inbound_nat_pools


def _prefixes(subnets: Iterable[ScopedSubnet], damaged: list[Observation]) -> Iterator[tuple[str, Network]]:
    read_subnets = [subnet.observation.value for subnet in subnets if subnet.observation.value is not None]
    for subnet, prefixes in readable(read_subnets, lambda subnet: networks(subnet.prefixes), damaged):
        for prefix in prefixes:
            yield subnet.id, prefix


@derived
def balancers_of(estate: Estate, policy: Policy) -> tuple[tuple[Lookup[LoadBalancer], ...], tuple[Observation, ...]]:
    """Load balancers with nodes in a pool, sorted by id; and the observations that decide whether more exist."""
    nodes, observations = nodes_of(estate)
    listed = throughout(estate, policy, LoadBalancer)
    balancers: dict[str, Lookup[LoadBalancer]] = {}
    for listed_balancer in listed:
        if serves_nodes(listed_balancer, nodes):
            balancers[listed_balancer.id.lower()] = Lookup(
                listed_balancer.id, listed_balancer, listed_balancer.evidence
            )
    for balancer in sorted({parent_of(pool) for pool in nodes.pools} - balancers.keys()):
        balancers[balancer] = estate.one(LoadBalancer, balancer)
    return tuple(balancers[key] for key in sorted(balancers)), (listed, *observations)


def serves_nodes(balancer: LoadBalancer, nodes: Members) -> bool:
    """Whether nodes are in any of its pools; True where its pools cannot be read, or are not in the answer."""
    damaged: list[Observation] = []
    if nodes.group and is_below(balancer.id, nodes.group):
        return True
    if not balancer.is_damaged and balancer.backend_address_pools is None:
        return True
    read = readable(
        (balancer,),
        lambda candidate: [nodes.are_in(candidate, pool) for pool in candidate.backend_address_pools or ()],
        damaged,
    )
    return any(any(memberships) for _, memberships in read) or bool(damaged)


def pools_with(balancer: LoadBalancer, members: Members) -> frozenset[str]:
    """Ids, in lower case, of its pools with these machines, and of what they name of it."""
    pools = balancer.backend_address_pools or ()
    return frozenset(pool_id(balancer, pool) for pool in pools if members.are_in(balancer, pool)) | {
        pool for pool in members.pools if parent_of(pool) == balancer.id.lower()
    }


def public_frontends(balancer: LoadBalancer) -> tuple[Frontend, ...]:
    """Frontends that are not known to be private."""
    return tuple(frontend for frontend in balancer.frontend_ip_configurations or () if frontend.is_public)


def translating_outbound_rules(balancer: LoadBalancer, pools: frozenset[str]) -> tuple[OutboundRule, ...]:
    """Outbound rules that give members of these pools (ids in lower case) a public source address."""
    private = _private_frontends(balancer)
    return tuple(
        rule
        for rule in balancer.outbound_rules or ()
        if (rule.backend_address_pool is None or rule.backend_address_pool.id.lower() in pools)
        and not _all_private((frontend.id for frontend in rule.frontend_ip_configurations or ()), private)
    )


def translating_rules(balancer: LoadBalancer, pools: frozenset[str]) -> tuple[BalancingRule, ...]:
    """Rules on a public frontend that translate connections from these pools: without `disableOutboundSnat: true`."""
    private = _private_frontends(balancer)
    return tuple(
        rule
        for rule in balancer.load_balancing_rules or ()
        if rule.disable_outbound_snat is not True
        and (not rule.pool_ids or pools.intersection(rule.pool_ids))
        and not _all_private((rule.frontend_ip_configuration.id,) if rule.frontend_ip_configuration else (), private)
    )


def _private_frontends(balancer: LoadBalancer) -> set[str]:
    return {
        (frontend.id or f"{balancer.id}/frontendIPConfigurations/{frontend.name}").lower()
        for frontend in balancer.frontend_ip_configurations or ()
        if not frontend.is_public
    }


def _all_private(frontends: Iterable[str], private: set[str]) -> bool:
    """Whether all of these are known to be private; False without any, and for an id that is not listed."""
    named = [frontend_id.lower() for frontend_id in frontends]
    return bool(named) and all(frontend_id in private for frontend_id in named)
