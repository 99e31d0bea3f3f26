"""Decides the writes and deletes that bring one ModelDeployment from its snapshot to its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.kinds import BY_KIND, HTTP_ROUTE, PERSISTENT_VOLUME_CLAIM, SERVICE
from hermetic.objects.http_route import is_of_group
from hermetic.objects.names import template_mark
from hermetic.plan.child_states import ChildState, child_states
from hermetic.plan.desired_children import SpecRendering
from hermetic.plan.gate_results import Blocks
from hermetic.plan.gateway_route import not_private, route_settings, why_not_as_it_is
from hermetic.plan.route_group import writer
from hermetic.plan.situation import Situation, States, situation_of
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.writes import Change, Contested, Deletion, Plan


def plan(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, now: datetime, rendering: SpecRendering | None = None
) -> Plan:
    """Everything that must be written to reach the state of the spec. Deterministic; no I/O.

    Idempotent: planning again on the resulting snapshot yields nothing to write. `rendering` is one of this spec, from
    an earlier plan.
    """
    if snapshot.deleting:
        return Plan()
    situation = situation_of(spec, snapshot, now, rendering or SpecRendering(spec))
    phase, isolation, wanted = situation.phase, situation.isolation, _wanted(situation)
    to_apply, contested = _to_apply(wanted, removes_pods=situation.removes_pods)
    surplus, withdrawn = _surplus(situation, snapshot), tuple(_withdrawn(spec, snapshot, situation))
    closed = isolation if phase == "closed" and isinstance(isolation, Blocks) else None
    return Plan(
        apply=to_apply,
        delete=(
            *_exposed(situation.states),
            *withdrawn,
            *(deletion for deletion in surplus if deletion.kind != HTTP_ROUTE or not withdrawn),
        ),
        blocked=situation.block or closed,
        isolation=None if phase == "blocked" else isolation,
        held=phase == "closed" and not _marks(situation.states) <= _marks(wanted),
        contested=contested,
        requeue_at=situation.requeue_at,
        placement=situation.placement,
        groups=situation.groups,
    )


def exposed(snapshot: ClusterSnapshot) -> tuple[Deletion, ...]:
    """What leads to the model and must go, also with a spec that cannot be read.

    Its own Service once it has a public address, and the route by a Gateway that is not private or not allowed.
    """
    states = child_states((), snapshot)
    metadata = (snapshot.gateway.manifest or {}).get("metadata") or {}
    named = (metadata["namespace"], metadata["name"]) if metadata else None
    return (*_exposed(states), *_strayed(snapshot, states, named))


def _wanted(situation: Situation) -> States:
    """The children that may be written in this phase, each with the manifest that may be written.

    While the gate is closed or the spec is blocked, nothing is written before there is a workload. An exposed Service
    is not created again for this generation of the spec. A blocked spec does not newly ask for an address that belongs
    to another ModelDeployment.
    """
    phase = situation.phase
    if phase != "open" and not situation.has_workload:
        return ()
    allowed = tuple(
        state
        for state in situation.states
        if state.desired is not None and phase in state.child.written and not state.is_exposed
    )
    if phase == "blocked" and situation.address_is_held:
        allowed = tuple(
            state for state in allowed if state.child.kind != SERVICE or state.difference not in ("absent", "changed")
        )
    return (*allowed, *situation.held_workloads)


def _to_apply(wanted: States, *, removes_pods: bool) -> tuple[tuple[Change, ...], tuple[Contested, ...]]:
    """What to apply, and which children are not rewritten during drift back-off.

    A manifest that the spec changed is applied even then. Pods that may not start are removed however often the gate
    closes.
    """
    contested = tuple(state for state in wanted if state.is_contested and not (removes_pods and state.child.runs_pods))
    keys = {state.key for state in contested}
    changes = (state.change() for state in wanted if state.key not in keys)
    return tuple(change for change in changes if change is not None), tuple(state.contested() for state in contested)


def _exposed(states: States) -> tuple[Deletion, ...]:
    """Services of the model that have a public address: deleted whatever else blocks the spec."""
    return tuple(
        _deletion(
            state.live,
            f"the load balancer gave the public address '{state.public_address}'",
            public_address=state.public_address,
        )
        for state in states
        if state.live is not None and state.public_address and state.ownership == "ours" and not state.is_deleting
    )


def _withdrawn(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, situation: Situation) -> Iterator[Deletion]:
    """The route by a gateway that is not private, or not allowed, or not the spec's: whatever else blocks the spec."""
    route, states = spec.endpoint.gateway, situation.states
    if route is not None and route_settings(spec, snapshot).is_withheld:
        namespace = snapshot.owner.namespace
        is_allowed = bool(snapshot.policy.gateways_for(route.gateway(namespace), namespace))
        why = not_private(snapshot) or ("has no address yet" if is_allowed else "may not be used")
        yield from (_deletion(live, f"the Gateway {why}", is_urgent=True) for live in _own_routes(snapshot, states))
    elif route is not None and situation.phase == "blocked":
        yield from _strayed(snapshot, states, route.gateway(snapshot.owner.namespace))
    elif situation.phase == "blocked":
        why = "the spec no longer asks for it"
        yield from (_deletion(live, why, is_urgent=True) for live in _own_routes(snapshot, states))


def _strayed(snapshot: ClusterSnapshot, states: States, named: tuple[str, str] | None) -> Iterator[Deletion]:
    """The route that is not rewritten, and may not stay as it is. `named`: as of `why_not_as_it_is`."""
    for live in _own_routes(snapshot, states):
        if why := why_not_as_it_is(live, snapshot, named):
            yield _deletion(live, f"the Gateway {why}", is_urgent=True)


def _own_routes(snapshot: ClusterSnapshot, states: States) -> Iterator[Mapping[str, Any]]:
    """The live routes that this model may remove: that of a group only as its writer, or where nobody asks for it."""
    first, members = writer(snapshot), snapshot.gateway.members
    is_writer = bool(members) and (first is None or first.owner == snapshot.owner)
    for state in states:
        is_own = state.child.kind == HTTP_ROUTE and state.ownership == "ours" and not state.is_deleting
        may_remove = is_writer or not is_of_group(state.key[1]) or state.key[1] in snapshot.gateway.abandoned
        if state.live is not None and is_own and may_remove:
            yield state.live


def _surplus(situation: Situation, snapshot: ClusterSnapshot) -> Iterator[Deletion]:
    """Objects of ours that the spec no longer asks for. Volumes: see plan/volume_sweep.py.

    Nothing while the spec is blocked; claims only while the gate is open and no pod may mount them.
    """
    if situation.phase == "blocked":
        return
    for state in situation.states:
        is_unwanted = state.desired is None and state.child.dispensable and state.ownership == "ours"
        if state.live is None or not is_unwanted or state.is_deleting or _is_of_others(state, snapshot):
            continue
        if state.child.kind != PERSISTENT_VOLUME_CLAIM or (situation.phase == "open" and not state.is_mounted):
            yield _deletion(state.live, "the spec no longer asks for it")


def _is_of_others(state: ChildState, snapshot: ClusterSnapshot) -> bool:
    """Whether it is the route of a group that another ModelDeployment still asks for, or writes."""
    kind, name = state.key
    return kind == HTTP_ROUTE.kind and is_of_group(name) and name not in snapshot.gateway.abandoned


def _deletion(live: Mapping[str, Any], why: str, *, public_address: str = "", is_urgent: bool = False) -> Deletion:
    metadata = live["metadata"]
    return Deletion(
        kind=BY_KIND[live["kind"]],
        namespace=metadata.get("namespace"),
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        why=why,
        public_address=public_address,
        is_urgent=is_urgent,
    )


def _marks(states: States) -> set[str]:
    """The marks of the desired pod templates."""
    return {template_mark(state.desired) for state in states if state.desired is not None and state.child.runs_pods}
