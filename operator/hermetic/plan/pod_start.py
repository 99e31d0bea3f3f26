"""The phase of a pod that starts: from its node to the engine that loads the model.

Everything comes from what the kubelet and the scheduler write into the pod. A phase has the time at which it began, not
its duration: a status that shows it changes when the phase does, and never because time passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, timedelta
from typing import Any

from hermetic.api.condition_updates import condition_of, is_true
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.modeldeployment_status import StartPhase
from hermetic.api.times import timestamp, zoned
from hermetic.engines.launch import InitContainerName
from hermetic.objects.accelerator_checks import CHECKER
from hermetic.objects.weights_verifier import VERIFIER
from hermetic.plan.snapshot import ClusterSnapshot, last_end

Pod = Mapping[str, Any]
Status = Mapping[str, Any]

SETTLING = timedelta(seconds=10)
"""A phase that is shorter is not written into a status: a pod that starts at once costs no write for its phases."""


DESCRIPTIONS: Mapping[StartPhase, str] = {
    "Scheduling": "the scheduler looks for a node",
    "PreparingNode": "the node mounts the volumes and pulls the images",
    "CheckingAccelerators": "the GPUs are checked",
    "VerifyingWeights": "the weights are verified",
    "CopyingCaches": "the compile caches are copied",
    "PullingImage": "the node pulls the image of the next container",
    "LoadingModel": "the engine loads the model",
    "Restarting": "a container ended and is started again",
}
"""What happens in each phase, in the order of a start."""
BOUNDED: frozenset[StartPhase] = frozenset({"VerifyingWeights", "LoadingModel"})
"""The phases that `startupBudgetSeconds` bounds: the verification by its own limit, the engine by its startup probe."""
_ORDER: tuple[StartPhase, ...] = tuple(DESCRIPTIONS)
_PHASE_OF_INIT_CONTAINER: Mapping[InitContainerName, StartPhase] = {
    CHECKER: "CheckingAccelerators",
    VERIFIER: "VerifyingWeights",
    "link-cache": "CopyingCaches",
    "copy-cache": "CopyingCaches",
}


@dataclass(frozen=True, slots=True)
class PodStart:
    """A pod on its way to serving. `deadline`: when the startup budget ends the phase; None while none runs."""

    pod: str
    phase: StartPhase
    since: datetime
    deadline: datetime | None = None

    def as_status(self) -> dict[str, str]:
        """The object `status.start`."""
        deadline = {} if self.deadline is None else {"deadline": timestamp(self.deadline)}
        return {"pod": self.pod, "phase": self.phase, "since": timestamp(self.since), **deadline}


def pod_start(pod: Pod, budget: timedelta) -> PodStart | None:
    """The phase of a pod; None for one that serves or ends, and where the kubelet's times are missing.

    `budget`: `startupBudgetSeconds`.
    """
    metadata, status = pod["metadata"], pod.get("status") or {}
    if is_true(pod, "Ready") or metadata.get("deletionTimestamp") or status.get("phase") in {"Succeeded", "Failed"}:
        return None
    phase, since = _phase(status, _moment(metadata, "creationTimestamp"))
    if since is None:
        return None
    return PodStart(str(metadata["name"]), phase, since, since + budget if phase in BOUNDED else None)


def slowest_start(pods: Iterable[Pod], budget: timedelta) -> PodStart | None:
    """The start that decides when every pod serves: of the pods that start, the one in the earliest phase."""
    starts = (start for pod in pods if (start := pod_start(pod, budget)) is not None)
    return min(starts, key=lambda start: (_ORDER.index(start.phase), start.since, start.pod), default=None)


def reported_start(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, now: datetime) -> Mapping[str, Any] | None:
    """`status.start`: the slowest start, once its phase has lasted SETTLING; until then what the status says already.

    The present value stays only while it is about the same pod.
    """
    start = _slowest_present(spec, snapshot)
    if start is None:
        return None
    if start.since + SETTLING <= now:
        return start.as_status()
    before: Mapping[str, Any] | None = snapshot.status.get("start")
    return before if before is not None and before.get("pod") == start.pod else None


def settles_at(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> datetime | None:
    """When the phase of the slowest start has lasted SETTLING."""
    start = _slowest_present(spec, snapshot)
    return None if start is None else start.since + SETTLING


def start_clause(start: Mapping[str, Any]) -> str:
    """`status.start` as a clause of a message: "pod 'x': the engine loads the model since 09:30:00 UTC"."""
    since = str(start["since"])[11:19]
    until = f", until {str(start['deadline'])[11:19]} at the latest" if "deadline" in start else ""
    return f"pod '{start['pod']}': {DESCRIPTIONS[start['phase']]} since {since} UTC{until}"


def _slowest_present(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> PodStart | None:
    workload = snapshot.workload
    present = (pod for pod in snapshot.pods if workload.is_present(pod))
    return slowest_start(present, timedelta(seconds=spec.startup_budget_seconds)) if spec.wanted_replicas else None


def _phase(status: Status, created: datetime | None) -> tuple[StartPhase, datetime | None]:
    """The phase, and when it began."""
    scheduled: Status = condition_of(status, "PodScheduled") or {}
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    if scheduled.get("status") != "True" and not containers:
        return "Scheduling", created
    waiting: StartPhase = "PreparingNode"
    since = _moment(scheduled, "lastTransitionTime") or created
    for container in containers:
        state = container.get("state") or {}
        if (running := state.get("running")) is not None:
            return _PHASE_OF_INIT_CONTAINER.get(container.get("name", ""), "LoadingModel"), _moment(
                running, "startedAt"
            )
        ended = last_end(container)
        if ended is None:
            break
        if ended.get("exitCode") != 0 or "terminated" not in state:
            return "Restarting", _moment(ended, "finishedAt")
        waiting, since = "PullingImage", _moment(ended, "finishedAt") or since
    return waiting, since


def _moment(record: Mapping[str, Any], name: str) -> datetime | None:
    """The time in a field; None where it is missing, malformed, or so late that no budget can be added to it."""
    moment = zoned(record.get(name))
    return moment if moment is not None and moment.year < MAXYEAR else None
