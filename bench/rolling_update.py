"""Requests lost while a served model is rolled over, on the real node: with Hermetic's drain, and without it.

The engine is the stand-in, which drains as vLLM does. The control is the same pods without the pause before SIGTERM and
without a shutdown timeout, so that the measurement is known to see losses.
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.objects.children import render
from hermetic.objects.names import Owner
from testbed.api import Api
from testbed.demo.estate import Estate, overlay, stage_weights
from testbed.gateway.traffic import until_it_answers
from testbed.installation import REPOSITORY, wait_for
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode, running_node

NAMESPACE = "inference"
NAME = "llama-3-1-8b"
SERVED = "meta/llama-3.1-8b-instruct"
LOAD_SECONDS = 75
RATE = 70
SMALL = {"cpu": "100m", "memory": "512Mi", "sharedMemory": "64Mi", "scratch": "256Mi"}


def measure() -> dict[str, Any]:
    """Three rolling updates of two replicas: ours, ours with kept-alive connections, and the control."""
    with tempfile.TemporaryDirectory(prefix="hermetic-bench-") as folder:
        estate, shares = Estate.prepare(Path(folder)), Path(folder) / "shares"
        stage_weights(shares)
        options = ("--images", str(estate.archive), "--shares", str(shares), "--gpus", "4")
        with running_node(*options) as node:
            return _measured(node, estate, Path(folder))


def _measured(node: RunningNode, estate: Estate, folder: Path) -> dict[str, Any]:
    kubectl, api = node.kubectl, Api(node.kubeconfig)
    install_operator(node, estate, folder)
    manifest = sample(estate)
    kubectl.apply(manifest)
    url = served(api)
    ours = update_under_load(node, url, lambda: _set_length(kubectl, 4096), lambda: is_ready(api))
    keep_alive = update_under_load(node, url, lambda: _set_length(kubectl, 2048), lambda: is_ready(api), "--keep-alive")
    kubectl("--namespace", NAMESPACE, "delete", "mdep", NAME, "--wait=true")
    wait_for("the end of the pods", lambda: not _pods(kubectl), timeout=180)
    # A volume without a ModelDeployment is one that the operator removes.
    kubectl("--namespace", "hermetic-system", "scale", "deployment/hermetic-operator", "--replicas=0")
    control = _control(node, kubectl, manifest)
    return {"drained": ours, "drainedKeepAlive": keep_alive, "control": control, "loadSeconds": LOAD_SECONDS}


def install_operator(node: RunningNode, estate: Estate, folder: Path) -> None:
    """The operator on the node, and a namespace for models that need no evidence of isolation."""
    kubectl = node.kubectl
    kubectl("create", "namespace", NAMESPACE)
    kubectl(
        "apply",
        "--server-side",
        "--kustomize",
        str(overlay(estate, folder / "install", isolation={"minimumEnforcement": "Report"})),
    )
    kubectl("--namespace", "hermetic-system", "rollout", "status", "deployment/hermetic-operator", "--timeout=120s")


def sample(estate: Estate) -> dict[str, Any]:
    """Two replicas of the sample on a share, small enough for this machine."""
    return estate.sample("vllm-azure-files", resources=SMALL, drainSeconds=20, isolation={"enforcement": "Report"})


def _control(node: RunningNode, kubectl: Kubectl, manifest: dict[str, Any]) -> dict[str, Any]:
    """The same objects as a user without an operator would apply them, and none of our drain."""
    spec = ModelDeploymentSpec.model_validate(manifest["spec"])
    owner = Owner(NAMESPACE, NAME, "00000000-0000-0000-0000-000000000000")
    objects = [_without_drain(copy.deepcopy(dict(manifest))) for manifest in render(owner, spec)]
    kubectl.apply(*objects)
    rollout = ("--namespace", NAMESPACE, "rollout", "status", f"deployment/{NAME}", "--timeout=55s")
    kubectl(*rollout)
    url = f"http://{manifest['spec']['endpoint']['internalLoadBalancer']['address']}:8000/v1"
    until_it_answers(node, url)

    def roll() -> None:
        kubectl("--namespace", NAMESPACE, "set", "env", f"deployment/{NAME}", "ROLLED=1")

    def done() -> bool:
        return bool("successfully" in kubectl(*rollout))

    return update_under_load(node, url, roll, done)


def _without_drain(manifest: dict[str, Any]) -> dict[str, Any]:
    manifest["metadata"].pop("ownerReferences", None)
    if manifest["kind"] != "Deployment":
        return manifest
    pod = manifest["spec"]["template"]["spec"]
    engine = pod["containers"][0]
    del engine["lifecycle"]
    flag = engine["args"].index("--shutdown-timeout")
    engine["args"][flag + 1] = "0"
    return manifest


def update_under_load(
    node: RunningNode,
    url: str,
    roll: Callable[[], None],
    done: Callable[[], bool],
    *options: str,
    model: str = SERVED,
    seconds: int = LOAD_SECONDS,
) -> dict[str, Any]:
    """Load for a model from start to end of a rolling update, and what became of it."""
    until_it_answers(node, url)
    report: dict[str, Any] = {}
    load = (sys.executable, str(REPOSITORY / "testbed" / "load.py"), url, "--model", model, "--rate", str(RATE))

    def send() -> None:
        sent = node.from_client(*load, "--seconds", str(seconds), *options, timeout=seconds + 90)
        report.update(json.loads(sent.stdout))

    sender = threading.Thread(target=send)
    sender.start()
    began = time.monotonic()
    roll()
    wait_for("the end of the rolling update", done, timeout=240)
    report["rolledInSeconds"] = round(time.monotonic() - began, 1)
    sender.join()
    return report


def served(api: Api) -> str:
    """The URL of the model, once it is ready."""
    wait_for("Ready", lambda: is_ready(api), timeout=180)
    return str(_live(api)["status"]["endpoint"]["url"])


def is_ready(api: Api) -> bool:
    """Whether the model is ready with its present spec."""
    live = _live(api)
    conditions = {c["type"]: c for c in live.get("status", {}).get("conditions", [])}
    ready, generation = conditions.get("Ready", {}), live["metadata"]["generation"]
    return bool(ready.get("status") == "True" and ready.get("observedGeneration") == generation)


def _live(api: Api) -> dict[str, Any]:
    return api.get(f"/apis/hermetic.dev/v1alpha1/namespaces/{NAMESPACE}/modeldeployments/{NAME}")


def _set_length(kubectl: Kubectl, length: int) -> None:
    patch = {"spec": {"engine": {"vllm": {"maxModelLength": length}}}}
    kubectl("--namespace", NAMESPACE, "patch", "mdep", NAME, "--type=merge", "-p", json.dumps(patch))


def _pods(kubectl: Kubectl) -> list[Any]:
    return list(kubectl.json("--namespace", NAMESPACE, "get", "pods")["items"])
