"""Requests lost while a canary is promoted by edits of weights, through one Gateway on the real node.

The Gateway is the real Envoy behind a stand-in for a controller, the engines are the stand-in. A part of the requests
is streamed. The control ends the pods of the member that serves everything at once, so that the measurement is known to
see losses.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from testbed.api import Api
from testbed.demo.estate import Estate, overlay
from testbed.gateway.on_node import ALLOWED, NAME, node_gateway
from testbed.gateway.on_node import NAMESPACE as GATEWAYS
from testbed.gateway.traffic import Traffic, answered_by, weigh
from testbed.installation import REPOSITORY, wait_for
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode, running_node

NAMESPACE, GROUP = "inference", "chat"
SERVED = "meta/llama-3.1-8b-instruct"
STEPS = tuple({"canary": weight, "stable": 100 - weight} for weight in (10, 50, 100))
RATE, SECONDS = 100, 305
CONTROL_SECONDS = 20
SMALL = {"cpu": "100m", "memory": "512Mi", "sharedMemory": "64Mi", "scratch": "256Mi"}


def measure() -> dict[str, Any]:
    """A promotion 0, 10, 50, 100 % under a load of 100 requests a second, then the control."""
    with tempfile.TemporaryDirectory(prefix="hermetic-bench-") as folder:
        estate = Estate.prepare(Path(folder))
        with running_node("--images", str(estate.archive), "--gpus", "4") as node:
            return measured(node, estate, Path(folder), RATE, SECONDS)


def measured(node: RunningNode, estate: Estate, folder: Path, rate: int, seconds: float) -> dict[str, Any]:
    """The same on a node without an operator, with a load of another size."""
    with node_gateway(node, folder):
        install(node.kubectl, estate, folder)
        url = _serve(node, estate)
        promoted = _promoted(node, url, rate, seconds)
        control = _control(node, url, rate)
        return {"promoted": promoted, "control": control, "rate": rate, "seconds": seconds}


def install(kubectl: Kubectl, estate: Estate, folder: Path) -> None:
    """The operator, with the Gateway allowed."""
    lowered: dict[str, Any] = {"isolation": {"minimumEnforcement": "Report"}, "gateways": ALLOWED}
    kubectl("create", "namespace", NAMESPACE)
    kubectl("apply", "--server-side", "--kustomize", str(overlay(estate, folder / "install", **lowered)))
    kubectl("apply", "--server-side", "--kustomize", str(REPOSITORY / "manifests" / "gateways"))
    kubectl("--namespace", "hermetic-system", "rollout", "status", "deployment/hermetic-operator", "--timeout=120s")


def _serve(node: RunningNode, estate: Estate) -> str:
    api = Api(node.kubeconfig)
    for name, weight in (("stable", 100), ("canary", 0)):
        gateway = {"name": NAME, "namespace": GATEWAYS, "group": GROUP, "weight": weight}
        manifest = estate.sample("baked-image", resources=SMALL, isolation={"enforcement": "Report"})
        manifest["spec"] |= {"model": {"name": SERVED}, "endpoint": {"gateway": gateway}, "replicas": 1}
        manifest["metadata"]["name"] = name
        node.kubectl.apply(manifest)
    for name in ("stable", "canary"):
        wait_for(f"Ready of {name}", partial(_is_ready, api, name), timeout=180)
    url = str(_live(api, "stable")["status"]["endpoint"]["url"])

    def answers() -> bool:
        return node.from_client("curl", "-sf", "--max-time", "2", f"{url}/models").returncode == 0

    wait_for("an answer through the Gateway", answers, timeout=60)
    return url


def _promoted(node: RunningNode, url: str, rate: int, seconds: float) -> dict[str, Any]:
    """The edits are spread over the load, which is what clients see of a promotion that takes an afternoon."""
    kubectl, traffic = node.kubectl.within(NAMESPACE), Traffic(node, url, SERVED, seconds=seconds, rate=rate)
    for weights in STEPS:
        time.sleep(seconds / (len(STEPS) + 1))
        weigh(kubectl, weights)
    report = traffic.report()
    return {**report, "answeredBy": {name: answered_by(node, kubectl, name) for name in STEPS[0]}}


def _control(node: RunningNode, url: str, rate: int) -> dict[str, Any]:
    traffic = Traffic(node, url, SERVED, seconds=CONTROL_SECONDS, rate=rate)
    time.sleep(CONTROL_SECONDS / 4)
    chosen = "--selector=hermetic.dev/modeldeployment=canary"
    node.kubectl("--namespace", NAMESPACE, "delete", "pods", chosen, "--force", "--grace-period=0")
    return traffic.report()


def _is_ready(api: Api, name: str) -> bool:
    conditions = {c["type"]: c for c in _live(api, name).get("status", {}).get("conditions", [])}
    return all(conditions.get(kind, {}).get("status") == "True" for kind in ("Ready", "EndpointPrivate"))


def _live(api: Api, name: str) -> dict[str, Any]:
    return api.get(f"/apis/hermetic.dev/v1alpha1/namespaces/{NAMESPACE}/modeldeployments/{name}")
