"""The route that the ModelDeployments of a group share: who writes it, with which backends and weights.

Each member computes the same from the same facts. The oldest member that can write is the writer, and the route is
owned by all of them: it stays when one goes, and goes with the last.
"""

from __future__ import annotations

from hermetic.api.conditions import ConditionType
from hermetic.api.gateway_reasons import GatewayReason
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.objects.http_route import MOST_MEMBERS, Backend
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.snapshot import ClusterSnapshot, GroupMember

_ASKED = ("gateway", "hostname", "path", "model.name")


def group_is_uniform(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The member asks for what the others of its group ask for, and there is room for it."""
    members, own = snapshot.gateway.members, _own(snapshot)
    if spec.endpoint.gateway is None or own is None:
        return HOLDS
    group, first = spec.endpoint.gateway.group, _first(members)
    if own in _present(members)[MOST_MEMBERS:]:
        return _blocks(f"group '{group}' has {MOST_MEMBERS} older members, which is the most that a route leads to")
    for name, ours, theirs in zip(_ASKED, own.asks, first.asks, strict=True):
        if ours != theirs:
            return _blocks(
                f"{name} is '{ours}', and '{theirs}' in the ModelDeployment '{first.owner.name}' of the same group "
                f"'{group}'; all members must have the same one"
            )
    return HOLDS


def writer(snapshot: ClusterSnapshot) -> GroupMember | None:
    """The member that writes the route: the oldest that can; None for no group, and while none can."""
    return _oldest_writer(_alike(snapshot.gateway.members))


def is_written_here(snapshot: ClusterSnapshot) -> bool:
    """Whether the route of this model is written for it, and not for another member of its group."""
    first = writer(snapshot)
    return not snapshot.gateway.members or (first is not None and first.owner == snapshot.owner)


def backends(snapshot: ClusterSnapshot) -> tuple[Backend, ...]:
    """Those of all members that have a Service, with the weights that count.

    A member without a pod that serves has the weight 0 while another one serves. While none with a weight does, the
    weights are those of the specs: a gateway answers 503 for a Service without pods. The oldest has the weight 1 where
    all are 0, as between two edits of a promotion: gateways answer 500 for such a rule, or refuse all of their routes.
    """
    members = [member for member in _alike(snapshot.gateway.members)[:MOST_MEMBERS] if member.has_service]
    is_served = any(member.serves and member.weight for member in members)
    weights = [member.weight if member.serves or not is_served else 0 for member in members]
    if members and not any(weights):
        weights[next((at for at, member in enumerate(members) if member.serves), 0)] = 1
    return tuple(Backend(member.owner, member.port, weight) for member, weight in zip(members, weights, strict=True))


def share(snapshot: ClusterSnapshot) -> str:
    """The part of the group's requests that the route leads to this model; "" without a group."""
    weights = {backend.owner: backend.weight for backend in backends(snapshot)}
    if not snapshot.gateway.members or snapshot.owner not in weights:
        return ""
    own = _own(snapshot)
    waits = own is not None and not own.serves and own.weight and not weights[snapshot.owner]
    waiting = f"; `weight` {own.weight} counts once it serves" if own is not None and waits else ""
    return f" with the weight {weights[snapshot.owner]} of {sum(weights.values())}{waiting}"


def _own(snapshot: ClusterSnapshot) -> GroupMember | None:
    return next((member for member in snapshot.gateway.members if member.owner == snapshot.owner), None)


def _present(members: tuple[GroupMember, ...]) -> tuple[GroupMember, ...]:
    return tuple(member for member in members if not member.is_deleting)


def _first(members: tuple[GroupMember, ...]) -> GroupMember:
    """The member that the others must be like: the oldest that can write, else the oldest."""
    return _oldest_writer(members) or (*_present(members), *members)[0]


def _oldest_writer(members: tuple[GroupMember, ...]) -> GroupMember | None:
    """The oldest that can write, of those that are not blocked if there are any."""
    able = [member for member in members if member.may_write]
    return next((member for member in able if not member.is_blocked), next(iter(able), None))


def _alike(members: tuple[GroupMember, ...]) -> tuple[GroupMember, ...]:
    """The members that ask for the same as the first, and are not being deleted."""
    return tuple(member for member in _present(members) if member.asks == _first(members).asks)


def _blocks(message: str) -> Blocks:
    field = "spec.endpoint.gateway.group"
    return Blocks(GatewayReason.ROUTE_GROUP_MISMATCH, message, ConditionType.ENDPOINT_PRIVATE, field=field)
