"""What to do with each group of a model: stop it as a whole, start it as a whole, or leave it.

Two writes do everything. A stop asks for no pods and keeps the pod template; a start asks for all pods, with the
template of the spec, once none of the earlier ones is left. So no group is ever of two templates or partly there for
longer than its stop takes, and the operator needs no right to delete pods. What to do follows from the live objects,
the pods and the time; the back-off is remembered in the object (plan/groups/memory.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.modeldeployment_status import GroupState
from hermetic.api.times import timestamp
from hermetic.engines.registry import engine_of
from hermetic.objects.children import Phase
from hermetic.objects.groups import group_index, group_name
from hermetic.objects.names import MEMORY_ANNOTATION, template_of
from hermetic.objects.workloads.registry import workload_kind
from hermetic.plan.child_states import ChildState, Difference
from hermetic.plan.groups.members import (
    CREATION,
    Fault,
    Group,
    fault_of,
    group_of,
    has_pods,
    has_served_long,
    next_moment,
)
from hermetic.plan.groups.memory import GroupMemory, memory_of, remembering
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.drift import holds_template
from hermetic.plan.tampering.foreign_fields import foreign_to_template
from hermetic.plan.writes import GroupReport

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What is decided of one group: its child as it may be written, what the status says, when to look again."""

    state: ChildState
    report: GroupReport | None
    due: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for all groups: the phase of the plan, and whether groups that have not started must go."""

    phase: Phase
    removes_waiting: bool
    now: datetime


def plan_groups(
    spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, states: Sequence[ChildState], conditions: Conditions
) -> tuple[GroupPlan, ...]:
    """The groups by index. `states`: of the children that run pods, desired or live."""
    views = [
        _View.of(state, spec, snapshot, conditions)
        for state in sorted(states, key=lambda state: _index(state, snapshot))
        if state.ownership in ("absent", "ours") and not state.is_deleting
    ]
    decided = _waiting_alone(views, [view.decided() for view in views])
    decided = _updated(views, decided)
    decided = _started(views, decided)
    return tuple(_plan(view, write) for view, write in zip(views, decided, strict=True))


def _index(state: ChildState, snapshot: ClusterSnapshot) -> int:
    index = group_index(state.key[1], snapshot.owner.name)
    return -1 if index is None else index


@dataclass(frozen=True, slots=True)
class _Write:
    """A write that is decided: what it does to the pods, and the child with its manifest; None for none."""

    kind: Literal["stop", "start", "keep", "none"]
    state: ChildState | None = None


_NOTHING = _Write("none")


@dataclass(frozen=True, slots=True)
class _View:
    """One group with all that its decision reads; `group` is None for one without an object."""

    index: int
    child: ChildState
    group: Group | None
    is_wanted: bool
    spec: ModelDeploymentSpec
    snapshot: ClusterSnapshot
    conditions: Conditions

    @classmethod
    def of(
        cls, child: ChildState, spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, conditions: Conditions
    ) -> _View:
        index, group = _index(child, snapshot), None
        if child.live is not None:
            workload = workload_kind(spec).observe(child.live)
            group = group_of(workload, memory_of(child.live, conditions.now), spec, snapshot)
        return cls(index, child, group, 0 <= index < spec.wanted_replicas, spec, snapshot, conditions)

    # ------------------------------------------------------------------ what holds

    @property
    def is_asked(self) -> bool:
        return self.group is not None and self.group.asked > 0

    @property
    def serves(self) -> bool:
        return self.group is not None and self.group.serves

    @property
    def fault(self) -> Fault | None:
        """Why it must stop as a whole; None for one that is not asked for."""
        if self.group is None or not self.is_asked:
            return None
        truncated = self.snapshot.pods_truncated
        return fault_of(self.group, self.spec, self.conditions.now, is_truncated=truncated)

    @property
    def is_waiting(self) -> bool:
        """Whether it holds nodes, or may get some, without having all of them."""
        return self.is_asked and self.group is not None and not self.group.has_nodes

    @property
    def has_spec_template(self) -> bool:
        """Whether its template is of the present spec, by its mark."""
        desired, live = self.child.desired, self.child.live
        if desired is None or live is None:
            return False
        return template_of(desired["spec"]["template"]) == template_of(live["spec"]["template"])

    @property
    def has_older_pods(self) -> bool:
        """Whether pods of an earlier spec run, or end, in a group that is wanted."""
        has_pods = self.group is not None and (self.is_asked or not self.group.is_gone)
        return has_pods and self.is_wanted and self.child.desired is not None and not self.has_spec_template

    @property
    def is_altered(self) -> bool:
        """Whether others changed what its next pods would be: the template, their ranks, or how many there are."""
        desired, live = self.child.desired, self.child.live
        if self.group is None or live is None:
            return False
        if self.group.asked < self.group.size or live["spec"].get("ordinals"):
            return True
        if desired is None or not self.has_spec_template:
            return False
        return not holds_template(desired, live) or foreign_to_template(desired, live)

    # ------------------------------------------------------------------ what is decided of it alone

    def decided(self) -> _Write:
        """What follows from this group alone, whatever the others do."""
        if self.group is None or not self.is_asked:
            return _NOTHING
        if not self.is_wanted:
            return self.stopped("the spec asks for fewer replicas")
        if (fault := self.fault) is not None:
            return self.failed(fault)
        if self.conditions.removes_waiting and not self.group.has_started:
            return self.stopped("isolation is not proven, and not every engine had started")
        if self.is_altered:
            return self.corrected()
        return self.kept()

    def corrected(self) -> _Write:
        """A stop for what others changed; behind a closed gate only if the group cannot serve any more."""
        if self.group is not None and self.conditions.phase != "open":
            return self.kept() if self.group.serves else self.stopped("others changed how many pods it has")
        return self.stopped("others changed its pods", is_imperative=False)

    def kept(self) -> _Write:
        """It goes on: what differs beside its pods is corrected in place."""
        live, group = self.child.live, self.group
        if live is None or group is None:
            return _NOTHING
        if self.conditions.phase != "blocked" and self.has_spec_template and not self.is_altered:
            memory = str((live["metadata"].get("annotations") or {}).get(MEMORY_ANNOTATION, ""))
            return _Write("keep", self.child.wanting(remembering(self.child.desired or {}, memory)))
        if group.asked > group.size:
            return _Write("keep", self.child.wanting(self._scaled(live, group.size, group.memory)))
        return _NOTHING

    def stopped(self, note: str, *, is_imperative: bool = True) -> _Write:
        """A stop that is meant: no incident, and no back-off."""
        live, group, now = self.child.live, self.group, self.conditions.now
        if live is None or group is None:
            return _NOTHING
        memory = replace(group.memory, failures=0, stopped_at=now, reason=None, message=note)
        manifest = self._scaled(live, 0, memory)
        difference: Difference = "changed" if is_imperative else "drifted"
        return _Write("stop", self.child.writing(manifest, difference, is_imperative=is_imperative))

    def failed(self, fault: Fault) -> _Write:
        """A stop for an incident: the group starts again after the back-off."""
        live, group, now = self.child.live, self.group, self.conditions.now
        if live is None or group is None:
            return _NOTHING
        before = group.memory
        failures = 1 if has_served_long(group, self.spec, now) else before.failures + 1
        memory = GroupMemory(
            nodes=before.nodes,
            restarts=before.restarts + 1,
            failures=failures,
            started_at=before.started_at,
            stopped_at=now,
            reason=fault.reason,
            message=fault.message,
        )
        state = self.child.writing(self._scaled(live, 0, memory), "changed", is_imperative=True)
        return _Write("stop", state)

    def started(self) -> _Write:
        """All pods at once, with the template of the spec."""
        desired, now = self.child.desired, self.conditions.now
        if desired is None:
            return _NOTHING
        before = self.group.memory if self.group is not None else GroupMemory()
        memory = replace(before, nodes=self.spec.accelerator.nodes, started_at=now)
        return _Write("start", self.child.wanting(remembering(desired, memory.annotation)))

    def _scaled(self, live: Manifest, replicas: int, memory: GroupMemory) -> Manifest:
        """The object with another number of pods. What others made of its template is not written again."""
        desired, kind, engine = self.child.desired, workload_kind(self.spec), engine_of(self.spec).name
        base = desired if desired is not None and self.has_spec_template else live
        return remembering(kind.scaled(base, replicas, self.snapshot.owner, engine), memory.annotation)

    # ------------------------------------------------------------------ what is decided beside the others

    @property
    def may_start(self) -> bool:
        """Whether it is wanted, none of its pods is left, the gate is open and its back-off is over."""
        if not self.is_wanted or self.is_asked or self.child.desired is None or self.conditions.phase != "open":
            return False
        resumes_at = None if self.group is None else self.group.memory.resumes_at
        return not self.has_pods and (resumes_at is None or resumes_at <= self.conditions.now)

    @property
    def name(self) -> str:
        """Of every object of the group."""
        return group_name(self.snapshot.owner.name, self.index)

    @property
    def has_pods(self) -> bool:
        """Whether pods of an earlier start are left; of an object that was deleted too."""
        if self.group is not None:
            return not self.group.is_gone
        return has_pods(self.name, workload_kind(self.spec), self.snapshot)

    @property
    def needs_update(self) -> bool:
        """Whether it runs with a template of an earlier spec."""
        return self.is_asked and self.has_older_pods


def _waiting_alone(views: Sequence[_View], decided: Sequence[_Write]) -> list[_Write]:
    """With stops for all but one of the groups that wait for nodes, as they do once several have lost all of theirs.

    The one that goes on waiting has the most nodes. Pods that are not read may have some: then nothing is stopped.
    """
    result = list(decided)
    waiting = [at for at, view in enumerate(views) if view.is_waiting and result[at].kind != "stop"]
    if len(waiting) < 2 or views[0].snapshot.pods_truncated:
        return result
    first = max(waiting, key=lambda at: (_placed(views[at]), -at))
    for at in waiting:
        if at != first:
            result[at] = views[at].stopped("another group waits for nodes as well")
    return result


def _placed(view: _View) -> int:
    return 0 if view.group is None else sum(bool(member.node) for member in view.group.running)


def _updated(views: Sequence[_View], decided: Sequence[_Write]) -> list[_Write]:
    """With stops for a new template: of groups that do not serve at once, of one that serves while all others do."""
    result = list(decided)
    if not views or views[0].conditions.phase != "open":
        return result
    for at, view in enumerate(views):
        if not view.needs_update or result[at].kind == "stop":
            continue
        siblings = [index for index in range(len(views)) if index != at and views[index].is_wanted]
        if not view.serves or all(views[index].serves and result[index].kind != "stop" for index in siblings):
            result[at] = view.stopped("its pods change with the spec")
    return result


def _started(views: Sequence[_View], decided: Sequence[_Write]) -> list[_Write]:
    """With the start of one group, while no other one waits for nodes: two would take them from each other."""
    result = list(decided)
    if any(view.is_waiting for view in views):
        return result
    ready = [at for at, view in enumerate(views) if view.may_start]
    # The one that failed least: a group that never starts must not keep the others from it.
    at = min(ready, key=lambda at: (_failures(views[at]), at), default=None)
    if at is not None:
        result[at] = views[at].started()
    return result


def _failures(view: _View) -> int:
    return 0 if view.group is None else view.group.memory.failures


def _plan(view: _View, write: _Write) -> GroupPlan:
    child = write.state if write.state is not None else replace(view.child, desired=None, difference=None)
    return GroupPlan(child, _report(view), _due(view))


def _due(view: _View) -> datetime | None:
    """When it must be looked at again without an event."""
    if view.group is None:
        return None
    return next_moment(view.group, view.spec) if view.is_asked else view.group.memory.resumes_at


def _report(view: _View) -> GroupReport | None:
    """What the status says of it; None for one that is not wanted and has no pods."""
    group = view.group
    size = view.spec.accelerator.nodes if group is None else group.size
    if group is None and view.has_pods:
        message = f"its {workload_kind(view.spec).resource.kind} was deleted"
        return GroupReport(view.name, "Stopping", f"0/{size}", 0, message=message)
    if group is None:
        return GroupReport(view.name, "Waiting", f"0/{size}", 0, message=_absent(view))
    if not view.is_wanted and group.is_gone:
        return None
    state, message = _state(view, group)
    reason = group.memory.reason if state in ("BackingOff", "Stopping") else None
    pods = f"{size if group.serves else 0}/{size}"
    return GroupReport(view.name, state, pods, group.memory.restarts, message, reason, view.has_older_pods)


def _state(view: _View, group: Group) -> tuple[GroupState, str]:
    memory = group.memory
    if group.serves:
        return "Serving", ""
    if group.asked:
        waits = f"rank {group.lacking} has no node"
        settled = group.since is not None and group.since + CREATION <= view.conditions.now
        return ("Waiting", waits) if settled and not group.has_nodes else ("Starting", "")
    if not group.is_gone:
        return "Stopping", memory.message
    if memory.resumes_at is not None and view.conditions.now < memory.resumes_at:
        return "BackingOff", f"{memory.message}; it starts again at {timestamp(memory.resumes_at)[11:19]} UTC"
    return "Waiting", _absent(view)


def _absent(view: _View) -> str:
    """Why a group without pods does not start yet."""
    if view.conditions.phase == "closed":
        return "it starts when isolation is proven"
    if view.conditions.phase == "blocked":
        return "it starts when the spec can be carried out"
    return (
        "it starts after another group has all of its nodes"
        if view.child.desired is not None
        else ("its Service has no address yet")
    )
