"""`hermetic bench` as a tenant with the ClusterRole `edit`, where `restricted` is enforced, with all policies.

Here the API server admits or refuses what the command creates, the Job's controller makes the pod, and the scheduler
binds it to the node of the model. No kubelet runs: the test writes the end of the container into the pod's status.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from tests.commandline import Ran, hermetic_process
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.test_tenant_rights import a_tenant
from tests.scenarios import Manifest, a_baked_model, reporting

LABEL = "hermetic.dev/benchmark"
FIGURES = {
    "completed": 64,
    "duration": 10.0,
    "total_output_tokens": 8192,
    "request_throughput": 6.4,
    "output_throughput": 819.2,
    "median_ttft_ms": 210.0,
    "p99_ttft_ms": 400.0,
    "median_itl_ms": 20.0,
    "p99_itl_ms": 35.0,
}


@pytest.fixture
def model(
    hermetic: OperatorProcess,
    api: Api,
    kubectl: Kubectl,
    gpu_nodes: None,  # noqa: ARG001
) -> Iterator[Deployments]:
    """The model 'phi', which serves in a namespace of its own and admits the pod of a benchmark."""
    with module_namespace(api, "bench", **{"pod-security.kubernetes.io/enforce": "restricted"}) as namespace:
        deployments = Deployments(api, kubectl, namespace, hermetic)
        admitted = {"allowedClients": [{"podSelector": {"matchLabels": {LABEL: "phi"}}}]}
        deployments.apply(reporting(a_baked_model("phi", endpoint=admitted)))
        deployments.until("phi", "Serving")
        yield deployments


def ended(api: Api, namespace: str) -> Manifest | None:
    """The pod of the benchmark once it is bound to a node, with the end of its container in its status."""
    pods: list[Manifest] = api.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"{LABEL}=phi")["items"]
    bound = next((pod for pod in pods if pod["spec"].get("nodeName")), None)
    if bound is None:
        return None
    message = json.dumps({"seconds": 12.0, "figures": FIGURES})
    now = bound["metadata"]["creationTimestamp"]
    terminated = {"exitCode": 0, "reason": "Completed", "message": message, "startedAt": now, "finishedAt": now}
    container = {"name": "benchmark", "image": "x", "imageID": "x", "ready": False, "restartCount": 0}
    status = {"phase": "Succeeded", "containerStatuses": [{**container, "state": {"terminated": terminated}}]}
    api.merge(f"/api/v1/namespaces/{namespace}/pods/{bound['metadata']['name']}/status", {"status": status})
    return bound


def may_list(tenant: Api, collection: str) -> bool:
    try:
        tenant.get(collection)
    except ApiError as error:
        if error.status != 403:
            raise
        return False
    return True


def test_a_tenant_benchmarks_a_model_with_the_rights_of_edit(
    model: Deployments, api: Api, cluster: Path, tmp_path: Path
) -> None:
    namespace, kubeconfig = model.namespace, tmp_path / "kubeconfig"
    tenant = a_tenant(api, cluster, namespace, kubeconfig)
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    wait_for("the rights of the tenant", lambda: may_list(tenant, jobs))

    def bench() -> Ran:
        return hermetic_process("bench", "phi", "-n", namespace, "-o", "json", "--kubeconfig", kubeconfig)

    results: list[Ran] = []
    running = threading.Thread(target=lambda: results.append(bench()))
    running.start()
    pod = wait_for("the pod of the benchmark", lambda: ended(api, namespace) or (not running.is_alive() and results))
    running.join(timeout=60)
    (ran,) = results
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["figures"]["outputTokensPerSecond"] == FIGURES["output_throughput"]

    (serving,) = model.pods("phi")
    assert pod["spec"]["nodeName"] == serving["spec"]["nodeName"], "the image of the engine is on that node"
    shown = hermetic_process("status", "phi", "-n", namespace, "-o", "json", "--kubeconfig", kubeconfig)
    (report,) = json.loads(shown.out)["deployments"]
    assert report["benchmark"]["figures"]["ttftP99Ms"] == FIGURES["p99_ttft_ms"]
    model.until("phi", "Serving")

    policies = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    for collection in (jobs, policies):
        wait_for(
            f"nothing is left of the run in {collection}",
            lambda collection=collection: not api.get(collection, labelSelector=f"{LABEL}=phi")["items"],
        )
