"""Finds resources outside the cluster's own lists that may serve the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hermetic.audit.cluster.members import (
    groups_of,
    home_subscriptions,
    instance_nics_of,
    is_flexible,
    network_ids_of,
    nics_of_set,
    node_group_of,
)
from hermetic.audit.estate.arm_ids import is_below, is_in
from hermetic.audit.estate.azure.security_groups import SecurityGroup
from hermetic.audit.estate.azure.vnet import NetworkInterface, NicFields, ScaleSet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Lookup, Observation, merged, not_answered, unreadable
from hermetic.audit.estate.resource import Resource
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

R = TypeVar("R", bound=Resource)
T = TypeVar("T")
V = TypeVar("V")


@derived
def everywhere(estate: Estate, policy: Policy, kind: type[R]) -> Listing[R]:
    """All resources of a kind in the home subscriptions, each once.

    The cluster's resource groups are listed as well: the list of a subscription silently omits what lies in a group
    that the caller may not read, while the list of that group is refused.
    """
    scopes = (*home_subscriptions(estate, policy), *groups_of(estate))
    listing = merged(estate.cluster, *(estate.every(kind, scope) for scope in scopes))
    once = {item.id.lower(): item for item in listing}
    return Listing(listing.target, tuple(once[key] for key in sorted(once)), listing.evidence, listing.problem)


def in_home_subscriptions(estate: Estate, policy: Policy, kind: type[R]) -> Listing[R]:
    """From the lists of the home subscriptions alone: for kinds outside the cluster's resource groups."""
    return merged(estate.cluster, *(estate.every(kind, scope) for scope in home_subscriptions(estate, policy)))


@derived
def interfaces_in_the_networks(estate: Estate, policy: Policy) -> tuple[tuple[NicFields, ...], tuple[Observation, ...]]:
    """Every interface with an address in a network of the cluster, sorted by id, and the observations it rests on."""
    instances, listed_nics = instance_nics_of(estate), everywhere(estate, policy, NetworkInterface)
    networks = frozenset(network_id.lower() for network_id in network_ids_of(estate))
    nics_by_id: dict[str, NicFields] = {nic.id.lower(): nic for nic in instances}
    damaged: list[Observation] = []
    for nic, subnets in readable(listed_nics, lambda nic: nic.subnet_ids, damaged):
        if is_in(subnets, networks):
            nics_by_id.setdefault(nic.id.lower(), nic)
    beside = _instances_of_others(estate, policy, networks, damaged)
    for instance in (nic for listing in beside for nic in listing):
        nics_by_id.setdefault(instance.id.lower(), instance)
    return tuple(nics_by_id[key] for key in sorted(nics_by_id)), (instances, listed_nics, *beside, *damaged)


def _instances_of_others(
    estate: Estate, policy: Policy, networks: frozenset[str], damaged: list[Observation]
) -> list[Listing[NicFields]]:
    """Instances of other scale sets than the cluster's, of those whose model is in one of these networks.

    The cluster's are excluded by their resource group, whether or not the list of that group could be read.
    """
    sets, group = everywhere(estate, policy, ScaleSet), node_group_of(estate)
    other_sets = readable(
        sets.where(lambda scale_set: not is_below(scale_set.id, group)), lambda scale_set: scale_set.subnet_ids, damaged
    )
    listings = [instances_of(estate, scale_set) for scale_set, subnets in other_sets if is_in(subnets, networks)]
    return [Listing(sets.target, (), sets.evidence, sets.problem), *listings]


def instances_of(estate: Estate, scale_set: ScaleSet) -> Listing[NicFields]:
    """Interfaces of a scale set's instances; empty in flexible mode, where they are listed with all others."""
    if is_flexible(scale_set):
        return Listing(scale_set.id, (), scale_set.evidence)
    return nics_of_set(estate, scale_set)


def readable(items: Iterable[T], read: Callable[[T], V], damaged: list[Observation]) -> Iterator[tuple[T, V]]:
    """Each item with what was read of it; an unreadable item is added to `damaged` and skipped."""
    for item in items:
        try:
            value = read(item)
        except FactDamaged as damage:
            damaged.append(unreadable(damage))
        else:
            yield item, value


def each_of(items: Iterable[T], read: Callable[[T], Iterable[V]], damaged: list[Observation]) -> Iterator[V]:
    """What was read of all items, as one sequence; an unreadable item is added to `damaged` and skipped."""
    for _, values in readable(items, lambda item: tuple(read(item)), damaged):
        yield from values


def security_group(estate: Estate, group: str) -> Lookup[SecurityGroup]:
    """A security group by its id. Where the answer has no list of its own rules, the group counts as not read.

    Azure answers an empty list where a group has no rule of its own (Network Security Groups - Get), so its default
    rules alone decide nothing: a rule that was not answered may come before them.
    """
    observation = estate.one(SecurityGroup, group)
    if observation.value is None or observation.value.is_damaged or observation.value.security_rules is not None:
        return observation
    return Lookup(observation.target, None, observation.evidence, not_answered(group, "list of rules").problem)


def values_of(observations: Iterable[Lookup[T]]) -> Iterator[T]:
    """The values of the resources that were read."""
    return (observation.value for observation in observations if observation.value is not None)
