"""Pods that wait for a node, an image or their weights when the gate closes: none starts before it opens again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import CannotRunError
from testbed.fleet import Pool, add_nodes, remove_nodes
from testbed.programs import programs
from tests.controlplane.deployments import Deployments, failing
from tests.controlplane.sealed_cluster import GPU_NODES, SealedCluster, a_finding, sealed, sealed_cluster
from tests.scenarios import Manifest, a_baked_model, changed

__all__ = ["sealed"]

pytestmark = pytest.mark.sampled(3, of="pods that wait behind a closed gate")

OPEN = a_finding("Fail", "natgw-inventory", message="a NAT gateway is attached")
NEVER_PULLED = "image-pull-back-off"


@pytest.fixture(scope="module")
def sealed_module(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[SealedCluster]:
    """A cluster in which every model must be proven, as it is by default."""
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    minimum = {"minimumEnforcement": "Enforce"}
    with sealed_cluster(tmp_path_factory.mktemp("waiting"), component_logs, isolation=minimum) as cluster:
        yield cluster


@pytest.fixture
def home(sealed: SealedCluster) -> Iterator[Deployments]:
    """A namespace behind an open gate."""
    namespace = sealed.namespace()
    sealed.open_gate()
    yield namespace
    sealed.api.delete(f"/api/v1/namespaces/{namespace.namespace}")


def live_pods(home: Deployments, name: str = "llama") -> list[Manifest]:
    return [pod for pod in home.pods(name) if "deletionTimestamp" not in pod["metadata"]]


def uids_of_started(home: Deployments) -> set[str]:
    return {pod["metadata"]["uid"] for pod in live_pods(home) if pod["status"].get("phase") == "Running"}


def waiting(home: Deployments, name: str = "llama") -> list[Manifest]:
    return [pod for pod in live_pods(home, name) if pod["status"].get("phase") == "Pending"]


def a_model(**spec: Any) -> Manifest:
    return a_baked_model("llama", **{"endpoint": {}, "drainSeconds": 5, **spec})


def close(sealed: SealedCluster) -> None:
    sealed.attest(OPEN, says={"verdict": "Fail"})


def test_pod_without_a_node_is_removed_and_a_node_that_comes_later_starts_nothing(
    sealed: SealedCluster, home: Deployments
) -> None:
    """The scale-up in progress: the autoscaler adds the node minutes after the Fail."""
    home.apply(a_model(replicas=GPU_NODES + 1))
    home.wait("all nodes used", lambda: len(uids_of_started(home)) == GPU_NODES and len(waiting(home)) == 1)
    before = uids_of_started(home)

    close(sealed)
    ready = home.until("llama", "IsolationBroken")
    home.wait("no pod waits, ten seconds later", lambda: not waiting(home), timeout=10)
    nodes = add_nodes(sealed.api, Pool("real"), 1)  # attested, and without a node until now
    try:
        message = f"1 of {GPU_NODES + 1} pods have not started and start by themselves when isolation is proven"
        assert message in ready["message"]
        assert uids_of_started(home) == before

        sealed.attest()
        home.until("llama", "Serving", timeout=120)
        assert before < uids_of_started(home)
        assert len(uids_of_started(home)) == GPU_NODES + 1
    finally:
        remove_nodes(sealed.api, nodes)


def test_first_pod_that_pulls_its_image_is_removed_also_after_a_restart_of_the_operator(
    sealed: SealedCluster, home: Deployments
) -> None:
    home.apply(failing(a_model(), NEVER_PULLED))
    home.wait("it has a node", lambda: [pod for pod in waiting(home) if pod["spec"].get("nodeName")])
    assert sealed.operator.stop() == 0
    try:
        close(sealed)
        assert len(waiting(home)) == 1
    finally:
        sealed.operator.start()
    home.until("llama", "IsolationBroken", timeout=90)
    home.wait("no pod", lambda: not live_pods(home))

    sealed.attest()
    home.wait("it is tried again", lambda: len(waiting(home)) == 1, timeout=90)


def test_rolling_update_loses_no_serving_pod_and_goes_on_when_the_gate_opens(
    sealed: SealedCluster, home: Deployments
) -> None:
    home.apply(a_model(replicas=3))
    home.until("llama", "Serving")
    home.apply(failing(a_model(replicas=3, drainSeconds=6), NEVER_PULLED))
    home.wait("a new pod pulls", lambda: len(waiting(home)) == 1 and len(uids_of_started(home)) == 2)
    before = uids_of_started(home)

    close(sealed)
    home.until("llama", "IsolationBroken")
    home.wait("no new pod", lambda: not waiting(home))
    assert uids_of_started(home) == before

    home.apply(a_model(replicas=3, drainSeconds=7))
    sealed.attest()
    home.until("llama", "Serving", timeout=120)
    assert len(uids_of_started(home)) == 3
    assert not before & uids_of_started(home)


def test_gate_that_closes_and_opens_often_ends_with_every_pod(sealed: SealedCluster, home: Deployments) -> None:
    home.apply(failing(a_model(replicas=2), NEVER_PULLED))
    home.wait("both wait", lambda: len(waiting(home)) == 2)
    for _ in range(4):
        close(sealed)
        home.until("llama", "IsolationBroken")
        home.wait("no pod", lambda: not live_pods(home))
        sealed.attest()
        sealed.until("Pass")
    home.wait("both again", lambda: len(waiting(home)) == 2, timeout=120)


def test_pod_whose_weights_are_being_verified_is_removed(sealed: SealedCluster, home: Deployments) -> None:
    """In phase Pending with a node and a running init container, as the kubelet reports it."""
    home.apply(failing(a_model(), NEVER_PULLED))
    home.wait("it has a node", lambda: [pod for pod in waiting(home) if pod["spec"].get("nodeName")])
    (pod,) = waiting(home)
    verifying = {"name": "verify-weights", "ready": False, "restartCount": 0, "image": "v", "imageID": "v"}
    statuses = [{**verifying, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
    path = f"/api/v1/namespaces/{home.namespace}/pods/{pod['metadata']['name']}/status"
    sealed.api.merge(path, {"status": {"phase": "Pending", "initContainerStatuses": statuses}})

    close(sealed)
    home.until("llama", "IsolationBroken")
    home.wait("no pod, ten seconds later", lambda: not live_pods(home), timeout=10)


def test_waiting_pods_of_every_enforced_model_are_removed_when_the_evidence_ends(
    sealed: SealedCluster, home: Deployments
) -> None:
    """Nothing is found, and nobody brings newer evidence: the end of the evidence alone."""
    names = ("llama", "phi", "qwen")
    for name in names:
        home.apply(failing(a_baked_model(name, endpoint={}), NEVER_PULLED))
    home.wait("each waits", lambda: all(waiting(home, name) for name in names))
    sealed.attest(lasts=timedelta(seconds=25))
    for name in names:
        home.until(name, "IsolationEvidenceStale", timeout=90)
    home.wait("no pod, ten seconds later", lambda: not any(live_pods(home, name) for name in names), timeout=10)
    sealed.attest()
    home.wait("each waits again", lambda: all(waiting(home, name) for name in names), timeout=120)


def test_rolling_update_of_one_replica_keeps_the_old_pod(sealed: SealedCluster, home: Deployments) -> None:
    home.apply(a_model(rollout="Surge"))
    home.until("llama", "Serving")
    home.apply(failing(a_model(rollout="Surge", drainSeconds=6), NEVER_PULLED))
    home.wait("a new pod pulls", lambda: len(waiting(home)) == 1)
    before = uids_of_started(home)
    assert len(before) == 1

    close(sealed)
    home.until("llama", "IsolationBroken")
    home.wait("no new pod", lambda: not waiting(home))
    assert uids_of_started(home) == before


def test_others_that_write_replicas_behind_a_closed_gate_start_no_pod(sealed: SealedCluster, home: Deployments) -> None:
    """A HorizontalPodAutoscaler of a tenant, `kubectl scale` and a PodDisruptionBudget that allows no disruption."""
    home.apply(a_model(replicas=GPU_NODES + 1))
    home.wait("all nodes used", lambda: len(uids_of_started(home)) == GPU_NODES and len(waiting(home)) == 1)
    before = uids_of_started(home)
    labels = {"matchLabels": {"hermetic.dev/modeldeployment": "llama"}}
    budget = {"metadata": {"name": "strict"}, "spec": {"maxUnavailable": 0, "selector": labels}}
    sealed.api.create(f"/apis/policy/v1/namespaces/{home.namespace}/poddisruptionbudgets", budget)

    close(sealed)
    home.until("llama", "IsolationBroken")
    home.wait("no pod waits, ten seconds later", lambda: not waiting(home), timeout=10)
    nodes = add_nodes(sealed.api, Pool("real"), 1)
    try:
        deployment = f"/apis/apps/v1/namespaces/{home.namespace}/deployments/llama"
        sealed.api.merge(f"{deployment}/scale", {"spec": {"replicas": GPU_NODES + 5}})
        # To what the spec asks for: the pod that is missing then is refused by the API server.
        home.wait("corrected", lambda: sealed.api.get(deployment)["spec"]["replicas"] <= GPU_NODES + 1)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
        bounds = {"minReplicas": GPU_NODES + 2, "maxReplicas": GPU_NODES + 3}
        scalers = f"/apis/autoscaling/v2/namespaces/{home.namespace}/horizontalpodautoscalers"
        sealed.api.create(scalers, {"metadata": {"name": "theirs"}, "spec": {"scaleTargetRef": target, **bounds}})
        home.wait("it scales", lambda: sealed.api.get(f"{scalers}/theirs").get("status", {}).get("lastScaleTime"), 90)
        home.until("llama", "IsolationBroken")
        assert uids_of_started(home) == before
        assert not waiting(home)
    finally:
        remove_nodes(sealed.api, nodes)


@pytest.mark.parametrize("writer", ["kubectl scale", "HorizontalPodAutoscaler"])
def test_rolling_update_that_others_scale_behind_a_closed_gate_starts_no_pod_of_either_template(
    sealed: SealedCluster, home: Deployments, writer: str
) -> None:
    """Nodes come meanwhile. The pods that serve stay; the update goes on, as it was asked for, when the gate opens."""
    home.apply(a_model(replicas=2, rollout="Surge"))
    home.until("llama", "Serving")
    home.apply(failing(a_model(replicas=2, rollout="Surge", drainSeconds=6), NEVER_PULLED))
    home.wait("a new pod pulls", lambda: len(waiting(home)) == 1)
    before = uids_of_started(home)
    assert len(before) == 2

    close(sealed)
    home.until("llama", "IsolationBroken")
    home.wait("no pod waits, ten seconds later", lambda: not waiting(home), timeout=10)
    nodes = add_nodes(sealed.api, Pool("real"), 2)
    try:
        scale = SCALES[writer]
        written = scale(sealed, home, replicas=4)
        home.wait("it is written", written, timeout=90)
        home.wait("more pods are refused", lambda: is_refused_more_pods(sealed, home), timeout=90)
        assert not waiting(home)
        assert uids_of_started(home) == before
        assert {pod["metadata"]["uid"] for pod in live_pods(home)} == before, "of neither ReplicaSet"
        forget_scaler(sealed, home)

        home.apply(a_model(replicas=2, rollout="Surge", drainSeconds=7))
        sealed.attest()
        home.until("llama", "Serving", timeout=120)
        assert len(uids_of_started(home)) == 2
        assert not before & uids_of_started(home)
    finally:
        remove_nodes(sealed.api, nodes)


def deployment_path(home: Deployments) -> str:
    return f"/apis/apps/v1/namespaces/{home.namespace}/deployments/llama"


def is_refused_more_pods(sealed: SealedCluster, home: Deployments) -> bool:
    """Whether the Deployment controller has tried to make them, of either ReplicaSet, and the API server refused."""
    conditions = sealed.api.get(deployment_path(home))["status"].get("conditions") or ()
    failures = [condition for condition in conditions if condition["type"] == "ReplicaFailure"]
    return any("hermetic-pod-gate" in failure.get("message", "") for failure in failures)


def scale_by_hand(sealed: SealedCluster, home: Deployments, replicas: int) -> Callable[[], bool]:
    sealed.api.merge(f"{deployment_path(home)}/scale", {"spec": {"replicas": replicas}})
    return lambda: True


def scale_by_autoscaler(sealed: SealedCluster, home: Deployments, replicas: int) -> Callable[[], bool]:
    """Without metrics it scales to its minimum."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
    spec = {"scaleTargetRef": target, "minReplicas": replicas, "maxReplicas": replicas + 1}
    sealed.api.create(autoscalers(home), {"metadata": {"name": "theirs"}, "spec": spec})
    return lambda: bool(sealed.api.get(f"{autoscalers(home)}/theirs").get("status", {}).get("lastScaleTime"))


def forget_scaler(sealed: SealedCluster, home: Deployments) -> None:
    for autoscaler in sealed.api.get(autoscalers(home))["items"]:
        sealed.api.delete(f"{autoscalers(home)}/{autoscaler['metadata']['name']}")


def autoscalers(home: Deployments) -> str:
    return f"/apis/autoscaling/v2/namespaces/{home.namespace}/horizontalpodautoscalers"


SCALES = {"kubectl scale": scale_by_hand, "HorizontalPodAutoscaler": scale_by_autoscaler}


def test_model_without_enforcement_keeps_its_waiting_pod(sealed: SealedCluster, home: Deployments) -> None:
    operator, before = sealed.operator, sealed.operator.config_file.read_text()
    assert operator.stop() == 0
    operator.config_file.write_text(before.replace("minimumEnforcement: Enforce", "minimumEnforcement: 'Off'"))
    try:
        operator.start()
        for name, enforcement in (("report", "Report"), ("off", "Off")):
            model = changed(a_baked_model(name, endpoint={}), isolation={"enforcement": enforcement})
            home.apply(failing(model, NEVER_PULLED))
        home.apply(failing(a_model(), NEVER_PULLED))
        home.wait("each waits", lambda: all(waiting(home, name) for name in ("report", "off", "llama")))
        uids = {pod["metadata"]["uid"] for name in ("report", "off") for pod in waiting(home, name)}
        close(sealed)
        home.wait("the proven one is removed", lambda: not live_pods(home), timeout=90)
        assert {pod["metadata"]["uid"] for name in ("report", "off") for pod in waiting(home, name)} == uids
    finally:
        operator.stop()
        operator.config_file.write_text(before)
        operator.start()
