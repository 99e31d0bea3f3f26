"""Private endpoints in the cluster's networks and their peers, and the resources they connect to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hermetic.audit.cluster.members import network_ids_of, peerings_of, subnets_of
from hermetic.audit.estate.arm_ids import is_arm_id, same_id, subscription_of, type_of
from hermetic.audit.estate.azure.private_link import ConsumerConnection, PrivateEndpoint
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Missing, Observation, unreadable
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.reachable_networks import throughout, where_readable
from hermetic.audit.scope.reached_subnets import is_reached
from hermetic.errors import FactDamaged

APPROVED, PENDING = "approved", "pending"
CLOSED = {"rejected", "disconnected"}


def is_allowed(policy: Policy, target: str) -> bool:
    """Whether the policy names this target of a private endpoint."""
    return any(same_id(target, allowed) for allowed in policy.allowed_private_link_services)


@derived
def private_endpoints_of(estate: Estate, policy: Policy) -> Listing[PrivateEndpoint]:
    """Those with an address in one of the networks. One whose subnet is not readable adds a problem."""
    return _endpoints_among(estate, policy, throughout(estate, policy, PrivateEndpoint))


def _endpoints_among(estate: Estate, policy: Policy, every: Listing[PrivateEndpoint]) -> Listing[PrivateEndpoint]:
    """Those of a listing with an address in a network in reach."""
    endpoints: list[PrivateEndpoint] = []
    problem = every.problem
    for endpoint in every:
        try:
            subnet = endpoint.subnet
        except FactDamaged as damage:
            problem = problem or Problem(UnreadReason.UNREADABLE, damage.message)
            continue
        if subnet is None:
            problem = problem or Problem(UnreadReason.UNREADABLE, f"{endpoint.id}: names no subnet")
        elif is_reached(estate, policy, subnet.id):
            endpoints.append(endpoint)
    peerings = peerings_of(estate)
    return Listing(estate.cluster, tuple(endpoints), (*every.evidence, *peerings.evidence), problem or peerings.problem)


def targets_of(estate: Estate, policy: Policy, resource_type: str) -> Listing[str]:
    """Ids of the resources of a type that private endpoints connect to, without duplicates."""
    return _targets(estate, policy).where(lambda target: type_of(target).lower() == resource_type.lower())


def own_targets(estate: Estate, policy: Policy) -> Listing[str]:
    """Ids of the resources of ours that private endpoints connect to, the cluster's API server aside."""
    ours = (estate.cluster, *network_ids_of(estate))
    return _targets(estate, policy).where(
        lambda target: policy.owns(target, *ours) and not same_id(target, estate.cluster)
    )


@derived
def _targets(estate: Estate, policy: Policy) -> Listing[str]:
    """Ids of all resources that private endpoints connect to, without duplicates, sorted; an alias is no id.

    Endpoints of a peer whose subscription could not be read are no problem here: the checks of private endpoints are
    Unknown by them.
    """
    endpoints = _endpoints_among(estate, policy, where_readable(estate, policy, PrivateEndpoint))
    targets: dict[str, str] = {}
    problem = endpoints.problem
    for endpoint in endpoints:
        try:
            ids = [connection.private_link_service_id or "" for connection in endpoint.connections]
        except FactDamaged as damage:
            problem = problem or Problem(UnreadReason.UNREADABLE, damage.message)
            continue
        for target in ids:
            if is_arm_id(target):
                targets.setdefault(target.lower(), target)
    return Listing(estate.cluster, tuple(targets[key] for key in sorted(targets)), endpoints.evidence, problem)


@dataclass(frozen=True, slots=True)
class OtherConnection:
    """One connection as text, and its ARM id, which its rejection needs; "" where the answer has none."""

    description: str
    link: str
    waits: bool
    """Whether it waits for approval. False: it is approved."""

    @property
    def state(self) -> str:
        """Its state as a verb of a message."""
        return "waits for approval" if self.waits else "is connected"


@dataclass(frozen=True, slots=True)
class Undecided:
    """A connection of an endpoint that may be ours: the reason for Unknown, and what could not be observed."""

    other: OtherConnection
    reason: str
    observations: tuple[Observation, ...] = ()


@dataclass(slots=True)
class OtherConnections:
    """Connections of endpoints that are not known to be ours.

    `strangers` are not ours. `unclear` has a message for each state that is not known.
    """

    strangers: list[OtherConnection] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    damage: list[Missing] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.strangers or self.undecided or self.unclear or self.damage)


def _networks_unseen(estate: Estate) -> tuple[Observation, ...]:
    """Observations with a problem: the cluster may have more networks, so an endpoint may be ours after all."""
    return tuple(observation for observation in subnets_of(estate)[1] if observation.problem is not None)


def others_of(estate: Estate, policy: Policy, connections: Sequence[ConsumerConnection]) -> OtherConnections:
    """Ours are the endpoints in subscriptions of the cluster, of its networks, and in those that the policy names.

    A peering makes no subscription ours: its remote network may belong to another tenant
    (learn.microsoft.com/azure/virtual-network/create-peering-different-subscriptions). Whose a consumer without an id
    is, is not known.
    """
    ours, unseen = (estate.cluster, *network_ids_of(estate)), _networks_unseen(estate)
    other_connections = OtherConnections()
    for connection in connections:
        try:
            consumer = (connection.private_endpoint.id if connection.private_endpoint is not None else None) or ""
            state = connection.private_link_service_connection_state
            status = ((state.status if state is not None else None) or "").lower()
            link = connection.id
        except FactDamaged as broken:
            other_connections.damage.append(unreadable(broken))
            continue
        if status in CLOSED or (subscription_of(consumer) and policy.owns(consumer, *ours)):
            continue
        description = (
            f"{connection.name or 'a connection without a name'} ({consumer or 'an endpoint that is not named'})"
        )
        other = OtherConnection(description, link, waits=status == PENDING)
        if status not in {APPROVED, PENDING}:
            other_connections.unclear.append(f"{description}: status {status!r} is not known")
        elif not subscription_of(consumer):
            other_connections.undecided.append(Undecided(other, "ConsumerNotNamed"))
        elif unseen:
            other_connections.undecided.append(Undecided(other, "WhoseNotSeen", unseen))
        else:
            other_connections.strangers.append(other)
    return other_connections
