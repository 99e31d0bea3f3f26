"""The scope of a cluster: its pools, subnets, networks, network interfaces, and its home subscriptions.

A subnet belongs to it when a pool, the API server profile or an instance's interface refers to it. Where a list that
could name more could not be read in full, the scope has a problem, and no check may conclude that there are no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hermetic.audit.cluster.instance_counts import is_made_of_a_scale_set, of_instances, of_machines, of_pools
from hermetic.audit.estate.arm_ids import group_of, is_below, parent_of, same_id, subscription_of
from hermetic.audit.estate.azure.aks import AgentPool, ManagedCluster
from hermetic.audit.estate.azure.machines import ScaleSetInstance
from hermetic.audit.estate.azure.vnet import (
    NetworkInterface,
    NicFields,
    Peering,
    ScaleSet,
    ScaleSetNic,
    Subnet,
    VirtualNetwork,
)
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.nodes import AksNodeClass
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.observation import Listing, Lookup, Missing, Observation, merged, missing, unreadable
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.estate.resource import Resource
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

T = TypeVar("T", bound=Resource)

MANAGED_CLUSTERS = "microsoft.containerservice/managedclusters"
NODE, POD, API_SERVER, INSTANCE, NODE_CLASS = "node", "pod", "apiServer", "instance", "nodeClass"


@dataclass(frozen=True, slots=True)
class ScopedSubnet:
    """A subnet of the cluster, its roles, and what was read of it."""

    id: str
    roles: frozenset[str]
    observation: Lookup[Subnet]

    @property
    def is_for_the_api_server_only(self) -> bool:
        """Delegated to AKS for the API server, and no pool, node or pod is known to have an address in it.

        Whether a node may be missing from the lists is in the observations of `subnets_of`. AKS delegates subnets of
        pods to the same service; a pool names those.
        """
        return self.roles == {API_SERVER} and self._is_delegated

    @property
    def _is_delegated(self) -> bool:
        """Whether it is delegated to AKS; False where the delegation cannot be read."""
        try:
            delegations = self.observation.value.delegations if self.observation.value is not None else []
            return any((delegation.service_name or "").lower() == MANAGED_CLUSTERS for delegation in delegations)
        except FactDamaged:
            return False


def cluster_of(estate: Estate) -> Lookup[ManagedCluster]:
    return estate.one(ManagedCluster, estate.cluster)


def pools_of(estate: Estate) -> Listing[AgentPool]:
    """Its agent pools. An empty list is a problem: every cluster has a pool, so the answer is incomplete."""
    cluster = cluster_of(estate)
    profiles = cluster.value.agent_pool_profiles if cluster.value is not None else None
    problem = cluster.problem
    if problem is None and not profiles:
        problem = Problem(
            UnreadReason.UNREADABLE, f"{estate.cluster}: no agent pool in the answer, and every cluster has one"
        )
    return Listing(estate.cluster, tuple(profiles or ()), cluster.evidence, problem)


def node_group_of(estate: Estate) -> str:
    """/subscriptions/…/resourceGroups/… of the nodes; "" while the cluster is not readable."""
    cluster = cluster_of(estate).value
    if cluster is None or not cluster.node_resource_group:
        return ""
    return f"/subscriptions/{subscription_of(estate.cluster)}/resourceGroups/{cluster.node_resource_group}"


@derived
def scale_sets_of(estate: Estate) -> Listing[ScaleSet]:
    """The scale sets in the node resource group. Fewer, or with less capacity, than pools need are a problem."""
    group = node_group_of(estate)
    if not group:
        return _not_yet(estate)
    sets, pools = estate.every(ScaleSet, group), pools_of(estate)
    if sets.problem is not None:
        return sets
    pool_names = [pool.name for pool in pools if is_made_of_a_scale_set(pool)]
    if len(sets.items) >= len(pool_names):
        return Listing(sets.target, sets.items, sets.evidence, of_pools(pools, sets))
    detail = f"{group}: {len(sets.items)} scale sets are listed, and each of {len(pool_names)} pools is made of one"
    return Listing(sets.target, (), sets.evidence, Problem(UnreadReason.UNREADABLE, detail))


@derived
def instance_nics_of(estate: Estate) -> Listing[NicFields]:
    """Interfaces of every node: of scale set instances, and of standalone VMs in the node resource group.

    Fewer machines with an interface than Azure counts or lists are a problem.
    """
    sets = scale_sets_of(estate)
    group = node_group_of(estate)
    listings = [_nics_of_listed_instances(estate, scale_set) for scale_set in sets if not is_flexible(scale_set)]
    nics: Listing[NicFields] = merged(group or estate.cluster, *listings, _standing_nics_of(estate, group))
    return Listing(nics.target, nics.items, (*sets.evidence, *nics.evidence), sets.problem or nics.problem)


def _nics_of_listed_instances(estate: Estate, scale_set: ScaleSet) -> Listing[NicFields]:
    """Interfaces of a set's instances; a problem where a listed instance has none: it always has at least one."""
    nics, instances = nics_of_set(estate, scale_set), instances_of(estate, scale_set)
    machines = {parent_of(nic.id).lower() for nic in nics}
    bare = next((instance.id for instance in instances if instance.id.lower() not in machines), "")
    if not bare or nics.problem is not None:
        return nics
    problem = Problem(UnreadReason.UNREADABLE, f"{bare}: no network interface of this instance was listed")
    return Listing(nics.target, nics.items, (*nics.evidence, *instances.evidence), problem)


def _standing_nics_of(estate: Estate, group: str) -> Listing[NetworkInterface]:
    if not group:
        return _not_yet(estate)
    alone = estate.every(NetworkInterface, group).where(_may_be_of_a_machine)
    flexible = scale_sets_of(estate).where(is_flexible)
    machines = machines_named_by(alone)
    problem = alone.problem or of_machines(group, pools_of(estate), flexible, len(machines))
    none: Listing[NetworkInterface] = Listing(group)
    beyond = _nics_beyond(estate, group) if machines else none
    items, evidence = (*alone.items, *beyond.items), (*alone.evidence, *beyond.evidence)
    return Listing(alone.target, items, evidence, problem or beyond.problem)


def _nics_beyond(estate: Estate, group: str) -> Listing[NetworkInterface]:
    """Interfaces in other resource groups of virtual machines in the node resource group.

    An interface is in the subscription of its machine (learn.microsoft.com/azure/virtual-machines/network-overview);
    no document limits it to the machine's resource group.
    """
    listed = estate.every(NetworkInterface, f"/subscriptions/{subscription_of(group)}")
    return listed.where(lambda nic: not is_below(nic.id, group) and _is_of_machine_below(nic, group))


def _is_of_machine_below(nic: NetworkInterface, group: str) -> bool:
    """Whether its machine is below a group; False where that cannot be read: it is among the machines in reach then."""
    try:
        return nic.virtual_machine is not None and is_below(nic.virtual_machine.id, group)
    except FactDamaged:
        return False


def machines_named_by(nics: Iterable[NicFields]) -> set[str]:
    """The machines of these interfaces, by id in lower case; an interface that cannot be read stands for one."""
    machine_ids = set()
    for nic in nics:
        try:
            if nic.virtual_machine is not None:
                machine_ids.add(nic.virtual_machine.id.lower())
        except FactDamaged:
            machine_ids.add(nic.id.lower())
    return machine_ids


def is_flexible(scale_set: ScaleSet) -> bool:
    """Whether its instances are standalone VMs; Azure does not list their interfaces by scale set.

    False where the mode cannot be read: the list by scale set is then requested, and Azure refuses it.
    """
    try:
        return (scale_set.orchestration_mode or "").lower() == "flexible"
    except FactDamaged:
        return False


def _may_be_of_a_machine(nic: NetworkInterface) -> bool:
    """False only for an interface of a private endpoint or private link service and no VM: no VM sends from it."""
    try:
        owners = (nic.private_endpoint, nic.private_link_service)
        return nic.virtual_machine is not None or not any(owners)
    except FactDamaged:
        return True


def nics_of_set(estate: Estate, scale_set: ScaleSet) -> Listing[NicFields]:
    """Interfaces of its instances. Those of more or fewer instances than its capacity are a problem."""
    nics = estate.every(ScaleSetNic, scale_set.id)
    return _of_all(scale_set, nics, len({parent_of(nic.id).lower() for nic in nics}), "a network interface")


def instances_of(estate: Estate, scale_set: ScaleSet) -> Listing[ScaleSetInstance]:
    """Its instances; none for a flexible set (standalone VMs). More or fewer than its capacity are a problem."""
    if is_flexible(scale_set):
        return Listing(scale_set.id)
    instances = estate.every(ScaleSetInstance, scale_set.id)
    return _of_all(scale_set, instances, len({instance.id.lower() for instance in instances}), "an entry")


def _of_all(scale_set: ScaleSet, rows: Listing[T], instance_count: int, entry: str) -> Listing[T]:
    """The rows, with a problem where not as many instances were seen as the scale set has."""
    return Listing(
        scale_set.id, rows.items, rows.evidence, rows.problem or of_instances(scale_set, instance_count, entry)
    )


@derived
def subnets_of(estate: Estate) -> tuple[tuple[ScopedSubnet, ...], tuple[Observation, ...]]:
    """The subnets of the cluster in a fixed order, and the observations that show whether there may be more."""
    roles: dict[str, tuple[str, set[str]]] = {}
    damaged: list[Observation] = []
    for role, subnet_id in _named_subnets(estate, damaged):
        roles.setdefault(subnet_id.lower(), (subnet_id, set()))[1].add(role)
    subnets = tuple(
        ScopedSubnet(subnet_id, frozenset(why), estate.one(Subnet, subnet_id))
        for _, (subnet_id, why) in sorted(roles.items())
    )
    observations = (pools_of(estate), scale_sets_of(estate), instance_nics_of(estate), node_classes_of(estate))
    return subnets, (*observations, *damaged, *_hosted_elsewhere(estate))


@derived
def subnets_by_id(estate: Estate) -> Mapping[str, ScopedSubnet]:
    """The same subnets by id in lower case; a cached index, since thousands of interfaces look theirs up."""
    return {scoped.id.lower(): scoped for scoped in subnets_of(estate)[0]}


def _hosted_elsewhere(estate: Estate) -> Iterator[Missing]:
    """What is missing where AKS hosts system nodes in a subnet that the cluster does not name.

    Without `systemNodeSubnetID` AKS makes a subnet for them. They are no machines of a pool, and the cluster's DNS
    servers run on them.
    """
    cluster = cluster_of(estate).value
    hosted = cluster.hosted_system_profile if cluster is not None else None
    if hosted is not None and hosted.enabled and not hosted.system_node_subnet_id:
        message = "hostedSystemProfile is enabled and names no systemNodeSubnetID: the subnet of its nodes is not known"
        yield missing(message)


def node_classes_of(estate: Estate) -> Listing[AksNodeClass]:
    """The node classes of node auto provisioning; empty where it is off or the audit has no source kube."""
    cluster = cluster_of(estate).value
    profile = cluster.node_provisioning_profile if cluster is not None else None
    mode = (profile.mode if profile is not None else None) or "Manual"
    if "kube" not in estate.sources or mode.lower() == "manual":
        return Listing(estate.cluster)
    return estate.every(AksNodeClass, EVERYWHERE)


def _named_subnets(estate: Estate, damaged: list[Observation]) -> Iterator[tuple[str, str]]:
    cluster = cluster_of(estate).value
    for pool in pools_of(estate):
        if pool.vnet_subnet_id:
            yield NODE, pool.vnet_subnet_id
        if pool.pod_subnet_id:
            yield POD, pool.pod_subnet_id
    if cluster is not None:
        yield from _named_by_profiles(cluster)
    for node_class in node_classes_of(estate):
        if node_class.spec.vnet_subnet_id:
            yield NODE_CLASS, node_class.spec.vnet_subnet_id
    for thing in (*scale_sets_of(estate), *instance_nics_of(estate)):
        try:
            subnet_ids = thing.subnet_ids
        except FactDamaged as damage:  # a damaged interface must not hide the subnets of the others
            damaged.append(unreadable(damage))
        else:
            yield from ((INSTANCE, subnet_id) for subnet_id in subnet_ids)


def _named_by_profiles(cluster: ManagedCluster) -> Iterator[tuple[str, str]]:
    """Subnets that the cluster names outside its pools: of the API server, and of system nodes hosted by AKS."""
    access, hosted = cluster.api_server_access_profile, cluster.hosted_system_profile
    if access is not None and access.subnet_id:
        yield API_SERVER, access.subnet_id
    for subnet_id in (hosted.system_node_subnet_id, hosted.node_subnet_id) if hosted is not None else ():
        if subnet_id:
            yield NODE, subnet_id


def network_ids_of(estate: Estate) -> tuple[str, ...]:
    """Ids of the virtual networks that the cluster's subnets are in, sorted."""
    subnets, _ = subnets_of(estate)
    return tuple(sorted({parent_of(subnet.id).lower(): parent_of(subnet.id) for subnet in subnets}.values()))


def networks_of(estate: Estate) -> tuple[Lookup[VirtualNetwork], ...]:
    return tuple(estate.one(VirtualNetwork, network_id) for network_id in network_ids_of(estate))


def peerings_of(estate: Estate) -> Listing[Peering]:
    """Every peering of the cluster's networks, connected or not."""
    ids = network_ids_of(estate)
    return (
        merged(estate.cluster, *(estate.every(Peering, network_id) for network_id in ids)) if ids else _not_yet(estate)
    )


def home_subscriptions(estate: Estate, policy: Policy) -> tuple[str, ...]:
    """/subscriptions/… of the cluster, of its networks and of the policy's `own_subscriptions`; not those of peers."""
    ids = {subscription_of(resource_id) for resource_id in (estate.cluster, *network_ids_of(estate))}
    ids |= {subscription_of(subscription) or subscription.lower() for subscription in policy.own_subscriptions}
    return tuple(f"/subscriptions/{subscription}" for subscription in sorted(ids - {""}))


def groups_of(estate: Estate) -> tuple[str, ...]:
    """The resource groups of the cluster, its nodes and its networks; sorted."""
    groups = (
        group_of(estate.cluster),
        node_group_of(estate),
        *(group_of(network_id) for network_id in network_ids_of(estate)),
    )
    return tuple(sorted({group_id.lower(): group_id for group_id in groups if group_id}.values()))


def is_of_the_cluster(estate: Estate, subnet_id: str) -> bool:
    return any(same_id(subnet_id, scoped.id) for scoped in subnets_of(estate)[0])


def _not_yet(estate: Estate) -> Listing[Any]:
    cluster = cluster_of(estate)
    problem = cluster.problem or Problem(
        UnreadReason.UNREADABLE, f"{estate.cluster}: names no node resource group or subnet"
    )
    return Listing(estate.cluster, (), cluster.evidence, problem)
