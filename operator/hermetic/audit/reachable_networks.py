"""Resources beyond the cluster's subnets: its networks, their peers, and lists that span subscriptions.

"There is none" is concluded only from complete lists: every list that a conclusion needs is named, and a subscription
or a peering that could not be read makes the conclusion Unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Protocol, TypeVar

from hermetic.audit.cluster_scope import (
    found_or_none,
    groups_of,
    network_ids_of,
    networks_of,
    peer_ids_of,
    peerings_of,
    pools_of,
    scale_sets_of,
    subscriptions_of,
    whole_or_unknown,
)
from hermetic.audit.estate.arm_ids import group_of, parent_of, type_of
from hermetic.audit.estate.azure.vnet import InhabitedNetwork, ScaleSet, VirtualNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Observation, Seen, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.estate.resource import Resource
from hermetic.audit.evaluation import CheckResult, unknown, whatever_is_damaged
from hermetic.audit.policy import Policy

# Kinds that the answers about networks refer to by id, and that are listed here.
INHABITANTS = {
    "microsoft.network/networkinterfaces",
    "microsoft.network/azurefirewalls",
    "microsoft.network/privateendpoints",
}


class Named(Protocol):
    """An object with an ARM id."""

    @property
    def id(self) -> str:
        """The id as the provider wrote it."""


R = TypeVar("R", bound=Resource)
N = TypeVar("N", bound=Named)


def each_network(
    estate: Estate, _policy: Policy, evaluate: Callable[[Seen[VirtualNetwork]], Iterable[CheckResult]]
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


@derived
def throughout(estate: Estate, policy: Policy, kind: type[R]) -> Listing[R]:
    """All resources of a kind in every subscription that is searched, peers' included, without duplicates.

    The resource groups of the cluster and of its networks are queried as well: the list of a subscription silently
    omits groups that the caller may not read, while the list of such a group is refused. The set of subscriptions
    follows from the networks and peerings: where these are incomplete, the listing has a problem. So it has where a
    network in reach refers to a resource of this kind that is in no list.
    """
    peers = {group_of(one).lower(): group_of(one) for one in peer_ids_of(estate)}
    scopes = {one.lower(): one for one in (*subscriptions_of(estate, policy), *groups_of(estate), *peers.values())}
    found = merged(estate.cluster, *(estate.every(kind, scope) for _, scope in sorted(scopes.items())))
    observations = (pools_of(estate), scale_sets_of(estate), peerings_of(estate))
    problem = found.problem or next(
        (observation.problem for observation in observations if observation.problem is not None), None
    )
    once = {item.id.lower(): item for item in found}
    problem = problem or _unlisted(estate, kind.TYPE, once.keys())
    return Listing(estate.cluster, tuple(once[key] for key in sorted(once)), found.evidence, problem)


def _unlisted(estate: Estate, kind: str, listed: Container[str]) -> Problem | None:
    """Why the list of a kind is incomplete: a network was not read, or it refers to a resource that was not listed."""
    if kind.lower() not in INHABITANTS:
        return None
    for network in reached_networks(estate):
        if network.value is None:
            return network.problem
        for one in (one for subnet in network.value.subnets or () for one in subnet.inhabitant_ids):
            owner = one.lower() if type_of(one).count("/") == 1 else parent_of(one).lower()
            if type_of(owner) == kind.lower() and owner not in listed:
                return Problem(
                    UnreadReason.FORBIDDEN, f"{owner}: it is in {network.target}, and no list shows it", f"{kind}/read"
                )
    return None


def reached_network_ids(estate: Estate) -> frozenset[str]:
    """Ids, in lower case, of the cluster's networks and of those that a peering connects to them."""
    return frozenset(_reached(estate))


def reached_networks(estate: Estate) -> tuple[Seen[InhabitedNetwork], ...]:
    """The same networks, with what is in their subnets; sorted by id."""
    return tuple(estate.one(InhabitedNetwork, one) for _, one in sorted(_reached(estate).items()))


def _reached(estate: Estate) -> dict[str, str]:
    """The ids as written, by their lower case."""
    return {one.lower(): one for one in (*network_ids_of(estate), *peer_ids_of(estate))}


def is_in(subnet_ids: Iterable[str], networks: frozenset[str]) -> bool:
    """Whether one of the subnets is in one of the networks (ids in lower case)."""
    return any(parent_of(one).lower() in networks for one in subnet_ids)
