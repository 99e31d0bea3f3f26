"""The situation of one ModelDeployment: every fact of the snapshot that the plan decides from, found once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.objects.children import Phase
from hermetic.objects.groups import group_index
from hermetic.objects.workloads.registry import is_own, workload_kind
from hermetic.plan.child_states import ChildState, child_states, first_obstacle
from hermetic.plan.closed_gate import workload_behind_closed_gate, workload_of_blocked_spec
from hermetic.plan.desired_children import SpecRendering, isolating_children
from hermetic.plan.gate_results import Blocks, Holds
from hermetic.plan.gates import first_block
from hermetic.plan.groups.decisions import Conditions, GroupPlan, plan_groups
from hermetic.plan.isolation import closes_at, enforcement, gate
from hermetic.plan.model_fit import ModelPlacement, model_placement
from hermetic.plan.pod_start import settles_at
from hermetic.plan.scheduling import unschedulable_deadline
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.runtime_drift import is_left_over, rolled_out_at
from hermetic.plan.waiting_pods import pods_must_go, waiting_pods
from hermetic.plan.writes import GroupReport

States = tuple[ChildState, ...]


@dataclass(frozen=True, slots=True)
class Situation:
    """What the gates, the children and the pods are.

    `block`: the first gate about the spec, or obstacle, that keeps it from being carried out. `isolation`: the verdict
    of the isolation gate, None with enforcement Off. `states`: those of the children that the spec asks for (while it
    is blocked: that isolate or expose pods), then of the other live ones. `has_workload`: a workload of this
    ModelDeployment is live; `held_workloads`: what may be applied of it while the phase is not "open". `groups`: what
    the status says of the groups, of a model of several nodes. `removes_pods`: pods that have not started must go.
    `address_is_held`: another ModelDeployment has the load balancer address of the spec. `requeue_at`: when the plan
    changes without an event.
    """

    phase: Phase
    block: Blocks | None
    isolation: Holds | Blocks | None
    placement: ModelPlacement | None
    states: States
    has_workload: bool
    held_workloads: States
    groups: tuple[GroupReport, ...]
    removes_pods: bool
    address_is_held: bool
    requeue_at: datetime | None


def situation_of(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, now: datetime, rendering: SpecRendering
) -> Situation:
    """Evaluate the gates, and classify the children and the pods."""
    placement = model_placement(spec, snapshot)
    block = first_block(spec, snapshot, placement)
    states: States = ()
    if block is None:
        states = child_states(rendering.children(snapshot), snapshot)
        block = first_obstacle(states, snapshot.owner)
    other_kind = _another_kind(spec, snapshot)
    block = block or other_kind
    if block is not None:
        states = child_states(isolating_children(spec, snapshot), snapshot)
    isolation = gate(spec, snapshot, now)
    is_closed = enforcement(spec, snapshot) == "Enforce" and isinstance(isolation, Blocks)
    phase: Phase = "blocked" if block is not None else "closed" if is_closed else "open"
    removes_pods = is_closed and pods_must_go(snapshot)
    # By identity: another object of the kind with the model's label and owner is not what runs the pods.
    live = [part.live for part in snapshot.workload.parts if part.live is not None]
    ours = [state for state in states if state.live is not None and state.ownership == "ours"]
    workloads = tuple(state for state in ours if any(state.live is part for part in live))
    is_grouped = workload_kind(spec).is_grouped and other_kind is None
    plans = _group_plans(spec, snapshot, now, states, phase, is_closed=is_closed) if is_grouped else ()
    balancer = spec.endpoint.internal_load_balancer
    return Situation(
        phase=phase,
        block=block,
        isolation=isolation,
        placement=placement,
        states=_with_groups(states, plans) if phase == "open" else states,
        has_workload=bool(workloads),
        held_workloads=_held_groups(plans, phase)
        if is_grouped
        else _held(next(iter(workloads), None), phase, spec, snapshot, removes_pods=removes_pods),
        groups=tuple(plan.report for plan in plans if plan.report is not None),
        removes_pods=removes_pods,
        address_is_held=bool(snapshot.address_holder) and balancer is not None and balancer.address is not None,
        requeue_at=_requeue_at(spec, snapshot, now, phase, [plan.due for plan in plans]),
    )


def _another_kind(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Blocks | None:
    """A model keeps the kind of object that runs its pods: two of them would serve side by side."""
    workload, desired = snapshot.workload, workload_kind(spec)
    is_other_kind = workload.live is not None and workload.kind.resource != desired.resource
    if workload.live is None or not is_other_kind or not is_own(workload.live, snapshot.owner):
        return None
    return Blocks(
        Reason.SPEC_INVALID,
        f"`accelerator.nodes` cannot change between one and several: {workload.kind_name} '{workload.name}' runs the "
        "pods; delete the ModelDeployment and apply it again",
        field="spec.accelerator.nodes",
    )


def _group_plans(
    spec: ModelDeploymentSpec,
    snapshot: ClusterSnapshot,
    now: datetime,
    states: States,
    phase: Phase,
    *,
    is_closed: bool,
) -> tuple[GroupPlan, ...]:
    waits = is_closed and snapshot.policy.isolation.replacements != "Admit" and not snapshot.pods_truncated
    return plan_groups(spec, snapshot, _of_groups(states, snapshot), Conditions(phase, waits, now))


def _of_groups(states: States, snapshot: ClusterSnapshot) -> States:
    return tuple(
        state
        for state in states
        if state.child.runs_pods and group_index(state.key[1], snapshot.owner.name) is not None
    )


def _with_groups(states: States, plans: tuple[GroupPlan, ...]) -> States:
    decided = {plan.state.key: plan.state for plan in plans}
    return tuple(decided.get(state.key, state) for state in states)


def _held_groups(plans: tuple[GroupPlan, ...], phase: Phase) -> States:
    return () if phase == "open" else tuple(plan.state for plan in plans if plan.state.desired is not None)


def _held(
    workload: ChildState | None,
    phase: Phase,
    spec: ModelDeploymentSpec,
    snapshot: ClusterSnapshot,
    *,
    removes_pods: bool,
) -> States:
    if workload is None or workload.live is None or phase == "open":
        return ()
    if workload.desired is None:
        manifest = workload_of_blocked_spec(workload.live, spec, snapshot, removes_pods=removes_pods)
    else:
        manifest = workload_behind_closed_gate(
            workload.desired, workload.live, spec, snapshot, removes_pods=removes_pods
        )
    return () if manifest is None else (workload.wanting(manifest),)


def _requeue_at(
    spec: ModelDeploymentSpec,
    snapshot: ClusterSnapshot,
    now: datetime,
    phase: Phase,
    groups: list[datetime | None],
) -> datetime | None:
    """When evidence expires, a grace period for a pod or a group ends, or a phase of a start is to be reported.

    With a blocked spec: when the evidence expires, as long as pods wait that must not start after that.
    """
    enforced = enforcement(spec, snapshot)
    if phase == "blocked":
        moments = [closes_at(spec, snapshot)] if enforced == "Enforce" and waiting_pods(snapshot) else []
    else:
        moments = [closes_at(spec, snapshot)] if enforced != "Off" else []
        moments += [rolled_out_at(snapshot)] if any(is_left_over(pod, snapshot) for pod in snapshot.pods) else []
        moments += (settles_at(spec, snapshot), *map(unschedulable_deadline, snapshot.pods))
    return min((moment for moment in (*moments, *groups) if moment is not None and moment > now), default=None)
