"""How often an autoscaled model changes direction over a trace of 20 minutes, and what is lost when it shrinks.

The trace is run with the real HorizontalPodAutoscaler controller, the operator and simulated nodes, and with every time
divided by CLOCK, or with none divided: the trace, the controller's period, and the windows of the autoscaler. The queue
comes from the trace: what a model with that many replicas would have to queue. The loss is measured on the real node.
"""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.rolling_update import NAME, NAMESPACE, install_operator, is_ready, sample, served, update_under_load
from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.custom_metrics import MetricsAdapter
from testbed.demo.estate import Estate, stage_weights
from testbed.fleet import Pool, add_nodes
from testbed.installation import CONFIGURATION, OperatorProcess, install, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.node.handle import running_node
from testbed.programs import programs

CLOCK = 15
"""The controller looks every 15 seconds, and can look every second."""
REAL_TIME = 1
REQUESTS_AT_ONCE = (4, 6, 14, 22, 27, 24, 12, 6, 5, 5, 6, 11, 20, 26, 25, 18, 9, 6, 5, 4)
"""The trace: requests that clients have open, minute by minute. Two peaks, and a lull between them."""
QUIET = 4
"""Requests at once after the trace."""
ONE_REPLICA = 8
"""Requests that a replica computes at once; the others wait."""
BOUNDS = {"minReplicas": 1, "maxReplicas": 5, "queuedRequests": 5}
METRIC = "vllm:num_requests_waiting"
SAMPLE_SECONDS = 3.75
"""Of the trace: four samples in the period of the controller."""
MOST_MINUTES = 90
MODELS = f"/apis/hermetic.dev/v1alpha1/namespaces/{NAMESPACE}/modeldeployments"


def measure() -> dict[str, Any]:
    """The trace with Hermetic's autoscaler and with Kubernetes' default behaviour, and a model that shrinks."""
    programs("kubernetes")
    return {
        "clock": CLOCK,
        "traceMinutes": len(REQUESTS_AT_ONCE),
        "ours": _traced("ours", CLOCK),
        "default": _traced("default", CLOCK),
        "down": _shrunk(),
    }


def measure_in_real_time() -> dict[str, Any]:
    """The trace with Hermetic's autoscaler and no time divided: 40 minutes."""
    programs("kubernetes")
    return {"clock": REAL_TIME, "traceMinutes": len(REQUESTS_AT_ONCE), "ours": _traced("ours", REAL_TIME)}


def reversals(replicas: Sequence[int]) -> int:
    """How often the number grew again after it had fallen."""
    steps = [after - before for before, after in pairwise(replicas) if after != before]
    return sum(before < 0 < after for before, after in pairwise(steps))


# ---------------------------------------------------------------- the trace, on simulated nodes


def _traced(kind: str, clock: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hermetic-bench-") as folder, _cluster(Path(folder), kind, clock) as api:
        api.create(MODELS, _model())
        wait_for("a first pod", lambda: _running(api) == 1, timeout=60)
        with MetricsAdapter(api, Path(folder), METRIC) as adapter:
            return _watched(api, adapter, clock)


@contextlib.contextmanager
def _cluster(folder: Path, kind: str, clock: int) -> Iterator[Api]:
    often = (f"--horizontal-pod-autoscaler-sync-period={15 // clock}s",)
    with ControlPlane(Settings(extra_controller_manager_args=often)) as plane:
        api = Api(plane.kubeconfig)
        install(Kubectl(plane.kubectl, plane.kubeconfig))
        api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        add_nodes(api, Pool("gpu"), BOUNDS["maxReplicas"])
        account = operator_kubeconfig(api, plane.kubeconfig, folder / "operator.kubeconfig")
        module = ("bench.faster_autoscaler", str(clock), kind)
        operator = OperatorProcess(folder, account, CONFIGURATION, module=module)
        operator.start()
        try:
            yield api
        finally:
            operator.stop()


def _model() -> dict[str, Any]:
    image = "contoso.azurecr.io/models/phi-4-vllm@sha256:" + "3f1c" * 16
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "model": {"name": "phi-4"},
            "engine": {"vllm": {"image": image, "version": "0.32.0"}},
            "weights": {"bakedImage": {"path": "/models/phi-4"}},
            "isolation": {"enforcement": "Report"},
            "autoscaling": BOUNDS,
            "drainSeconds": 0,
        },
    }


def _watched(api: Api, adapter: MetricsAdapter, clock: int) -> dict[str, Any]:
    """The number of replicas over the trace and after it, until it is at its least again."""
    began, counts = time.monotonic(), [1]
    while (minute := (time.monotonic() - began) * clock / 60) < MOST_MINUTES:
        adapter.value = _queued(minute, max(1, _running(api)))
        counts.append(int(api.get(f"{MODELS}/{NAME}")["spec"]["replicas"]))
        if minute > len(REQUESTS_AT_ONCE) and counts[-1] == BOUNDS["minReplicas"]:
            break
        time.sleep(SAMPLE_SECONDS / clock)
    return {"most": max(counts), "least": counts[-1], "reversals": reversals(counts), "minutes": round(minute, 1)}


def _queued(minute: float, pods: int) -> int:
    """Requests that wait for each pod."""
    at_once = REQUESTS_AT_ONCE[int(minute)] if minute < len(REQUESTS_AT_ONCE) else QUIET
    return math.ceil(max(0, at_once - ONE_REPLICA * pods) / pods)


def _running(api: Api) -> int:
    pods = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    return sum((pod.get("status") or {}).get("phase") == "Running" for pod in pods)


# ---------------------------------------------------------------- the way down, on the real node


def _shrunk() -> dict[str, Any]:
    """Requests lost while a model goes from three replicas to one."""
    with tempfile.TemporaryDirectory(prefix="hermetic-bench-") as folder:
        estate, shares = Estate.prepare(Path(folder)), Path(folder) / "shares"
        stage_weights(shares)
        with running_node("--images", str(estate.archive), "--shares", str(shares), "--gpus", "4") as node:
            install_operator(node, estate, Path(folder))
            api, manifest = Api(node.kubeconfig), sample(estate)
            manifest["spec"]["replicas"] = 3
            node.kubectl.apply(manifest)
            url = served(api)
            patch = json.dumps({"spec": {"replicas": 1}})

            def shrink() -> None:
                node.kubectl("--namespace", NAMESPACE, "patch", "mdep", NAME, "--type=merge", "-p", patch)

            def is_small() -> bool:
                return is_ready(api) and len(node.kubectl.json("--namespace", NAMESPACE, "get", "pods")["items"]) == 1

            return update_under_load(node, url, shrink, is_small)
