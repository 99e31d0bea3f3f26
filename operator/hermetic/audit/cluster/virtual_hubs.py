"""Virtual hubs: those that a network of the cluster is connected to, and what they connect it with.

Azure implements a hub connection as a peering with the hub's own network, which is in a subscription of Microsoft that
no customer can read (github.com/MicrosoftDocs/azure-docs/issues/107338). A peering counts as a hub's only where a
connection of a hub was read that explains it; the networks behind that hub then take the place of the hub's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hermetic.audit.cluster.members import network_ids_of, peerings_of
from hermetic.audit.estate.arm_ids import name_of, parent_of, same_id, subscription_of, type_of
from hermetic.audit.estate.azure.routing import HubConnection, VirtualHub
from hermetic.audit.estate.azure.vnet import Peering
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.policy.declarations import HUBS, Policy

HUB_NETWORK, HUB_PEERING = "hv_", "remotevnettohubpeering"
"""Prefixes, in lower case, of the names that Azure gives to a hub's own network and to the peering with it."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A hub and one of its connections to a network."""

    hub: VirtualHub
    connection: HubConnection

    @property
    def id(self) -> str:
        return self.connection.id


def joins(joined: Joined, network: str) -> bool:
    """Whether the connection is to this network."""
    remote = joined.connection.remote_virtual_network
    return remote is not None and same_id(remote.id, network)


def is_named_as_of_a_hub(peering: Peering) -> bool:
    """Whether the names are those of a hub's peering. Anybody may give these names to a network of their own."""
    return remote_name_of(peering).lower().startswith(HUB_NETWORK) or peering.name.lower().startswith(HUB_PEERING)


def remote_name_of(peering: Peering) -> str:
    """The name of its remote network; "" where the answer does not name one."""
    return name_of(peering.remote_virtual_network.id) if peering.remote_virtual_network is not None else ""


@derived
def hub_connections(estate: Estate, policy: Policy) -> Listing[Joined]:
    """Every connection of every hub in the subscriptions that may hold one.

    These are the subscriptions of the cluster, its networks and their peers, and those that the policy names by
    themselves, by a hub, or by the declared firewall. A list that could not be read is a problem, and so is a peering
    with the names of a hub's that no connection explains.
    """
    connections = _connections(estate, policy)
    return Listing(
        connections.target,
        connections.items,
        connections.evidence,
        connections.problem or _unexplained(estate, policy),
    )


def _unexplained(estate: Estate, policy: Policy) -> Problem | None:
    explained = hub_of_each_peering(estate, policy)
    peerings = [peering for peering in peerings_of(estate) if peering.connects and is_named_as_of_a_hub(peering)]
    peering = next((peering for peering in peerings if peering.id.lower() not in explained), None)
    if peering is None:
        return None
    message = f"{peering.id}: it is named as the peering of a virtual hub, and no connection that was read explains it"
    return Problem(UnreadReason.NOT_FOUND, message, remedy=UNEXPLAINED)


UNEXPLAINED = """\
Name the virtual hub in the policy: its id under `allowedPeerings`, or its subscription under `ownSubscriptions`; and
let the auditing identity read it there. The peering itself leads into a subscription of Microsoft, which no customer
can read.
"""


@derived
def _connections(estate: Estate, policy: Policy) -> Listing[Joined]:
    """The connections of all hubs that were read."""
    hubs = _hubs(estate, policy)
    lists = [(hub, estate.every(HubConnection, hub.id)) for hub in hubs]
    joined = tuple(Joined(hub, connection) for hub, connections in lists for connection in connections)
    evidence = (*hubs.evidence, *(exchange for _, connections in lists for exchange in connections.evidence))
    problem = hubs.problem or next(
        (connections.problem for _, connections in lists if connections.problem is not None), None
    )
    nameless = next(
        (
            hub_connection.connection.id
            for hub_connection in joined
            if hub_connection.connection.remote_virtual_network is None
        ),
        "",
    )
    if nameless and problem is None:
        problem = Problem(UnreadReason.UNREADABLE, f"{nameless}: names no network")
    return Listing(estate.cluster, joined, evidence, problem)


def _hubs(estate: Estate, policy: Policy) -> Listing[VirtualHub]:
    listed = merged(
        estate.cluster,
        *(estate.every(VirtualHub, subscription) for subscription in _subscriptions_of_hubs(estate, policy)),
    )
    hubs = {hub.id.lower(): hub for hub in listed}
    named = [estate.one(VirtualHub, hub_id) for hub_id in _named_hubs(policy) if hub_id.lower() not in hubs]
    hubs |= {hub.target.lower(): hub.value for hub in named if hub.value is not None}
    evidence = (*listed.evidence, *(exchange for hub in named for exchange in hub.evidence))
    problem = listed.problem or next((hub.problem for hub in named if hub.problem is not None), None)
    return Listing(estate.cluster, tuple(hubs[key] for key in sorted(hubs)), evidence, problem)


def _subscriptions_of_hubs(estate: Estate, policy: Policy) -> tuple[str, ...]:
    direct = [peering for peering in peerings_of(estate) if peering.connects and not is_named_as_of_a_hub(peering)]
    remote = [peering.remote_virtual_network.id for peering in direct if peering.remote_virtual_network is not None]
    ids = (estate.cluster, *network_ids_of(estate), *remote, *policy.searched_ids)
    return tuple(
        f"/subscriptions/{subscription}"
        for subscription in sorted({subscription_of(resource_id) or resource_id.lower() for resource_id in ids} - {""})
    )


def _named_hubs(policy: Policy) -> list[str]:
    """Hubs that the policy allows, by their own id or by that of a connection."""
    hubs = (allowed_id for allowed_id in policy.allowed_peerings if is_hub_or_connection(allowed_id))
    return sorted({hub_id.lower(): hub_id for hub_id in (_hub_id(hub) for hub in hubs)}.values())


def is_hub_or_connection(arm_id: str) -> bool:
    """Whether it is the id of a virtual hub or of a connection of one."""
    return type_of(arm_id).lower() in {resource_type.lower() for resource_type in HUBS}


def _hub_id(arm_id: str) -> str:
    return arm_id if type_of(arm_id).lower() == HUBS[0].lower() else parent_of(arm_id)


@derived
def hub_of_each_peering(estate: Estate, policy: Policy) -> Mapping[str, Joined]:
    """The hub connection that explains a peering, by the id of the peering in lower case.

    A network is connected to one hub at most (learn.microsoft.com/azure/virtual-wan/virtual-wan-faq). So a connection
    explains the peering only where the network has exactly one peering with the names of a hub's. The address prefix
    of the hub must be that of the peering where both are in the answers: two peers of a network cannot have the same
    addresses, so a network that only has the name of a hub's differs in them.
    """
    connections = _connections(estate, policy)
    explained: dict[str, Joined] = {}
    for network in network_ids_of(estate):
        peerings = [
            peering for peering in estate.every(Peering, network) if peering.connects and is_named_as_of_a_hub(peering)
        ]
        joined = [hub_connection for hub_connection in connections if joins(hub_connection, network)]
        if len(peerings) == len(joined) == 1 and _is_consistent(peerings[0], joined[0].hub):
            explained[peerings[0].id.lower()] = joined[0]
    return explained


def _is_consistent(peering: Peering, hub: VirtualHub) -> bool:
    remote = peering.remote_virtual_network
    named = remote_name_of(peering).lower()
    if remote is None or (named.startswith(HUB_NETWORK) and not named.startswith(f"{HUB_NETWORK}{hub.name.lower()}")):
        return False
    prefixes = peering.remote_prefixes
    return not (prefixes and hub.address_prefix) or hub.address_prefix in prefixes


@derived
def peer_ids_of(estate: Estate, policy: Policy) -> tuple[str, ...]:
    """Ids of the networks in reach of the cluster's: remote networks of connected peerings, and those behind a hub.

    A peering left over from a deleted network is not connected and is left out. All networks that are connected to a
    hub reach each other by default (learn.microsoft.com/azure/virtual-wan/about-virtual-hub-routing).
    """
    hubs = hub_of_each_peering(estate, policy)
    direct = [peering for peering in peerings_of(estate) if peering.connects and peering.id.lower() not in hubs]
    remote = [peering.remote_virtual_network.id for peering in direct if peering.remote_virtual_network is not None]
    own = {network_id.lower() for network_id in network_ids_of(estate)}
    beyond = _behind_hubs(estate, policy)
    ids = {
        network_id.lower(): network_id
        for network_id in sorted((*remote, *(network_id for network_id in beyond if network_id.lower() not in own)))
    }
    return tuple(sorted(ids.values()))


def _behind_hubs(estate: Estate, policy: Policy) -> list[str]:
    """Ids of the networks that a hub of the cluster's networks connects, whether or not it shows as a peering."""
    connections, own = _connections(estate, policy), network_ids_of(estate)
    hub_ids = {
        hub_connection.hub.id.lower()
        for hub_connection in connections
        if any(joins(hub_connection, network) for network in own)
    }
    there = [
        hub_connection.connection.remote_virtual_network
        for hub_connection in connections
        if hub_connection.hub.id.lower() in hub_ids
    ]
    return [reference.id for reference in there if reference is not None]


@derived
def subscriptions_of(estate: Estate, policy: Policy) -> tuple[str, ...]:
    """/subscriptions/… of the cluster, its networks, the networks in reach, hubs, and those of the policy; sorted."""
    hubs = (hub_connection.hub.id for hub_connection in hub_of_each_peering(estate, policy).values())
    ids = (estate.cluster, *network_ids_of(estate), *peer_ids_of(estate, policy), *hubs, *policy.searched_ids)
    return tuple(
        f"/subscriptions/{subscription}"
        for subscription in sorted({subscription_of(resource_id) or resource_id.lower() for resource_id in ids} - {""})
    )


def hub_of(estate: Estate, policy: Policy, peering: Peering) -> Joined | None:
    """The hub connection that explains a peering; None for a peering with an ordinary network."""
    return hub_of_each_peering(estate, policy).get(peering.id.lower())
