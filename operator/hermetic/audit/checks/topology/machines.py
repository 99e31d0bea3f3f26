"""Machines in the cluster's networks and their peers that are no nodes, and the ways out that each of them has."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.audit.egress.inventory import readable
from hermetic.audit.estate.arm_ids import is_below, name_of
from hermetic.audit.estate.azure.vnet import NetworkInterface, ScaleSet, Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.look import Listing, Look, Seen
from hermetic.audit.policy import Policy
from hermetic.audit.reach import is_in, reached_network_ids, throughout
from hermetic.audit.scope import is_of_the_cluster, node_group_of, pools_of


@dataclass(frozen=True, slots=True)
class Machine:
    """An interface of a machine, or a scale set with all its machines. `id` is what would have to change.

    `addresses` are private ones, empty for a scale set: its machines may have any of its subnets. `own_ways` says in
    words which ways out the interface has by itself.
    """

    id: str
    subnet_ids: tuple[str, ...]
    addresses: tuple[str, ...]
    group_ids: tuple[str, ...]
    own_ways: tuple[str, ...]
    seen: Look


def machines_of(estate: Estate, policy: Policy) -> Listing[Machine]:
    """All of them, sorted by id."""
    return estate.once(("machines", policy), lambda: _machines(estate, policy))


def _machines(estate: Estate, policy: Policy) -> Listing[Machine]:
    nics, sets = throughout(estate, policy, NetworkInterface), throughout(estate, policy, ScaleSet)
    damaged: list[Look] = []
    alone = [found for _, found in readable(nics, _of_interface, damaged) if found is not None]
    together = [found for _, found in readable(sets, _of_scale_set, damaged)]
    networks = reached_network_ids(estate)
    nodes_alone = any((pool.type or "").lower() == "virtualmachines" for pool in pools_of(estate))
    found = [one for one in alone if not (nodes_alone and _is_node(estate, one.id))]
    found += [one for one in together if not _is_node(estate, one.id)]
    problems = (look.problem for look in (nics, sets, *damaged))
    return Listing(
        estate.cluster,
        tuple(sorted((one for one in found if is_in(one.subnet_ids, networks)), key=lambda one: one.id.lower())),
        (*nics.evidence, *sets.evidence),
        next((problem for problem in problems if problem is not None), None),
    )


def _is_node(estate: Estate, arm_id: str) -> bool:
    group = node_group_of(estate)
    return bool(group) and is_below(arm_id, group)


def _of_interface(nic: NetworkInterface) -> Machine | None:
    if nic.virtual_machine is None:
        return None
    ways = ["public ip"] if any(one.public_ip_address is not None for one in nic.ip_configurations) else []
    ways += ["default outbound"] if nic.default_outbound_connectivity_enabled else []
    addresses = tuple(one.private_ip_address for one in nic.ip_configurations if one.private_ip_address)
    groups = (nic.network_security_group.id,) if nic.network_security_group else ()
    return Machine(nic.id, nic.subnet_ids, addresses, groups, tuple(ways), nic)


def _of_scale_set(scale_set: ScaleSet) -> Machine:
    configurations = [one for nic in scale_set.nics for one in nic.ip_configurations]
    public = any(one.public_ip_address_configuration is not None for one in configurations)
    # A group counts only where every interface has it: one interface without is enough to come in.
    groups = {nic.network_security_group.id if nic.network_security_group else "" for nic in scale_set.nics}
    shared = tuple(groups) if len(groups) == 1 and "" not in groups else ()
    return Machine(scale_set.id, scale_set.subnet_ids, (), shared, ("public ip",) if public else (), scale_set)


def ways_out(estate: Estate, machine: Machine) -> tuple[tuple[str, ...], tuple[Look, ...]]:
    """In words, its own ways and those of its subnets; and the subnets that were read for it.

    A subnet of the cluster is judged for itself: what it lets out is no news about this machine.
    """
    subnets = [estate.one(Subnet, one) for one in machine.subnet_ids if not is_of_the_cluster(estate, one)]
    ways = (*machine.own_ways, *(way for subnet in subnets for way in _of_subnet(subnet)))
    return tuple(dict.fromkeys(ways)), tuple(subnets)


def _of_subnet(seen: Seen[Subnet]) -> list[str]:
    subnet = seen.value
    if subnet is None:
        return []
    ways = [f"nat gateway {name_of(subnet.nat_gateway.id)}"] if subnet.nat_gateway is not None else []
    return ways if subnet.default_outbound_access is False else [*ways, "default outbound"]
