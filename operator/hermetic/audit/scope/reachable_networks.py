"""Resources beyond the cluster's subnets: its networks, their peers, and lists that span subscriptions.

"There is none" is concluded only from complete lists: every list that a conclusion needs is named, and a subscription
or a peering that could not be read makes the conclusion Unknown.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TypeVar

from hermetic.audit.cluster.members import (
    groups_of,
    home_subscriptions,
    network_ids_of,
    peerings_of,
    pools_of,
    scale_sets_of,
)
from hermetic.audit.cluster.virtual_hubs import peer_ids_of, subscriptions_of
from hermetic.audit.estate.arm_ids import group_of, parent_of, subscription_of, type_of
from hermetic.audit.estate.azure.vnet import InhabitedNetwork
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Lookup, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.estate.resource import Resource
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.behind_firewall import ids_behind

# Kinds that the answers about networks refer to by id, and that are listed here.
INHABITANTS = {
    "microsoft.network/networkinterfaces",
    "microsoft.network/azurefirewalls",
    "microsoft.network/privateendpoints",
}


R = TypeVar("R", bound=Resource)


# Kinds that decide whether a place passes packets on: listed in the networks behind the declared firewall as well.
OF_RELAYS = frozenset(
    f"microsoft.network/{kind}"
    for kind in (
        "networkinterfaces", "natgateways", "servicegateways", "loadbalancers", "applicationgateways", "azurefirewalls",
        "privateendpoints", "virtualnetworkappliances",
    )
) | {"microsoft.compute/virtualmachinescalesets"}  # fmt: skip


@derived
def throughout(estate: Estate, policy: Policy, kind: type[R]) -> Listing[R]:
    """All resources of a kind in every subscription that is searched, peers' included, without duplicates.

    The resource groups of the cluster and of its networks are queried as well: the list of a subscription silently
    omits groups that the caller may not read, while the list of such a group is refused. The set of subscriptions
    follows from the networks and peerings: where these are incomplete, the listing has a problem. So it has where a
    network in reach refers to a resource of this kind that is in no list.
    """
    scopes = (*subscriptions_of(estate, policy), *groups_of(estate), *_scopes_of_others(estate, policy, kind))
    return _listed(estate, policy, kind, scopes, scopes)


@derived
def where_readable(estate: Estate, policy: Policy, kind: type[R]) -> Listing[R]:
    """The same resources; only lists of the home subscriptions, and the cluster's own networks, cause a problem.

    For conclusions that do not depend on what a peer has in a subscription of its own. A peer's list that could not be
    read adds no resource, and no problem.
    """
    own = (*home_subscriptions(estate, policy), *groups_of(estate))
    other_scopes = (*subscriptions_of(estate, policy), *_scopes_of_others(estate, policy, kind))
    return _listed(estate, policy, kind, (*own, *other_scopes), own)


def _scopes_of_others(estate: Estate, policy: Policy, kind: type[Resource]) -> Iterator[str]:
    """Groups of peers; for kinds that can relay, also groups and subscriptions behind the declared firewall."""
    behind = ids_behind(estate, policy) if kind.TYPE.lower() in OF_RELAYS else ()
    yield from (group_of(network) for network in (*peer_ids_of(estate, policy), *behind))
    yield from (f"/subscriptions/{subscription_of(network)}" for network in behind)


def _listed(estate: Estate, policy: Policy, kind: type[R], scopes: Iterable[str], needed: Iterable[str]) -> Listing[R]:
    """The resources of all `scopes`; the problem is that of the scopes that are `needed`."""
    needed = {scope.lower() for scope in needed}
    lists = {scope.lower(): estate.every(kind, scope) for scope in scopes}
    listing = merged(estate.cluster, *(lists[key] for key in sorted(lists)))
    observations = (
        *(lists[key] for key in sorted(lists) if key in needed),
        *(pools_of(estate), scale_sets_of(estate), peerings_of(estate)),
    )
    problem = next((observation.problem for observation in observations if observation.problem is not None), None)
    once = {item.id.lower(): item for item in listing}
    networks = reached_networks(estate, policy) if len(needed) == len(lists) else _own_networks(estate)
    problem = problem or _unlisted(networks, kind.TYPE, once.keys())
    return Listing(estate.cluster, tuple(once[key] for key in sorted(once)), listing.evidence, problem)


def _unlisted(networks: Iterable[Lookup[InhabitedNetwork]], kind: str, listed: Container[str]) -> Problem | None:
    """Why the list of a kind is incomplete: a network was not read, or it refers to a resource that was not listed."""
    if kind.lower() not in INHABITANTS:
        return None
    for network in networks:
        if network.value is None:
            return network.problem
        for inhabitant_id in (
            inhabitant_id for subnet in network.value.subnets or () for inhabitant_id in subnet.inhabitant_ids
        ):
            owner = (
                inhabitant_id.lower() if type_of(inhabitant_id).count("/") == 1 else parent_of(inhabitant_id).lower()
            )
            if type_of(owner) == kind.lower() and owner not in listed:
                return Problem(
                    UnreadReason.FORBIDDEN, f"{owner}: it is in {network.target}, and no list shows it", f"{kind}/read"
                )
    return None


def reached_network_ids(estate: Estate, policy: Policy) -> frozenset[str]:
    """Ids, in lower case, of the cluster's networks, their peers and hubs, and those behind the declared firewall."""
    return frozenset(_reached(estate, policy))


def reached_networks(estate: Estate, policy: Policy) -> tuple[Lookup[InhabitedNetwork], ...]:
    """The same networks, with what is in their subnets; sorted by id."""
    return tuple(estate.one(InhabitedNetwork, network_id) for _, network_id in sorted(_reached(estate, policy).items()))


def _own_networks(estate: Estate) -> tuple[Lookup[InhabitedNetwork], ...]:
    return tuple(estate.one(InhabitedNetwork, network_id) for network_id in network_ids_of(estate))


def _reached(estate: Estate, policy: Policy) -> dict[str, str]:
    """The ids as written, by their lower case."""
    ids = (*network_ids_of(estate), *peer_ids_of(estate, policy), *ids_behind(estate, policy))
    return {network_id.lower(): network_id for network_id in ids}
