"""From a Fail to a closed gate: when the first Binding is refused, and when the last waiting pod is removed."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.cluster import wait
from testbed.errors import ApiError
from tests.controlplane.deployments import Deployments
from tests.controlplane.sealed_cluster import GPU_NODES, SealedCluster, a_finding, sealed_cluster
from tests.scenarios import a_baked_model

MODELS = 20
ROUNDS = 5
TIMEOUT = 180.0
POLL_SECONDS = 0.02
POLICY = "hermetic-binding-gate"
NO_POD = "00000000-0000-0000-0000-000000000000"

Figures = dict[str, Any]


def measure() -> Figures:
    """Each round: one model uses every node, and a pod of each of the other models waits for one when the gate closes.

    The cluster has all admission policies, and attestations are signed and verified. A Binding of no pod is tried again
    and again: it is refused by the policy, or, while the gate is open, because the pod is another.
    """
    minimum = {"minimumEnforcement": "Enforce"}
    with (
        tempfile.TemporaryDirectory(prefix="hermetic-bench-") as folder,
        sealed_cluster(Path(folder), {}, isolation=minimum) as cluster,
    ):
        cluster.open_gate()
        namespace = cluster.namespace()
        namespace.apply(a_baked_model("filler", endpoint={}, drainSeconds=5, replicas=GPU_NODES))
        namespace.until("filler", "Serving", timeout=TIMEOUT)
        namespace.apply(*(a_baked_model(name, endpoint={}, drainSeconds=5) for name in _names()))
        return {"rounds": [_close(cluster, namespace) for _ in range(ROUNDS)]}


def _names() -> list[str]:
    return [f"model-{number:02}" for number in range(MODELS)]


def _close(cluster: SealedCluster, namespace: Deployments) -> Figures:
    cluster.open_gate()
    wait("a waiting pod of every model", lambda: len(_waiting(namespace)) == MODELS, TIMEOUT)
    pod = _waiting(namespace)[0]
    wait("the gate to admit Bindings", lambda: not _is_refused(cluster, namespace, pod), TIMEOUT)
    began = time.monotonic()
    cluster.attest(a_finding("Fail", "natgw-inventory"), says={"verdict": "Fail"})
    moments: dict[str, float] = {}

    def is_closed() -> bool:
        if "refused" not in moments and _is_refused(cluster, namespace, pod):
            moments["refused"] = time.monotonic() - began
        if "removed" not in moments and not _waiting(namespace):
            moments["removed"] = time.monotonic() - began
        return len(moments) == 2

    wait("the gate to close", is_closed, TIMEOUT, every=POLL_SECONDS)
    return {
        "seconds_to_first_refused_binding": round(moments["refused"], 2),
        "seconds_to_last_pod_removed": round(moments["removed"], 2),
    }


def _waiting(namespace: Deployments) -> list[str]:
    """Names of the pods that have no node and are not being deleted."""
    pods = namespace.api.get(f"/api/v1/namespaces/{namespace.namespace}/pods")["items"]
    return [
        pod["metadata"]["name"]
        for pod in pods
        if "nodeName" not in pod["spec"] and "deletionTimestamp" not in pod["metadata"]
    ]


def _is_refused(cluster: SealedCluster, namespace: Deployments, pod: str) -> bool:
    target = {"apiVersion": "v1", "kind": "Node", "name": cluster.nodes[0]}
    manifest = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "uid": NO_POD}, "target": target}
    try:
        cluster.api.create(f"/api/v1/namespaces/{namespace.namespace}/pods/{pod}/binding", manifest)
    except ApiError as error:
        return POLICY in str(error)
    return False
