"""Which virtual hubs are connected to which networks."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.azure.hubs import HubConnection, VirtualHub
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import throughout


@dataclass(frozen=True, slots=True)
class Joined:
    """A hub and one of its connections to a network."""

    hub: VirtualHub
    connection: HubConnection

    @property
    def id(self) -> str:
        """The id of the connection."""
        return self.connection.id


def hub_connections(estate: Estate, policy: Policy) -> Listing[Joined]:
    """Every connection of every hub in the subscriptions that are searched."""
    hubs = throughout(estate, policy, VirtualHub)
    lists = [(hub, estate.every(HubConnection, hub.id)) for hub in hubs]
    joined = tuple(Joined(hub, connection) for hub, connections in lists for connection in connections)
    evidence = (*hubs.evidence, *(one for _, connections in lists for one in connections.evidence))
    problem = hubs.problem or next((one.problem for _, one in lists if one.problem is not None), None)
    nameless = next((one.connection.id for one in joined if one.connection.remote_virtual_network is None), "")
    if nameless and problem is None:
        problem = Problem(Trouble.UNREADABLE, f"{nameless}: names no network")
    return Listing(estate.cluster, joined, evidence, problem)


def joins(joined: Joined, network: str) -> bool:
    """Whether the connection is to this network."""
    remote = joined.connection.remote_virtual_network
    return remote is not None and same_id(remote.id, network)
