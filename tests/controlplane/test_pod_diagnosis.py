"""Why pods do not serve, with a real scheduler, real controllers and kubelets that kwok simulates: one reason each.

Where kwok has no failure mode, the test writes in the kubelet's place: a pod's status, or an Event about it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testbed.api import Api
from testbed.fleet import Pool, add_nodes, remove_nodes
from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments, failing, module_namespace
from tests.controlplane.kstatus import contradictions, history, kstatus, newest
from tests.scenarios import Manifest, a_baked_model, reporting

pytestmark = pytest.mark.sampled(10, of="pods that fail")


@dataclass(frozen=True)
class Case:
    """A deployment in trouble: what it is, what is said of it, and whether only a person can help."""

    manifest: Manifest
    reason: str
    words: tuple[str, ...]
    stuck: bool


def in_trouble(mode: str, reason: str, *phrases: str, stuck: bool = True) -> Case:
    name = f"m-{mode}"
    return Case(failing(reporting(a_baked_model(name, endpoint={})), mode), reason, phrases, stuck)


def waiting(name: str, reason: str, *phrases: str, **spec: Any) -> Case:
    return Case(reporting(a_baked_model(name, **{"endpoint": {}, **spec})), reason, phrases, stuck=False)


CASES = {
    case.manifest["metadata"]["name"]: case
    for case in (
        in_trouble("image-pull-back-off", "ImagePullFailed", "cannot be pulled", "no such host", stuck=False),
        in_trouble("crash-loop", "CrashLoop", "exit code 1", "something that no catalogue of failures lists"),
        in_trouble("crash-loop-model-missing", "ModelPathMissing", "Repo id must be in the form"),
        in_trouble("crash-loop-no-weights", "ModelIncomplete", "Cannot find any model weights"),
        in_trouble("crash-loop-truncated-weights", "ModelIncomplete", "file not fully covered"),
        in_trouble("crash-loop-kv-cache", "GpuMemoryTooSmall", "larger than the available KV cache memory"),
        in_trouble("crash-loop-bad-flag", "EngineArgumentsRefused", "exit code 2", "--no-such-flag"),
        in_trouble("oom-killed", "OutOfMemory", "used more memory"),
        in_trouble("mount-failed", "MountFailed", "access denied by server", stuck=False),
        waiting("m-four-gpus", "Unschedulable", "needs 4 nvidia.com/gpu", "has 1: 3 short", accelerator={"count": 4}),
        waiting("m-amd", "Unschedulable", "no node offers any", accelerator={"resource": "amd.com/gpu"}),
        waiting(
            "m-other-size",
            "Unschedulable",
            "of size Standard_ND96isr_H100_v5",
            accelerator={"instanceTypes": ["Standard_ND96isr_H100_v5"]},
        ),
        waiting(
            "m-no-claim",
            "ReferenceNotFound",
            '"staged-weights" not found',
            weights={"persistentVolumeClaim": {"claimName": "staged-weights"}},
        ),
        waiting(
            "m-unbound",
            "VolumeNotBound",
            "unbound",
            weights={"persistentVolumeClaim": {"claimName": "without-volume"}},
        ),
    )
}
UNBOUND_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "without-volume"},
    "spec": {
        "accessModes": ["ReadOnlyMany"],
        "storageClassName": "",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


@dataclass(frozen=True)
class FailingPods:
    """Every case in one namespace, and the resourceVersion before the first of them."""

    deployments: Deployments
    began: str


@pytest.fixture(scope="module")
def failing_pods(hermetic: OperatorProcess, api: Api, kubectl: Kubectl, gpu_nodes: None) -> Iterator[FailingPods]:  # noqa: ARG001
    """Every case at once, so that their time is spent together."""
    with module_namespace(api, "trouble") as namespace:
        deployments = Deployments(api, kubectl, namespace, hermetic)
        began = newest(api, deployments.collection)
        kubectl.within(namespace).apply(UNBOUND_CLAIM)
        deployments.apply(*(case.manifest for case in CASES.values()))
        yield FailingPods(deployments, began)


# ---------------------------------------------------------------------- one reason each


@pytest.mark.parametrize("name", list(CASES))
def test_trouble_is_told_by_its_reason_in_words_that_name_the_cause(name: str, failing_pods: FailingPods):
    case, deployments = CASES[name], failing_pods.deployments
    ready = deployments.until(name, case.reason)
    assert all(word in ready["message"] for word in case.words), ready["message"]
    assert kstatus(deployments.get(name)) == ("Failed" if case.stuck else "InProgress")
    available = deployments.condition(name, "Available")
    assert (available["reason"], available["message"]) == (case.reason, ready["message"])


def test_trouble_costs_a_handful_of_status_writes_and_none_once_it_was_told(failing_pods: FailingPods):
    """Crash loops turn five times meanwhile; nothing of it is news."""
    deployments = failing_pods.deployments
    for name, case in CASES.items():
        deployments.until(name, case.reason)
    before = newest(deployments.api, deployments.collection)
    looping = [name for name, case in CASES.items() if "crash-loop" in name]
    deployments.wait("the last restarts", lambda: all(restarts(deployments, name) == 5 for name in looping))

    revisions_by_name = history(deployments.api, deployments.collection, failing_pods.began)

    assert revisions_by_name.keys() == CASES.keys()
    assert [
        line for revisions in revisions_by_name.values() for revision in revisions for line in contradictions(revision)
    ] == []
    assert {name: len(revisions) - 1 for name, revisions in revisions_by_name.items() if len(revisions) - 1 > 3} == {}
    late = {
        name: [r for r in revisions_by_name[name] if int(r["metadata"]["resourceVersion"]) > int(before)]
        for name in looping
    }
    assert not any(late.values())


def restarts(deployments: Deployments, name: str) -> int:
    statuses = [s for pod in deployments.pods(name) for s in pod["status"].get("containerStatuses", ())]
    return max((status["restartCount"] for status in statuses), default=0)


# ---------------------------------------------------------------------- said in the kubelet's place


def first_pod(deployments: Deployments, name: str, failure_is_simulated: Callable[[Manifest], bool]) -> Manifest:
    def simulated() -> Manifest | None:
        return next((pod for pod in deployments.pods(name) if failure_is_simulated(pod)), None)

    pod: Manifest = deployments.wait(f"a pod of {name}", simulated)
    return pod


def has_container_status(pod: Manifest) -> bool:
    return bool(pod["status"].get("containerStatuses"))


def the_kubelet_says(deployments: Deployments, pod: Manifest, **status: Any) -> None:
    path = f"/api/v1/namespaces/{deployments.namespace}/pods/{pod['metadata']['name']}/status"
    deployments.api.merge(path, {"status": status})


def engine(pod: Manifest, **status: Any) -> dict[str, Any]:
    image = pod["spec"]["containers"][0]["image"]
    status_fields = {
        "name": "engine",
        "image": image,
        "imageID": image,
        "ready": False,
        "started": False,
        "restartCount": 0,
    }
    return {**status_fields, **status}


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_engine_that_never_serves_has_exceeded_its_budget(served: Deployments):
    served.apply(failing(reporting(a_baked_model("llama", endpoint={}, startupBudgetSeconds=60)), "never-ready"))
    pod = first_pod(served, "llama", has_container_status)
    served.until("llama", "Starting")

    over = datetime.now(UTC)
    last = {
        "exitCode": 137,
        "reason": "Error",
        "startedAt": stamp(over - timedelta(seconds=80)),
        "finishedAt": stamp(over),
    }
    running = {"running": {"startedAt": stamp(over)}}
    the_kubelet_says(
        served, pod, containerStatuses=[engine(pod, restartCount=1, state=running, lastState={"terminated": last})]
    )

    ready = served.until("llama", "StartupBudgetExceeded")
    assert "`startupBudgetSeconds` 60" in ready["message"]
    assert kstatus(served.get("llama")) == "Failed"


def test_missing_secret_of_a_volume_is_named_and_the_pod_starts_when_it_is_there(served: Deployments):
    endpoint = {"tls": {"secretName": "llama-tls"}}
    served.apply(failing(reporting(a_baked_model("llama", endpoint=endpoint)), "mount-failed"))
    pod = first_pod(served, "llama", has_container_status)

    served.api.create(f"/api/v1/namespaces/{served.namespace}/events", secret_not_found(pod, "llama-tls"))

    ready = served.until("llama", "ReferenceNotFound")
    assert ready["message"] == "secret 'llama-tls' does not exist in the namespace"
    assert kstatus(served.get("llama")) == "InProgress"

    serves(served, pod)
    served.until("llama", "Serving")


def secret_not_found(pod: Manifest, name: str) -> Manifest:
    metadata = pod["metadata"]
    now = stamp(datetime.now(UTC))
    return {
        "metadata": {"generateName": "kubelet-", "namespace": metadata["namespace"]},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", **{k: metadata[k] for k in ("name", "namespace", "uid")}},
        "type": "Warning",
        "reason": "FailedMount",
        "message": f'MountVolume.SetUp failed for volume "tls" : secret "{name}" not found',
        "source": {"component": "kubelet"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def serves(deployments: Deployments, pod: Manifest) -> None:
    now = stamp(datetime.now(UTC))
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("Ready", "ContainersReady")]
    statuses = [engine(pod, ready=True, started=True, state={"running": {"startedAt": now}})]
    the_kubelet_says(deployments, pod, phase="Running", conditions=conditions, containerStatuses=statuses)


def test_missing_key_secret_is_named(served: Deployments):
    endpoint = {"apiKey": {"secretName": "llama-key"}}
    served.apply(failing(reporting(a_baked_model("llama", endpoint=endpoint)), "mount-failed"))
    pod = first_pod(served, "llama", has_container_status)

    state = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "llama-key" not found'}}
    the_kubelet_says(served, pod, containerStatuses=[engine(pod, state=state)])

    assert "llama-key" in served.until("llama", "ReferenceNotFound")["message"]


def the_checks_say(deployments: Deployments, pod: Manifest, state: Manifest) -> None:
    image = pod["spec"]["initContainers"][0]["image"]
    status = {"name": "check-accelerators", "image": image, "imageID": image, "ready": False, "restartCount": 4}
    the_kubelet_says(deployments, pod, initContainerStatuses=[{**status, **state}])


def ended_checks(code: int, **fields: Any) -> Manifest:
    now = stamp(datetime.now(UTC))
    document = {"verdict": "Pass", "seconds": 7.6, "driver": "580.159.04", "gpus": 1, "findings": [], "omitted": 0}
    message = json.dumps({**document, "hostToDeviceGBs": 54.1, "deviceToHostGBs": 54.9, **fields})
    return {"terminated": {"exitCode": code, "message": message, "startedAt": now, "finishedAt": now}}


def test_fault_of_a_gpu_is_named_with_its_node_until_the_checks_pass(served: Deployments):
    accelerator = {"preflight": {"policy": "Require"}}
    served.apply(failing(reporting(a_baked_model("llama", endpoint={}, accelerator=accelerator)), "mount-failed"))
    pod = first_pod(served, "llama", has_container_status)
    node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
    finding = {"level": "Fail", "reason": "RowRemapPending", "gpu": "GPU-8a9f", "message": "a row remap is pending"}
    failed = ended_checks(1, verdict="Fail", findings=[finding])

    back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}}
    the_checks_say(served, pod, {"state": back_off, "lastState": failed})

    message = served.until("llama", "RowRemapPending")["message"]
    assert all(part in message for part in ("GPU GPU-8a9f", f"kubectl cordon {node}", f"kubectl delete pod {name}"))
    assert served.condition("llama", "AcceleratorsHealthy")["status"] == "False"
    assert kstatus(served.get("llama")) == "Failed"

    the_checks_say(served, pod, {"state": ended_checks(0)})
    served.until("llama", "AcceleratorsChecked", "AcceleratorsHealthy")
    (shown,) = served.get("llama")["status"]["accelerators"]
    assert (shown["pod"], shown["node"], shown["hostGBs"], shown["verdict"]) == (name, node, 54, "Pass")

    with node_condition(served.api, node, "XIDErrors"):
        assert f"'{node}'" in served.until("llama", "NodeReportsFault", "AcceleratorsHealthy")["message"]
    served.until("llama", "AcceleratorsChecked", "AcceleratorsHealthy")


@contextmanager
def node_condition(api: Api, name: str, kind: str) -> Iterator[None]:
    """The node with a condition of its node problem detector, which is True."""
    path = f"/api/v1/nodes/{name}/status"
    conditions = [condition for condition in api.get(path)["status"]["conditions"] if condition["type"] != kind]
    api.merge(path, {"status": {"conditions": [*conditions, {"type": kind, "status": "True", "reason": kind}]}})
    try:
        yield
    finally:
        api.merge(path, {"status": {"conditions": conditions}})


# ---------------------------------------------------------------------- what passes by itself


def test_claim_that_appears_lets_the_pod_start(served: Deployments):
    claim = {"persistentVolumeClaim": {"claimName": "staged"}}
    served.apply(reporting(a_baked_model("llama", endpoint={}, weights=claim)))
    served.until("llama", "ReferenceNotFound")

    volume = f"staged-{served.namespace}"
    spec = {**UNBOUND_CLAIM["spec"], "volumeName": volume}
    served.kubectl.within(served.namespace).apply(
        a_volume(volume, served.namespace), {**UNBOUND_CLAIM, "metadata": {"name": "staged"}, "spec": spec}
    )

    served.until("llama", "Serving")
    served.kubectl("delete", "pv", volume, "--wait=false")


def a_volume(name: str, namespace: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace, "name": "staged"},
            "csi": {
                "driver": "nfs.csi.k8s.io",
                "volumeHandle": name,
                "volumeAttributes": {"server": "s", "share": "/"},
            },
        },
    }


def test_node_that_joins_lets_the_pod_start(served: Deployments, api: Api):
    served.apply(reporting(a_baked_model("llama", endpoint={}, accelerator={"count": 2})))
    served.until("llama", "Unschedulable")

    names = add_nodes(api, Pool("pair", "Standard_NC48ads_A100_v4"))
    try:
        served.until("llama", "Serving")
    finally:
        remove_nodes(api, names)
