"""How far a pod has come that starts: phases, their times, and how seldom a status that shows them changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, get_args

import pytest

from hermetic.api.modeldeployment_status import ModelDeploymentStatus, StartPhase
from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.plan.planning import plan
from hermetic.plan.pod_start import DESCRIPTIONS, SETTLING, pod_start, slowest_start
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import same_status, status
from tests.scenarios import a_baked_model
from tests.snapshots import NOW, a_snapshot, children_of, conditions, evidence, reporting_of, serving, spec_of

BUDGET = timedelta(seconds=1200)
MODEL = a_baked_model("llama")


def at(seconds: float) -> str:
    """The time so many seconds after NOW, as the kubelet writes it."""
    return f"{NOW + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def placed(seconds: float = 1) -> dict[str, Any]:
    return {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(seconds)}


def a_container(name: str, state: Mapping[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {"name": name, "restartCount": 0, "state": state or {"waiting": {"reason": "PodInitializing"}}, **status}


def running(seconds: float) -> dict[str, Any]:
    return {"running": {"startedAt": at(seconds)}}


def ended(seconds: float, code: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": at(0), "finishedAt": at(seconds)}}


def a_pod(*conditions: dict[str, Any], name: str = "llama-7d9-x", **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "inference", "uid": f"uid-of-{name}", "creationTimestamp": at(0)}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "status": {"phase": "Pending", "conditions": list(conditions), **status},
    }


def verified(engine: Mapping[str, Any] | None = None, *, verify: Mapping[str, Any], **last: Any) -> dict[str, Any]:
    """A placed pod with the verification before the engine."""
    return a_pod(
        placed(),
        initContainerStatuses=[a_container("verify-weights", verify)],
        containerStatuses=[a_container("engine", engine, **last)],
    )


# States that a kubelet reports one after the other (kubernetes.io: Pod Lifecycle, "Container states"): an init
# container that has not run waits with PodInitializing, and so does the engine until the last of them has ended with 0.
A_START = [
    (a_pod(), "Scheduling", 0, None),
    (a_pod({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}), "Scheduling", 0, None),
    (a_pod(placed(4)), "PreparingNode", 4, None),
    (verified(verify={"waiting": {"reason": "PodInitializing"}}), "PreparingNode", 1, None),
    (verified(verify=running(20)), "VerifyingWeights", 20, 1220),
    (verified(verify=ended(70)), "PullingImage", 70, None),
    (verified(running(90), verify=ended(70)), "LoadingModel", 90, 1290),
]


@pytest.mark.parametrize(("pod", "phase", "since", "deadline"), A_START)
def test_each_state_of_a_start_is_a_phase_with_its_time(
    pod: dict[str, Any], phase: str, since: int, deadline: int | None
) -> None:
    start = pod_start(pod, BUDGET)
    assert start is not None
    expected = {"pod": "llama-7d9-x", "phase": phase, "since": at(since)}
    assert start.as_status() == (expected if deadline is None else {**expected, "deadline": at(deadline)})


def test_the_engine_without_a_verification_waits_for_the_node_and_then_loads() -> None:
    waiting = a_pod(placed(), containerStatuses=[a_container("engine", {"waiting": {"reason": "ContainerCreating"}})])
    loading = a_pod(placed(), containerStatuses=[a_container("engine", running(30))])
    assert [pod_start(pod, BUDGET).phase for pod in (waiting, loading)] == ["PreparingNode", "LoadingModel"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "phase"),
    [("link-cache", "CopyingCaches"), ("copy-cache", "CopyingCaches"), ("check-accelerators", "CheckingAccelerators")],
)
def test_copied_caches_and_checks_of_gpus_are_phases_without_a_deadline(name: str, phase: str) -> None:
    pod = a_pod(placed(), initContainerStatuses=[a_container(name, running(9))])
    start = pod_start(pod, BUDGET)
    assert start is not None
    assert (start.phase, start.deadline) == (phase, None)


@pytest.mark.parametrize(
    "pod",
    [
        verified(ended(200, code=1), verify=ended(70)),
        verified({"waiting": {"reason": "CrashLoopBackOff"}}, verify=ended(70), lastState=ended(200, code=137)),
        verified(verify=ended(200, code=3)),
    ],
    ids=["the engine has just ended", "the engine waits to start again", "the verification has just ended"],
)
def test_a_container_that_ended_is_restarting_since_its_end(pod: dict[str, Any]) -> None:
    start = pod_start(pod, BUDGET)
    assert start is not None
    assert (start.phase, start.since) == ("Restarting", NOW + timedelta(seconds=200))


def test_an_engine_that_runs_again_loads_since_its_new_start() -> None:
    start = pod_start(verified(running(300), verify=ended(70), lastState=ended(200, code=1)), BUDGET)
    assert start is not None
    assert (start.phase, start.as_status()["since"]) == ("LoadingModel", at(300))


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(placed(), {"type": "Ready", "status": "True"}, containerStatuses=[a_container("engine", running(3))]),
        a_pod(placed(), phase="Failed"),
        a_pod(placed(), phase="Succeeded"),
        {**a_pod(placed()), "metadata": {"name": "x", "deletionTimestamp": at(5), "creationTimestamp": at(0)}},
        a_pod(placed(), containerStatuses=[a_container("engine", {"running": {}})]),
        a_pod(placed(), containerStatuses=[a_container("engine", {"running": {"startedAt": "yesterday"}})]),
        a_pod(placed(), containerStatuses=[a_container("engine", {"running": {"startedAt": "9999-12-31T23:59:59Z"}})]),
    ],
    ids=["serves", "failed", "succeeded", "is deleted", "no time", "a malformed time", "a time without a deadline"],
)
def test_a_pod_that_does_not_start_has_no_phase(pod: dict[str, Any]) -> None:
    assert pod_start(pod, BUDGET) is None


def test_the_pod_in_the_earliest_phase_decides() -> None:
    pods = [
        a_pod(placed(), name="b", containerStatuses=[a_container("engine", running(30))]),
        a_pod(placed(), name="a", containerStatuses=[a_container("engine", running(30))]),
        a_pod(placed(8), name="c"),
    ]
    assert [slowest_start(pods[:count], BUDGET).pod for count in (1, 2, 3)] == ["b", "a", "c"]  # type: ignore[union-attr]
    assert slowest_start([], BUDGET) is None


def test_every_phase_of_the_api_is_described() -> None:
    assert set(DESCRIPTIONS) == set(get_args(StartPhase))


# ---------------------------------------------------------------------- the status


def starting(pod: dict[str, Any], **facts: Any) -> ClusterSnapshot:
    """A deployment with this one pod of its template, which does not serve."""
    children = children_of(MODEL)
    mark = children["Deployment", "llama"]["spec"]["template"]["metadata"]["labels"][TEMPLATE_LABEL]
    present = {**pod, "metadata": {**pod["metadata"], "labels": {TEMPLATE_LABEL: mark}}}
    return serving(a_snapshot(children=children, pods=(present,), **facts), 1, availableReplicas=0)


def status_at(snapshot: ClusterSnapshot, seconds: float) -> dict[str, Any]:
    now = NOW + timedelta(seconds=seconds)
    spec, confirmed = spec_of(MODEL), replace(snapshot, evidence=evidence(confirmed_at=now))
    return status(spec, confirmed, plan(spec, confirmed, now), (), now)


def test_the_status_has_phase_and_budget_and_the_message_says_them() -> None:
    model_status = status_at(starting(A_START[6][0]), 120)
    assert model_status["start"] == {
        "pod": "llama-7d9-x",
        "phase": "LoadingModel",
        "since": at(90),
        "deadline": at(1290),
    }
    assert conditions(model_status)["Ready"]["message"] == (
        "0 of 1 replicas serve; pods are starting: pod 'llama-7d9-x': the engine loads the model since 12:01:30 UTC, "
        "until 12:21:30 at the latest"
    )
    ModelDeploymentStatus.model_validate(model_status)


def test_time_that_passes_within_a_phase_changes_nothing() -> None:
    snapshot = starting(A_START[4][0])
    first = status_at(snapshot, 31)
    later = [status_at(replace(snapshot, status=first), seconds) for seconds in range(32, 1200, 97)]
    assert all(same_status(later_status, first) for later_status in later)


def test_a_whole_start_costs_one_status_for_each_phase_that_lasts() -> None:
    """Counted as the reconciler would write it, with a pass in each second of a start of two minutes."""
    began = {0: A_START[0][0], 4: A_START[2][0], 12: A_START[3][0], 20: A_START[4][0], 70: A_START[5][0]}
    began[90] = A_START[6][0]
    snapshot, written, phases = starting(began[0]), 0, []
    for second in range(121):
        pod = began[max(moment for moment in began if moment <= second)]
        current = replace(starting(pod), status=snapshot.status)
        model_status = status_at(current, second)
        if not same_status(model_status, current.status):
            written += 1
            phases.append(model_status.get("start", {}).get("phase"))
        snapshot = replace(current, status=model_status)
    assert phases == [None, "PreparingNode", "VerifyingWeights", "PullingImage", "LoadingModel"]
    assert written == len(phases)


def test_a_start_of_less_than_the_settling_time_costs_no_write_for_its_phases() -> None:
    before = status_at(starting(a_pod()), 0)
    assert "start" not in before
    loading = replace(starting(a_pod(placed(2), containerStatuses=[a_container("engine", running(5))])), status=before)
    assert same_status(status_at(loading, 9), before)


def test_the_plan_asks_for_a_pass_when_a_phase_has_lasted() -> None:
    spec, snapshot = spec_of(MODEL), starting(A_START[6][0])
    due = NOW + timedelta(seconds=90) + SETTLING
    assert plan(spec, snapshot, due - timedelta(seconds=5)).requeue_at == due
    later = plan(spec, snapshot, due).requeue_at
    assert later is None or later > due


def test_a_phase_of_another_pod_is_not_kept() -> None:
    earlier = {"start": {"pod": "llama-old", "phase": "LoadingModel", "since": at(-500), "deadline": at(700)}}
    assert "start" not in status_at(starting(a_pod(placed(1)), status=earlier), 3)


def test_pods_that_fail_or_serve_have_no_phase() -> None:
    refused = a_pod(placed(), containerStatuses=[a_container("engine", {"waiting": {"reason": "ErrImagePull"}})])
    assert "start" not in status_at(starting(refused), 60)
    assert "start" not in status_at(serving(a_snapshot(children=children_of(MODEL)), 1), 60)


@pytest.mark.parametrize(
    ("available", "replicas", "pods", "has_url"),
    [(0, 2, "0/2", False), (1, 2, "1/2", True), (2, 2, "2/2", True), (3, 2, "2/2", True)],
)
def test_serving_pods_are_counted_and_the_url_is_there_once_one_serves(
    available: int, replicas: int, pods: str, has_url: bool
) -> None:
    model = a_baked_model("llama", replicas=replicas, endpoint={})
    snapshot = serving(a_snapshot(children=children_of(model)), replicas, availableReplicas=available)
    snapshot = reporting_of(snapshot, "Service", {})
    spec = spec_of(model)
    model_status = status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW)
    assert model_status["serving"]["pods"] == pods
    assert model_status["serving"].get("url") == (model_status["endpoint"]["url"] if has_url else None)


def test_a_time_is_read_in_any_zone() -> None:
    pod = a_pod(
        placed(), containerStatuses=[a_container("engine", {"running": {"startedAt": "2026-11-24T13:00:30+01:00"}})]
    )
    start = pod_start(pod, BUDGET)
    assert start is not None
    assert start.since == datetime.fromisoformat("2026-11-24T12:00:30Z")
