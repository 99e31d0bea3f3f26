"""A group as it is observed: its object, its pods, and what of them makes it a group that cannot serve as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hermetic.api.condition_updates import condition_of, is_true
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.pod_reasons import PodReason
from hermetic.api.times import zoned
from hermetic.engines.launch import RANK_LABEL
from hermetic.objects.groups import group_name
from hermetic.objects.names import GROUP_LABEL
from hermetic.objects.pod import ENGINE
from hermetic.objects.workloads.workload_kind import Workload, WorkloadKind
from hermetic.plan.groups.memory import GroupMemory
from hermetic.plan.pod_diagnosis import cause_of_end
from hermetic.plan.snapshot import ClusterSnapshot, last_end
from hermetic.plan.tampering.runtime_drift import has_rendered_identity
from hermetic.plan.waiting_pods import has_started

Pod = Mapping[str, Any]

GROUP_WAIT = timedelta(seconds=600)
"""How long a group may wait for nodes: until then its pods hold the GPUs that others could serve with."""
CREATION = timedelta(seconds=10)
"""How long the controller may take to make all pods of a group."""
SLACK = timedelta(seconds=60)
"""How long after its startup budget an engine may still be ended by the kubelet."""
LONG_SERVICE = timedelta(minutes=10)
"""After so long a service a failure is the first one again."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a group must stop as a whole."""

    reason: PodReason
    message: str


@dataclass(frozen=True, slots=True)
class Member:
    """A pod of a group. Times are None where the pod does not tell them."""

    name: str
    rank: int
    node: str
    pod: Pod
    created: datetime | None
    engine_since: datetime | None
    has_started: bool
    is_ready: bool
    is_ending: bool

    @property
    def title(self) -> str:
        """The member in messages: "pod 'llama-group-0-1' (rank 1, node 'gpu-7')"."""
        return f"pod '{self.name}' (rank {self.rank}, " + (f"node '{self.node}')" if self.node else "no node)")

    @property
    def engine_status(self) -> Mapping[str, Any]:
        """The status of the engine's container; {} before the kubelet has written one."""
        statuses = (self.pod.get("status") or {}).get("containerStatuses") or ()
        return next((status for status in statuses if status.get("name") == ENGINE), {})

    @property
    def ready_since(self) -> datetime | None:
        """When it became ready; None for one that is not."""
        ready = condition_of(self.pod.get("status") or {}, "Ready") or {}
        return zoned(ready.get("lastTransitionTime")) if ready.get("status") == "True" else None

    @property
    def has_ended(self) -> bool:
        """Whether its engine ended, or was started again."""
        ended = last_end(self.engine_status) is not None or bool(self.engine_status.get("restartCount"))
        return ended or (self.pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")


@dataclass(frozen=True, slots=True)
class Group:
    """A group with a live object. `members`: by rank; `size`: how many it has as a whole."""

    workload: Workload
    memory: GroupMemory
    members: tuple[Member, ...]
    size: int

    @property
    def name(self) -> str:
        return self.workload.name

    @property
    def asked(self) -> int:
        """How many pods its object asks for."""
        return int(((self.workload.live or {}).get("spec") or {}).get("replicas") or 0)

    @property
    def running(self) -> tuple[Member, ...]:
        """The members that are not being deleted. Pods beyond the size are none: others asked for them."""
        return tuple(member for member in self.members if member.rank < self.size and not member.is_ending)

    @property
    def is_gone(self) -> bool:
        """Whether none of its pods is left, by the pods and by what the controller counts."""
        return not self.members and self.workload.is_observed and not self.workload.existing_pods

    @property
    def serves(self) -> bool:
        """Whether every member is ready."""
        return self.asked > 0 and sum(member.is_ready for member in self.running) >= self.size

    @property
    def has_started(self) -> bool:
        """Whether the engine of every member has started."""
        return sum(member.has_started for member in self.running) >= self.size

    @property
    def has_nodes(self) -> bool:
        """Whether every member has a node."""
        return sum(bool(member.node) for member in self.running) >= self.size

    @property
    def since(self) -> datetime | None:
        """When it was asked for: the creation of its first pod, or the write before that.

        Others may take the memory of that write away: then its object is at least as old.
        """
        created = [member.created for member in self.members if member.created is not None]
        metadata = (self.workload.live or {}).get("metadata") or {}
        return min(created, default=self.memory.started_at or zoned(metadata.get("creationTimestamp")))

    @property
    def lacking(self) -> str:
        """The ranks without a node, in messages."""
        placed = {member.rank for member in self.running if member.node}
        return ", ".join(str(rank) for rank in range(self.size) if rank not in placed)


def group_of(workload: Workload, memory: GroupMemory, spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Group:
    """The group with its pods: those that its controller made, with the labels of the group."""
    members = sorted(
        map(_member, _pods_of(workload.name, workload.kind, snapshot)), key=lambda member: (member.rank, member.name)
    )
    return Group(workload, memory, tuple(members), memory.nodes or spec.accelerator.nodes)


def has_pods(name: str, kind: WorkloadKind, snapshot: ClusterSnapshot) -> bool:
    """Whether pods of a group are there, also where its object is not: a deleted one goes before its pods."""
    return any(True for _ in _pods_of(name, kind, snapshot))


def _pods_of(name: str, kind: WorkloadKind, snapshot: ClusterSnapshot) -> Iterator[Pod]:
    for pod in snapshot.pods:
        revision = kind.revision_of(pod, snapshot.owner)
        index = str((pod["metadata"].get("labels") or {}).get(GROUP_LABEL, ""))
        is_labelled = name == group_name(snapshot.owner.name, int(index)) if index.isdecimal() else False
        if is_labelled and revision.startswith(f"{name}/") and has_rendered_identity(pod, snapshot.owner):
            yield pod


def _member(pod: Pod) -> Member:
    metadata = pod["metadata"]
    labels, name = metadata.get("labels") or {}, str(metadata["name"])
    rank = str(labels.get(RANK_LABEL) or name.rpartition("-")[2])
    return Member(
        name=name,
        rank=int(rank) if rank.isdecimal() and len(rank) < 5 else 0,
        node=str((pod.get("spec") or {}).get("nodeName") or ""),
        pod=pod,
        created=zoned(metadata.get("creationTimestamp")),
        engine_since=_engine_since(pod),
        has_started=has_started(pod),
        is_ready=is_true(pod, "Ready") and "deletionTimestamp" not in metadata,
        is_ending="deletionTimestamp" in metadata,
    )


def _engine_since(pod: Pod) -> datetime | None:
    """When the engine first started, as far as the kubelet still tells."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    starts = [
        zoned(container_state.get("startedAt"))
        for status in statuses
        if status.get("name") == ENGINE
        for states in (status.get("state") or {}, status.get("lastState") or {})
        for container_state in (states.get("running") or {}, states.get("terminated") or {})
    ]
    return min((start for start in starts if start is not None), default=None)


def fault_of(group: Group, spec: ModelDeploymentSpec, now: datetime, *, is_truncated: bool) -> Fault | None:
    """Why the group, of which all pods are asked for, must stop; the first cause, for the others follow from it.

    `is_truncated`: more pods have the labels than are read, so that one may be there and not be seen.
    """
    return (
        _ending(group)
        or _ended(group, spec)
        or _replaced(group)
        or (None if is_truncated else _missing(group, now))
        or _not_placed(group, now, is_truncated=is_truncated)
        or _overdue(group, spec, now)
    )


def next_moment(group: Group, spec: ModelDeploymentSpec) -> datetime | None:
    """When a fault may come to be without an event."""
    moments = [
        _begun(group, CREATION) if len(group.running) < group.size else None,
        _begun(group, GROUP_WAIT) if not group.has_nodes else None,
        None if group.serves else _start_deadline(group, spec),
    ]
    return min((moment for moment in moments if moment is not None), default=None)


def has_served_long(group: Group, spec: ModelDeploymentSpec, now: datetime) -> bool:
    """Whether it served so long that a failure is no repetition: by a member that is still ready, or that ran."""
    budget = timedelta(seconds=spec.startup_budget_seconds)
    for member in group.members:
        if member.ready_since is not None and member.ready_since + LONG_SERVICE <= now:
            return True
        ended = last_end(member.engine_status) or {}
        until = zoned(ended.get("finishedAt"))
        began = zoned(ended.get("startedAt"))
        # An engine that ran for longer than its start may take has served: the kubelet would have ended it.
        if until is not None and began is not None and until - began >= budget + LONG_SERVICE:
            return True
    return False


def _begun(group: Group, length: timedelta) -> datetime | None:
    return None if group.since is None else group.since + length


def _ending(group: Group) -> Fault | None:
    ending = next((member for member in group.members if member.is_ending and member.rank < group.size), None)
    if ending is None:
        return None
    return Fault(PodReason.GROUP_MEMBER_LOST, f"{ending.title} is being deleted while the group runs")


def _ended(group: Group, spec: ModelDeploymentSpec) -> Fault | None:
    ended = [member for member in group.running if member.has_ended]
    if not ended:
        return None
    first = min(ended, key=lambda member: (_finished(member), member.rank))
    status = first.engine_status
    cause = cause_of_end(spec, status) if status else None
    phase = (first.pod.get("status") or {}).get("phase", "")
    why = cause or f"the pod ended (phase {phase})"
    return Fault(PodReason.GROUP_MEMBER_FAILED, f"{first.title}: {why}")


def _finished(member: Member) -> str:
    """When its engine ended, for comparison; one that does not tell is the last."""
    return str((last_end(member.engine_status) or {}).get("finishedAt") or "~")


def _replaced(group: Group) -> Fault | None:
    """A pod that was made after the engine of another had started: that engine does not wait for it.

    As long as the controller may still be making the pods, only one that was made after the head and its members had
    met is a replacement.
    """
    late = None if group.since is None else group.since + CREATION
    for member in group.running:
        siblings = [sibling for sibling in group.running if sibling is not member]
        if late is not None and member.created is not None and member.created > late:
            began = [sibling.engine_since for sibling in siblings]
        else:
            began = [sibling.ready_since for sibling in siblings if 0 in (sibling.rank, member.rank)]
        if member.created is not None and any(since is not None and since < member.created for since in began):
            return Fault(
                PodReason.GROUP_MEMBER_LOST, f"{member.title} was made after the engines of others had started"
            )
    return None


def _missing(group: Group, now: datetime) -> Fault | None:
    """A pod that is not there although the engine of another has started."""
    started = [member for member in group.running if member.has_started]
    until = _begun(group, CREATION)
    if len(group.running) >= group.size or not started or until is None or now < until:
        return None
    ranks = {member.rank for member in group.running}
    lost = ", ".join(str(rank) for rank in range(group.size) if rank not in ranks)
    return Fault(
        PodReason.GROUP_MEMBER_LOST,
        f"no pod of rank {lost} exists, and the engines of others have started; if none is made, "
        f"'kubectl describe' of '{group.name}' shows why",
    )


def _not_placed(group: Group, now: datetime, *, is_truncated: bool) -> Fault | None:
    """A member that has no node for too long. One that is not read may have its node."""
    until = _begun(group, GROUP_WAIT)
    is_placed = all(member.node for member in group.running) if is_truncated else group.has_nodes
    if is_placed or until is None or now < until:
        return None
    seconds = int(GROUP_WAIT.total_seconds())
    return Fault(
        PodReason.GROUP_WAITING,
        f"rank {group.lacking} had no node after {seconds} s, and the GPUs of the others were given back",
    )


def _overdue(group: Group, spec: ModelDeploymentSpec, now: datetime) -> Fault | None:
    """A start that takes longer than the budget. A member that was ready once has started in time."""
    deadline = _start_deadline(group, spec)
    if group.serves or deadline is None or now < deadline:
        return None
    ranks = ", ".join(str(member.rank) for member in group.running if not member.is_ready)
    return Fault(
        PodReason.STARTUP_BUDGET_EXCEEDED,
        f"rank {ranks} not ready within `startupBudgetSeconds` {spec.startup_budget_seconds} of the last start",
    )


def _start_deadline(group: Group, spec: ModelDeploymentSpec) -> datetime | None:
    """When every member must be ready; None until all engines have started, and once each was ready before."""
    starts = [member.engine_since for member in group.running if member.engine_since is not None]
    if len(starts) < group.size or all(member.engine_status.get("started") for member in group.running):
        return None
    return max(starts) + timedelta(seconds=spec.startup_budget_seconds) + SLACK
