"""Private endpoints in the cluster's networks and their peers, and the resources they connect to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hermetic.audit.cluster_scope import network_ids_of, peerings_of, subnets_of
from hermetic.audit.estate.arm_ids import is_arm_id, subscription_of, type_of
from hermetic.audit.estate.azure.private_link import ConsumerConnection, PrivateEndpoint
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Missing, Observation
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.evaluation import CheckResult, fails, unknown, unreadable
from hermetic.audit.findings import Severity
from hermetic.audit.hops import Path
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_or_none, is_in, reached_network_ids, throughout
from hermetic.errors import FactDamaged

APPROVED, PENDING = "approved", "pending"
CLOSED = {"rejected", "disconnected"}


@derived
def private_endpoints_of(estate: Estate, policy: Policy) -> Listing[PrivateEndpoint]:
    """Those with an address in one of the networks. One whose subnet is not readable adds a problem."""
    every, networks = throughout(estate, policy, PrivateEndpoint), reached_network_ids(estate)
    found: list[PrivateEndpoint] = []
    problem = every.problem
    for endpoint in every:
        try:
            subnet = endpoint.subnet
        except FactDamaged as damage:
            problem = problem or Problem(UnreadReason.UNREADABLE, damage.message)
            continue
        if subnet is None:
            problem = problem or Problem(UnreadReason.UNREADABLE, f"{endpoint.id}: names no subnet")
        elif is_in((subnet.id,), networks):
            found.append(endpoint)
    peerings = peerings_of(estate)
    return Listing(estate.cluster, tuple(found), (*every.evidence, *peerings.evidence), problem or peerings.problem)


def each_private_endpoint(
    estate: Estate, policy: Policy, evaluate: Callable[[PrivateEndpoint], Iterable[CheckResult]]
) -> Iterator[CheckResult]:
    """Evaluate all of them."""
    endpoints = private_endpoints_of(estate, policy)
    yield from each_or_none(estate.cluster, endpoints, evaluate, "there is no private endpoint in reach")


def targets_of(estate: Estate, policy: Policy, resource_type: str) -> Listing[str]:
    """Ids of the resources of a type that private endpoints connect to, without duplicates."""
    endpoints = private_endpoints_of(estate, policy)
    found: dict[str, str] = {}
    problem = endpoints.problem
    for endpoint in endpoints:
        try:
            ids = [one.private_link_service_id or "" for one in endpoint.connections]
        except FactDamaged as damage:
            problem = problem or Problem(UnreadReason.UNREADABLE, damage.message)
            continue
        for one in ids:
            if is_arm_id(one) and type_of(one).lower() == resource_type.lower():
                found.setdefault(one.lower(), one)
    targets = tuple(found[key] for key in sorted(found))
    return Listing(estate.cluster, targets, endpoints.evidence, problem)


@dataclass(frozen=True, slots=True)
class Other:
    """One connection as text, and its ARM id, which its rejection needs; "" where the answer has none."""

    words: str
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

    other: Other
    reason: str
    observations: tuple[Observation, ...] = ()


@dataclass(slots=True)
class Others:
    """Connections of endpoints that are not known to be ours.

    `strangers` are not ours. `odd` has a message for each state that is not known.
    """

    strangers: list[Other] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    damage: list[Missing] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.strangers or self.undecided or self.odd or self.damage)


def _networks_unseen(estate: Estate) -> tuple[Observation, ...]:
    """Observations with a problem: the cluster may have more networks, so an endpoint may be ours after all."""
    return tuple(one for one in subnets_of(estate)[1] if one.problem is not None)


def others_of(estate: Estate, policy: Policy, connections: Sequence[ConsumerConnection]) -> Others:
    """Ours are the endpoints in subscriptions of the cluster, of its networks, and in those that the policy names.

    A peering makes no subscription ours: its remote network may belong to another tenant
    (learn.microsoft.com/azure/virtual-network/create-peering-different-subscriptions). Whose a consumer without an id
    is, is not known.
    """
    ours, unseen = (estate.cluster, *network_ids_of(estate)), _networks_unseen(estate)
    others = Others()
    for connection in connections:
        try:
            consumer = (connection.private_endpoint.id if connection.private_endpoint is not None else None) or ""
            state = connection.private_link_service_connection_state
            status = ((state.status if state is not None else None) or "").lower()
            link = connection.id
        except FactDamaged as broken:
            others.damage.append(unreadable(broken))
            continue
        if status in CLOSED or (subscription_of(consumer) and policy.owns(consumer, *ours)):
            continue
        words = f"{connection.name or 'a connection without a name'} ({consumer or 'an endpoint that is not named'})"
        other = Other(words, link, waits=status == PENDING)
        if status not in {APPROVED, PENDING}:
            others.odd.append(f"{words}: status {status!r} is not known")
        elif not subscription_of(consumer):
            others.undecided.append(Undecided(other, "ConsumerNotNamed"))
        elif unseen:
            others.undecided.append(Undecided(other, "WhoseNotSeen", unseen))
        else:
            others.strangers.append(other)
    return others


def results_of(  # noqa: PLR0913 - passed by keyword
    others: Others,
    resource: str,
    *observations: Observation,
    about: str = "",
    paths: tuple[Path, ...],
    of_approved: Severity | None = None,
    of_waiting: Severity | None = None,
    remedy: str = "",
) -> Iterator[CheckResult]:
    """What is not known to be ours, of one resource; nothing where everything is ours.

    `about`: how each message begins. `paths`: those of an approved connection of a stranger. The severities are those
    of approved and of waiting connections; None is that of the check.
    """
    for other in others.strangers:
        reason, open_paths = ("StrangerWaits", ()) if other.waits else ("Stranger", paths)
        words = f"{about}a private endpoint that is not ours {other.state}: {other.words}"
        severity, fill = (of_waiting if other.waits else of_approved), {"LINK_ID": other.link}
        yield fails(
            resource, reason, words, *observations, paths=open_paths, severity=severity, remedy=remedy, fill=fill
        )
    for one in others.undecided:
        words = f"{about}a private endpoint {one.other.state}, and it is not known whose it is: {one.other.words}"
        severity, fill = (of_waiting if one.other.waits else of_approved), {"LINK_ID": one.other.link}
        because = (*one.observations, *observations)
        yield unknown(resource, one.reason, words, *because, severity=severity, remedy=remedy, fill=fill)
    if others.odd:
        yield unknown(resource, "StateUnknown", about + "; ".join(others.odd), *observations)
    for damage in others.damage:
        yield unknown(resource, "Unreadable", damage.problem.detail, damage)
