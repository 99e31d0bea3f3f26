"""Fake GPU nodes take pods as real ones would, and every failure mode shows what a kubelet shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from testbed.api import Api
from testbed.failure_modes import ANNOTATION, CRASHES
from testbed.fleet import SIZES, Pool
from testbed.processes import wait_until
from tests.sampled_groups import TEST_BED_CONTROL_PLANE

pytestmark = TEST_BED_CONTROL_PLANE

DIGEST = "sha256:" + "0" * 64
HEALTHY = f"registry.test/vllm/engine@{DIGEST}"


def image(mode: str) -> str:
    return f"registry.test/vllm/failure-{mode}@{DIGEST}"


def gpu_pod(name: str, of: str = HEALTHY, resource: str = "nvidia.com/gpu", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {
            "tolerations": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
            "containers": [{"name": "engine", "image": of, "resources": {"limits": {resource: "1"}}}],
        },
    }


class Pods:
    """The pods of one namespace, waited for by state."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._events = f"/api/v1/namespaces/{namespace}/events"

    def run(self, manifest: dict[str, Any]) -> None:
        self._api.create(self._path, manifest)

    def status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self._api.get(f"{self._path}/{name}").get("status", {})
        return status

    def container(self, name: str) -> dict[str, Any]:
        statuses: list[dict[str, Any]] = self.status(name).get("containerStatuses", [{}])
        return statuses[0]

    def condition(self, name: str, kind: str) -> str | None:
        conditions = self.status(name).get("conditions", [])
        return next((condition["status"] for condition in conditions if condition["type"] == kind), None)

    def waiting_reason(self, name: str) -> str | None:
        reason: str | None = self.container(name).get("state", {}).get("waiting", {}).get("reason")
        return reason

    def event_reasons(self, name: str) -> set[str]:
        events = self._api.get(self._events, fieldSelector=f"involvedObject.name={name}")["items"]
        return {event["reason"] for event in events}


@pytest.fixture
def pods(api: Api, namespace: str) -> Pods:
    return Pods(api, namespace)


def until(what: str, state: Callable[[], bool]) -> None:
    wait_until(what, state, (), timeout=30)


@pytest.mark.parametrize("size", [size for size in SIZES.values() if size.gpus], ids=lambda size: size.name)
def test_gpu_pod_is_scheduled_and_ready_on_every_size(size: Any, pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu", size.name))

    pods.run(gpu_pod("model", resource=size.resource))

    until("ready pod", lambda: pods.condition("model", "Ready") == "True")


def test_pod_waits_where_the_nodes_driver_is_missing(pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu", driver=False))

    pods.run(gpu_pod("model"))

    until("unschedulable pod", lambda: pods.condition("model", "PodScheduled") == "False")


@pytest.mark.parametrize("mode", list(CRASHES))
def test_crashing_container_backs_off_with_its_last_words(mode: str, pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu"))

    pods.run(gpu_pod("model", image(mode)))

    until("second restart", lambda: pods.container("model").get("restartCount", 0) >= 2)
    until("back-off", lambda: pods.waiting_reason("model") == "CrashLoopBackOff")
    last = pods.container("model")["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == (CRASHES[mode].reason, CRASHES[mode].exit_code)
    assert last.get("message", "") == CRASHES[mode].message
    assert pods.condition("model", "Ready") == "False"
    assert "BackOff" in pods.event_reasons("model")


def test_crashing_container_comes_to_rest_after_five_restarts(pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu"))
    pods.run(gpu_pod("model", image("crash-loop")))

    until("fifth restart", lambda: pods.container("model").get("restartCount") == 5)

    assert pods.waiting_reason("model") == "CrashLoopBackOff"


def test_termination_message_can_be_chosen_by_annotation(pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu"))
    annotations = {ANNOTATION: "crash-loop", "hermetic.test/termination-message": 'a "quoted" word\nand a line'}

    pods.run(gpu_pod("model", annotations=annotations))

    until("back-off", lambda: pods.waiting_reason("model") == "CrashLoopBackOff")
    assert pods.container("model")["lastState"]["terminated"]["message"] == 'a "quoted" word\nand a line'


def test_image_that_cannot_be_pulled_keeps_the_pod_pending(pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu"))

    pods.run(gpu_pod("model", image("image-pull-back-off")))

    until("pull back-off", lambda: pods.waiting_reason("model") == "ImagePullBackOff")
    assert "no such host" in pods.container("model")["state"]["waiting"]["message"]
    assert pods.status("model")["phase"] == "Pending"


def test_volume_that_cannot_be_mounted_is_told_by_an_event(pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu"))

    pods.run(gpu_pod("model", image("mount-failed")))

    until("creating", lambda: pods.waiting_reason("model") == "ContainerCreating")
    until("event", lambda: "FailedMount" in pods.event_reasons("model"))


def test_slow_engine_runs_before_it_is_ready(pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu"))

    pods.run(gpu_pod("model", image("slow-start")))

    until("running", lambda: pods.status("model").get("phase") == "Running")
    assert pods.condition("model", "Ready") == "False"
    until("ready", lambda: pods.condition("model", "Ready") == "True")


@pytest.mark.parametrize(("mode", "reason"), [("slow-pull", "ContainerCreating"), ("slow-verify", "PodInitializing")])
def test_slow_pull_and_slow_verification_start_the_engine_later(
    mode: str, reason: str, pods: Pods, fleet: Callable[..., Any]
) -> None:
    fleet(Pool("gpu"))

    pods.run(gpu_pod("model", image(mode)))

    until("waiting", lambda: pods.waiting_reason("model") == reason)
    assert pods.status("model")["phase"] == "Pending"
    until("ready", lambda: pods.condition("model", "Ready") == "True")
    assert pods.container("model")["state"].keys() == {"running"}


def test_engine_that_never_gets_ready_runs_for_ever(pods: Pods, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu"), 2)
    pods.run(gpu_pod("slow", image("slow-start")))
    pods.run(gpu_pod("never", image("never-ready")))

    until("ready neighbour", lambda: pods.condition("slow", "Ready") == "True")

    assert pods.status("never")["phase"] == "Running"
    assert pods.condition("never", "Ready") == "False"


def test_namespace_name_can_choose_the_fate(
    api: Api, make_namespace: Callable[[str], str], fleet: Callable[..., Any]
) -> None:
    fleet(Pool("gpu"))
    pods = Pods(api, make_namespace("-failure-image-pull-back-off"))

    pods.run(gpu_pod("model"))

    until("pull back-off", lambda: pods.waiting_reason("model") == "ImagePullBackOff")


@pytest.mark.parametrize("mode", ["crash-loop", "never-ready"])
def test_pod_with_a_failure_mode_can_be_deleted(mode: str, api: Api, namespace: str, fleet: Callable[..., Any]) -> None:
    fleet(Pool("gpu"))
    pods = Pods(api, namespace)
    pods.run(gpu_pod("model", image(mode)))
    until("running", lambda: pods.status("model").get("phase") == "Running")

    api.delete(f"/api/v1/namespaces/{namespace}/pods/model")

    until("gone", lambda: not api.get(f"/api/v1/namespaces/{namespace}/pods")["items"])


def test_lost_node_is_unreachable_until_it_comes_back(api: Api, fleet: Callable[..., Any]) -> None:
    (name,) = fleet(Pool("gpu"))
    path = f"/api/v1/nodes/{name}"

    def ready() -> str | None:
        conditions = api.get(path)["status"].get("conditions", [])
        return next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None)

    def unreachable() -> bool:
        return any(
            taint["key"] == "node.kubernetes.io/unreachable" for taint in api.get(path)["spec"].get("taints", [])
        )

    until("ready node", lambda: ready() == "True")
    api.merge(path, {"metadata": {"annotations": {ANNOTATION: "lost"}}})
    until("unknown node", lambda: ready() == "Unknown")
    until("taint", unreachable)

    api.merge(path, {"metadata": {"annotations": {ANNOTATION: None}}})
    until("ready node", lambda: ready() == "True")
    until("no taint", lambda: not unreachable())
