"""What keeps pods from serving, from the states that the kubelet, the scheduler and the engine report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hermetic.api.condition_updates import ConditionReason, is_true
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.pod_reasons import PodReason
from hermetic.api.text import cut_middle, one_line
from hermetic.engines.failure_signatures import diagnose, telling_line
from hermetic.engines.registry import engine_of, launch
from hermetic.objects.accelerator_checks import CHECKER
from hermetic.objects.weights_verifier import VERIFIER
from hermetic.plan.accelerator_health import result_fault
from hermetic.plan.accelerator_results import result_of
from hermetic.plan.api_rejections import refused_pod
from hermetic.plan.scheduling import is_being_placed, unschedulable
from hermetic.plan.snapshot import ClusterSnapshot, Warned, last_end
from hermetic.plan.weights_verification import verification_of

Pod = Mapping[str, Any]
Status = Mapping[str, Any]

PULL_TROUBLE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)
CONFIG_TROUBLE = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
MOUNT_TROUBLE = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
PROBE_SLACK_SECONDS = 30
_SHOWN, _LONGEST = 400, 500
"""Characters of a message that a condition keeps: of a kubelet or a scheduler; of the verifier or the API server."""
_PLATFORM_MISSING = "no match for platform in manifest"
"""What containerd answers where neither the image nor its index is for the node: remotes/handlers.go, manifest.go."""
_NO_PLATFORM = "it has no image for the processor of the node: import the image that is for linux/arm64 and linux/amd64"
_PULL_PREFIX = re.compile(r"^Back-off pulling image \"[^\"]*\"(: (ErrImagePull: )?)?")


@dataclass(frozen=True, slots=True)
class PodDiagnosis:
    """Why pods do not serve."""

    reason: ConditionReason
    message: str


def diagnose_pods(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, now: datetime) -> PodDiagnosis | None:
    """The first problem of the newest pods of the template that do not serve, else what the workload reports."""
    workload = snapshot.workload
    waiting = sorted(
        (pod for pod in snapshot.pods if workload.is_present(pod) and _has_had_its_chance(pod, now)),
        key=lambda pod: (pod["metadata"].get("creationTimestamp", ""), pod["metadata"]["name"]),
        reverse=True,
    )
    for pod in waiting:
        if (diagnosis := _of_pod(spec, snapshot, pod)) is not None:
            return diagnosis
    return _of_workload(spec, snapshot)


def _has_had_its_chance(pod: Pod, now: datetime) -> bool:
    return not (is_true(pod, "Ready") or pod["metadata"].get("deletionTimestamp") or is_being_placed(pod, now))


def _of_pod(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, pod: Pod) -> PodDiagnosis | None:
    completed = _completed(pod)
    for status in _containers(pod):
        if (
            status not in completed
            and (diagnosis := _of_checks(pod, status) or _of_container(spec, status)) is not None
        ):
            return diagnosis
    return _of_scheduling(spec, snapshot, pod) or _of_mounting(snapshot, pod)


def _containers(pod: Pod) -> Iterator[Status]:
    status = pod.get("status", {})
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _completed(pod: Pod) -> tuple[Status, ...]:
    """The init containers that succeeded: what they failed for before, and how often, is over."""
    statuses = pod.get("status", {}).get("initContainerStatuses") or ()
    return tuple(
        container_status
        for container_status in statuses
        if container_status.get("state", {}).get("terminated", {}).get("exitCode") == 0
    )


def _of_checks(pod: Pod, status: Status) -> PodDiagnosis | None:
    """The fault of a GPU for which the engine does not start, and how to leave the node."""
    result = result_of(status) if status.get("name") == CHECKER else None
    if result is None:
        return None
    metadata, node = pod["metadata"], str((pod.get("spec") or {}).get("nodeName") or "")
    fault = result_fault(str(metadata["name"]), node, result)
    if fault is None:
        return None
    way_out = (
        "; the kubelet repeats the checks on this node while the pod exists: cordon the node, then delete the pod: "
        f"kubectl delete pod {metadata['name']} --namespace {metadata.get('namespace', '')}"
    )
    return PodDiagnosis(fault[0], fault[1] + way_out)


def _of_container(spec: ModelDeploymentSpec, status: Status) -> PodDiagnosis | None:
    waiting = status.get("state", {}).get("waiting") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in PULL_TROUBLE:
        return PodDiagnosis(PodReason.IMAGE_PULL_FAILED, _pull_message(status.get("image", ""), message))
    if reason in CONFIG_TROUBLE:
        missing = "not found" in message
        return PodDiagnosis(
            PodReason.REFERENCE_NOT_FOUND if missing else PodReason.CONTAINER_CONFIG_INVALID, _shown(message)
        )
    ended = last_end(status)
    return _of_end(spec, status, ended) if ended and (ended.get("exitCode") or status.get("restartCount")) else None


def _pull_message(image: str, message: str) -> str:
    # The kubelet alternates between the error and the back-off: without the prefix both give the same message.
    cause = _PULL_PREFIX.sub("", message).strip()
    if len(cause) > _SHOWN:
        cause = cause.replace(image, "it")  # containerd names the image up to four times, its own words come last
    message = f"image '{image}' cannot be pulled" + (f": {_shown(cause)}" if cause else "")
    return f"{message}; {_NO_PLATFORM}" if _PLATFORM_MISSING in cause else message


def cause_of_end(spec: ModelDeploymentSpec, status: Status) -> str:
    """One clause why a container ended that must not end, also for a single end that nothing explains."""
    ended = last_end(status) or {}
    if (explained := _explained(spec, status, ended)) is not None:
        return explained.message
    last = telling_line(ended.get("message", ""), engine_of(spec).signatures)
    code = f"ended with exit code {ended['exitCode']}" if "exitCode" in ended else "ended"
    return f"container '{status['name']}' {code}" + (f": {last}" if last else "")


def _of_end(spec: ModelDeploymentSpec, status: Status, ended: Status) -> PodDiagnosis | None:
    """Why the container ended: out of memory, a cause in the engine's output, a start that took too long, unknown."""
    if (explained := _explained(spec, status, ended)) is not None:
        return explained
    # A single unexplained exit may be transient; the kubelet restarts the container.
    if status.get("restartCount", 0) < 2:
        return None
    last = telling_line(ended.get("message", ""), engine_of(spec).signatures)
    # For an engine that was killed with its container the kubelet keeps 2 KiB of log: the cause may be further up.
    tail = f": {last}" if last else ""
    return PodDiagnosis(
        PodReason.CRASH_LOOP,
        f"container '{status['name']}' ends again and again, exit code {ended.get('exitCode', 0)}{tail}; "
        "'kubectl logs --previous' shows what came before",
    )


def _explained(spec: ModelDeploymentSpec, status: Status, ended: Status) -> PodDiagnosis | None:
    """What its message, its reason or its time says; None where they say nothing."""
    if status.get("name") == VERIFIER and (verified := verification_of(status)) is not None and verified.reason:
        return PodDiagnosis(verified.reason, cut_middle(f"the weights do not serve, {verified.message}", _LONGEST))
    last_words, code, signatures = ended.get("message", ""), ended.get("exitCode", 0), engine_of(spec).signatures
    if ended.get("reason") == "OOMKilled":
        limit = spec.resources.memory or "the node's memory"
        return PodDiagnosis(PodReason.OUT_OF_MEMORY, f"container '{status['name']}' used more memory than {limit}")
    if (cause := diagnose(last_words, signatures)) is not None:
        return PodDiagnosis(
            cause, f"container '{status['name']}' ended with exit code {code}: {telling_line(last_words, signatures)}"
        )
    if _was_ended_for_slowness(spec, ended) and not status.get("started"):
        return PodDiagnosis(
            PodReason.STARTUP_BUDGET_EXCEEDED,
            f"container '{status['name']}' did not serve within `startupBudgetSeconds` {spec.startup_budget_seconds}",
        )
    return None


def _was_ended_for_slowness(spec: ModelDeploymentSpec, ended: Status) -> bool:
    """Whether it ran as long as its startup probe allows, and ended within the grace period after that."""
    latest = spec.startup_budget_seconds + launch(spec).grace_seconds + PROBE_SLACK_SECONDS
    return spec.startup_budget_seconds <= _lasted(ended) <= latest


def _lasted(ended: Status) -> float:
    try:
        began, over = (datetime.fromisoformat(ended[key]) for key in ("startedAt", "finishedAt"))
    except (KeyError, TypeError, ValueError):
        return 0.0
    return (over - began).total_seconds()


def _of_scheduling(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot, pod: Pod) -> PodDiagnosis | None:
    conditions = pod.get("status", {}).get("conditions") or ()
    for condition in conditions:
        if condition.get("type") != "PodScheduled" or condition.get("reason") != "Unschedulable":
            continue
        message = condition.get("message", "")
        if "persistentvolumeclaim" in message and "not found" in message:
            return PodDiagnosis(PodReason.REFERENCE_NOT_FOUND, _shown(message))
        if "unbound immediate PersistentVolumeClaims" in message:
            return PodDiagnosis(PodReason.VOLUME_NOT_BOUND, _shown(message))
        return PodDiagnosis(PodReason.UNSCHEDULABLE, unschedulable(spec, snapshot, message))
    return None


def _of_mounting(snapshot: ClusterSnapshot, pod: Pod) -> PodDiagnosis | None:
    warned = snapshot.warnings.get(pod["metadata"].get("uid", ""))
    # A container that has run has its volumes: an earlier warning is obsolete.
    if warned is None or warned.reason not in MOUNT_TROUBLE or any(map(_has_run, _containers(pod))):
        return None
    return _mount_trouble(warned)


def _has_run(status: Status) -> bool:
    return bool(status.get("state", {}).keys() & {"running", "terminated"}) or bool(status.get("lastState"))


def _mount_trouble(warned: Warned) -> PodDiagnosis:
    missing = re.search(r'(secret|configmap) "([^"]+)" not found', warned.message)
    if missing is not None:
        return PodDiagnosis(
            PodReason.REFERENCE_NOT_FOUND, f"{missing[1]} '{missing[2]}' does not exist in the namespace"
        )
    return PodDiagnosis(PodReason.MOUNT_FAILED, _mount_cause(warned.message))


_SERVER_WORDS = re.compile(r"(?:reason given by server:|mount\.\w+:|Output:|desc =)\s*")
_REMOTE_FOLDER = re.compile(r"[\w.-]+:/[^\s,;]+")
"""SERVER:/PATH, as mount takes it."""


def _shown(message: str) -> str:
    """A message of the kubelet or the scheduler in one line; a long one keeps its end, where the cause stands."""
    return cut_middle(one_line(message), _SHOWN)


def _mount_cause(message: str) -> str:
    """The kubelet's message; of a long one the words of the server or of the mount program come first, then the folder.

    The paths of a CSI driver alone can be longer than what a condition keeps, and the kubelet may have cut the message
    in the middle of the last words: an Event keeps 1,024 bytes.
    """
    text = one_line(message)
    if len(text) <= _SHOWN:
        return text
    half = _SHOWN // 2
    marks = [mark.end() for mark in _SERVER_WORDS.finditer(text)]
    cause = text[marks[-1] :].strip()[:half] if marks else ""
    folder = max(_REMOTE_FOLDER.findall(text), key=len, default="")[:half]
    if not cause:
        return cut_middle(text, _SHOWN)
    mounted = f"; the folder is {folder}" if folder and folder not in cause else ""
    return f"{cause}{mounted}; the kubelet reports: {text[:half]}"


def _of_workload(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> PodDiagnosis | None:
    rollout = snapshot.workload.rollout
    if rollout.refusal is not None:
        reason, message = refused_pod(rollout.refusal)
        return PodDiagnosis(reason, cut_middle(message, _LONGEST))
    if rollout.is_overdue:
        return PodDiagnosis(
            PodReason.STARTUP_BUDGET_EXCEEDED,
            f"no pod served within `startupBudgetSeconds` {spec.startup_budget_seconds}, and none reports why",
        )
    return None
