"""Evaluate the resources of a kind one by one: the cluster, its subnets and networks, and what is in scope.

For `check_each`. What could not be read is Unknown, and so is a list that may be incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from hermetic.audit.cluster.members import ScopedSubnet, cluster_of, networks_of, pools_of, scale_sets_of, subnets_of
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.private_link import PrivateEndpoint
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.azure.storage import FileShare, StorageAccount
from hermetic.audit.estate.azure.vnet import ScaleSet, Subnet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Lookup, Observation
from hermetic.audit.estate.resource import Resource
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, passes, unknown, whatever_is_damaged
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.private_links import private_endpoints_of
from hermetic.audit.scope.registry_storage import account_ids, registry_ids, share_ids

R = TypeVar("R", bound=Resource)


def of_cluster(
    estate: Estate, _policy: Policy, evaluate: Callable[[ManagedCluster], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Evaluate the cluster; Unknown where it could not be read."""
    cluster = cluster_of(estate)
    if cluster.value is None:
        yield unknown(estate.cluster, "ClusterNotSeen", "the cluster could not be read", cluster)
    else:
        yield from evaluate(cluster.value)


def each_subnet(
    estate: Estate, _policy: Policy, evaluate: Callable[[ScopedSubnet, Subnet], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Evaluate every subnet of the cluster; one that was not read, or a list that is incomplete, is Unknown."""
    subnets, observations = subnets_of(estate)
    for subnet in subnets:
        if subnet.observation.value is None:
            yield unknown(subnet.id, "SubnetNotSeen", "the subnet could not be read", subnet.observation)
        else:
            yield from whatever_is_damaged(subnet.id, evaluate(subnet, subnet.observation.value))
    yield from whole_or_unknown(estate.cluster, "the subnets of the cluster", *observations)
    if not subnets:
        yield unknown(estate.cluster, "NoSubnetSeen", "no subnet of the cluster was seen", *observations)


def whole_or_unknown(resource: str, subject: str, *observations: Observation) -> Iterator[CheckResult]:
    """One Unknown where a list that a check rests on is incomplete; otherwise nothing."""
    broken = next((observation for observation in observations if observation.problem is not None), None)
    if broken is not None:
        yield unknown(resource, "ScopeIncomplete", f"{subject}: the list is not whole", broken)


def found_or_none(
    resource: str, items: object, subject: str, none: tuple[str, str], *observations: Observation
) -> Iterator[CheckResult]:
    """What follows the results about all that was found: an Unknown where a list is incomplete.

    Where nothing was found, a Pass with the reason and the message of `none`.
    """
    if items:
        yield from whole_or_unknown(resource, subject, *observations)
    else:
        yield passes(resource, *none, *observations)


class Named(Protocol):
    """An object with an ARM id."""

    @property
    def id(self) -> str:
        """The id as the provider wrote it."""


N = TypeVar("N", bound=Named)


def each_network(
    estate: Estate, _policy: Policy, evaluate: Callable[[Lookup[VirtualNetwork]], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Evaluate every virtual network of the cluster; one that could not be read is Unknown.

    All interfaces of a machine are in one network, so pools and scale sets determine the set of networks.
    """
    networks = networks_of(estate)
    for network in networks:
        if network.value is None:
            yield unknown(network.target, "NetworkNotSeen", "the virtual network could not be read", network)
        else:
            yield from whatever_is_damaged(network.target, evaluate(network))
    observations = (pools_of(estate), scale_sets_of(estate))
    yield from whole_or_unknown(estate.cluster, "the virtual networks of the cluster", *observations)
    if not networks:
        yield unknown(estate.cluster, "NoNetworkSeen", "no virtual network of the cluster was seen", *observations)


def each_or_none(
    parent: str,
    listing: Listing[N],
    evaluate: Callable[[N], Iterable[CheckResult]],
    none: str,
    *observations: Observation,
) -> Iterator[CheckResult]:
    """Evaluate all items. Without any, the parent passes with the message `none`; a partial list adds an Unknown."""
    for item in listing:
        yield from whatever_is_damaged(item.id or parent, evaluate(item))
    yield from found_or_none(parent, listing, none, ("NoneThere", none), listing, *observations)


def each_scale_set(
    estate: Estate, _policy: Policy, evaluate: Callable[[ScaleSet], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Evaluate every scale set of the node resource group."""
    none = "the node resource group holds no scale set"
    yield from each_or_none(estate.cluster, scale_sets_of(estate), evaluate, none, pools_of(estate))


def _each(
    kind: type[R], ids_of: Callable[[Estate, Policy], Listing[str]]
) -> Callable[[Estate, Policy, Callable[[Lookup[R]], Iterable[CheckResult]]], Iterator[CheckResult]]:
    """For `check_each`: evaluate all of a kind in scope."""
    kind_name = kind.TYPE.rpartition("/")[2]

    def evaluate_all(
        estate: Estate, policy: Policy, evaluate: Callable[[Lookup[R]], Iterable[CheckResult]]
    ) -> Iterator[CheckResult]:
        ids = ids_of(estate, policy)
        for resource_id in ids:
            observation = estate.one(kind, resource_id)
            if observation.value is None:
                yield unknown(resource_id, "NotSeen", f"it is in use, and could not be read ({kind_name})", observation)
            else:
                yield from whatever_is_damaged(resource_id, evaluate(observation))
        if ids.items:
            yield from whole_or_unknown(estate.cluster, f"{kind_name} in use", ids)
        else:
            yield does_not_apply(estate.cluster, "NoneInUse", f"nothing here leads to {kind_name}", ids)

    return evaluate_all


each_registry = _each(Registry, registry_ids)


each_account = _each(StorageAccount, account_ids)


each_share = _each(FileShare, share_ids)
"""File shares that have no storage account."""


def each_private_endpoint(
    estate: Estate, policy: Policy, evaluate: Callable[[PrivateEndpoint], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Evaluate all of them."""
    endpoints = private_endpoints_of(estate, policy)
    yield from each_or_none(estate.cluster, endpoints, evaluate, "no private endpoint is in reach")
