"""Finds resources outside the cluster's own lists that may serve the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hermetic.audit.cluster_scope import (
    groups_of,
    instance_nics_of,
    is_flexible,
    network_ids_of,
    nics_of_set,
    node_group_of,
)
from hermetic.audit.estate.arm_ids import is_below, subscription_of
from hermetic.audit.estate.azure.vnet import NetworkInterface, NicFields, ScaleSet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Observation, Seen, merged
from hermetic.audit.estate.resource import Resource
from hermetic.audit.evaluation import unreadable
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import is_in
from hermetic.errors import FactDamaged

R = TypeVar("R", bound=Resource)
T = TypeVar("T")
V = TypeVar("V")


def home_subscriptions(estate: Estate, policy: Policy) -> tuple[str, ...]:
    """/subscriptions/… of the cluster, of its networks and of the policy's `own_subscriptions`; not those of peers."""
    ids = {subscription_of(one) for one in (estate.cluster, *network_ids_of(estate))}
    ids |= {subscription_of(one) or one.lower() for one in policy.own_subscriptions}
    return tuple(f"/subscriptions/{one}" for one in sorted(ids - {""}))


@derived
def everywhere(estate: Estate, policy: Policy, kind: type[R]) -> Listing[R]:
    """All resources of a kind in the home subscriptions, each once.

    The cluster's resource groups are listed as well: the list of a subscription silently omits what lies in a group
    that the caller may not read, while the list of that group is refused.
    """
    scopes = (*home_subscriptions(estate, policy), *groups_of(estate))
    whole = merged(estate.cluster, *(estate.every(kind, scope) for scope in scopes))
    once = {item.id.lower(): item for item in whole}
    return Listing(whole.target, tuple(once[key] for key in sorted(once)), whole.evidence, whole.problem)


def in_home_subscriptions(estate: Estate, policy: Policy, kind: type[R]) -> Listing[R]:
    """From the lists of the home subscriptions alone: for kinds outside the cluster's resource groups."""
    return merged(estate.cluster, *(estate.every(kind, scope) for scope in home_subscriptions(estate, policy)))


@derived
def interfaces_in_the_networks(estate: Estate, policy: Policy) -> tuple[tuple[NicFields, ...], tuple[Observation, ...]]:
    """Every interface with an address in a network of the cluster, sorted by id, and the observations it rests on."""
    instances, others = instance_nics_of(estate), everywhere(estate, policy, NetworkInterface)
    networks = frozenset(one.lower() for one in network_ids_of(estate))
    known: dict[str, NicFields] = {nic.id.lower(): nic for nic in instances}
    damaged: list[Observation] = []
    for nic, subnets in readable(others, lambda nic: nic.subnet_ids, damaged):
        if is_in(subnets, networks):
            known.setdefault(nic.id.lower(), nic)
    beside = _instances_of_others(estate, policy, networks, damaged)
    for instance in (nic for listing in beside for nic in listing):
        known.setdefault(instance.id.lower(), instance)
    return tuple(known[key] for key in sorted(known)), (instances, others, *beside, *damaged)


def _instances_of_others(
    estate: Estate, policy: Policy, networks: frozenset[str], damaged: list[Observation]
) -> list[Listing[NicFields]]:
    """Instances of other scale sets than the cluster's, of those whose model is in one of these networks.

    The cluster's are excluded by their resource group, whether or not the list of that group could be read.
    """
    sets, group = everywhere(estate, policy, ScaleSet), node_group_of(estate)
    others = readable(sets.where(lambda one: not is_below(one.id, group)), lambda one: one.subnet_ids, damaged)
    found = [instances_of(estate, scale_set) for scale_set, subnets in others if is_in(subnets, networks)]
    return [Listing(sets.target, (), sets.evidence, sets.problem), *found]


def instances_of(estate: Estate, scale_set: ScaleSet) -> Listing[NicFields]:
    """Interfaces of a scale set's instances; empty in flexible mode, where they are listed with all others."""
    if is_flexible(scale_set):
        return Listing(scale_set.id, (), scale_set.evidence)
    return nics_of_set(estate, scale_set)


def readable(items: Iterable[T], read: Callable[[T], V], damaged: list[Observation]) -> Iterator[tuple[T, V]]:
    """Each item with what was read of it; an unreadable item is added to `damaged` and skipped."""
    for item in items:
        try:
            found = read(item)
        except FactDamaged as damage:
            damaged.append(unreadable(damage))
        else:
            yield item, found


def each_of(items: Iterable[T], read: Callable[[T], Iterable[V]], damaged: list[Observation]) -> Iterator[V]:
    """What was read of all items, as one sequence; an unreadable item is added to `damaged` and skipped."""
    for _, found in readable(items, lambda item: tuple(read(item)), damaged):
        yield from found


def values_of(seen: Iterable[Seen[T]]) -> Iterator[T]:
    """The values of the resources that were read."""
    return (one.value for one in seen if one.value is not None)
