"""One ModelDeployment from apply to delete on a real API server, with fake GPU nodes and a stand-in load balancer."""

from __future__ import annotations

from testbed.api import Api
from testbed.installation import OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from tests.scenarios import a_share_model, reporting

PATH = "/apis/hermetic.dev/v1alpha1/namespaces/{}/modeldeployments/{}"


def condition(api: Api, namespace: str, name: str, kind: str) -> dict[str, str]:
    conditions = api.get(PATH.format(namespace, name)).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def test_a_deployment_without_a_gpu_node_says_what_is_missing(
    operator: OperatorProcess, kubectl: Kubectl, api: Api, namespace: str
) -> None:
    kubectl.within(namespace).apply(reporting(a_share_model()))

    ready = wait_for(
        "Unschedulable",
        lambda: (ready := condition(api, namespace, "llama", "Ready")).get("reason") == "Unschedulable" and ready,
        operator,
    )
    assert "needs 1 nvidia.com/gpu on one node" in ready["message"]
