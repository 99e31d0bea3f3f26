"""Priority class, node labels, CPU limit and Service port of a model, written through the operator's account.

The admission policies of that account hold here: a field that one of them refused would leave the model without pods.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.api import Api
from testbed.fleet import Pool, add_nodes, remove_nodes
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments
from tests.controlplane.operator_fixtures import StartOperator
from tests.renderings import SHARES, scheduled
from tests.scenarios import changed, reporting

POOL = "kubernetes.azure.com/agentpool"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture
def priority_class(api: Api) -> Iterator[int]:
    """The PriorityClass 'models'; gives its value."""
    api.create(CLASSES, {"metadata": {"name": "models"}, "value": 1000, "globalDefault": False})
    yield 1000
    api.delete(f"{CLASSES}/models")


@pytest.fixture
def models(start_operator: StartOperator, api: Api, kubectl: Kubectl, namespace: str) -> Deployments:
    """This test's namespace, with an operator whose configuration allows the class and the pool."""
    operator = start_operator(
        shares=SHARES,
        priorityClasses=[{"name": "models", "namespaces": [namespace]}],
        nodeLabels=[{"key": POOL, "values": ["gpu"], "namespaces": [namespace]}],
    )
    return Deployments(api, kubectl, namespace, operator)


def test_a_scheduled_model_runs_as_its_spec_says(models: Deployments, api: Api, priority_class: int) -> None:
    names = add_nodes(api, Pool("gpu"))
    try:
        models.apply(reporting(scheduled()))
        workload = models.wait("the Deployment", lambda: models.workload("scheduled"))
        (pod,) = models.wait("its pod on a node", lambda: [
            pod for pod in models.pods("scheduled") if pod["spec"].get("nodeName")
        ])  # fmt: skip
    finally:
        remove_nodes(api, names)

    template = workload["spec"]["template"]["spec"]
    assert template["priorityClassName"] == "models"
    assert template["nodeSelector"] == {POOL: "gpu"}
    assert template["containers"][0]["resources"]["limits"]["cpu"] == "16"
    service = models.child("v1", "services", "scheduled")
    assert service is not None
    (port,) = service["spec"]["ports"]
    assert port["port"] == 443
    assert template["containers"][0]["ports"][0]["containerPort"] == 8443
    assert pod["spec"]["priority"] == priority_class
    assert pod["spec"]["nodeName"] in names


@pytest.mark.usefixtures("priority_class")
def test_a_model_whose_selector_excludes_every_node_names_the_labels(models: Deployments, api: Api) -> None:
    names = add_nodes(api, Pool("other"))
    try:
        models.apply(reporting(scheduled()))
        ready = models.until("scheduled", "Unschedulable")
    finally:
        remove_nodes(api, names)
    assert "with the labels of `scheduling.nodeSelector`, but " in ready["message"]
    assert f"pool 'other' lacks {POOL}: gpu" in ready["message"]


@pytest.mark.parametrize(
    "scheduling",
    [{"priorityClassName": "system-node-critical"}, {"priorityClassName": "others"}, {"nodeSelector": {POOL: "other"}}],
    ids=str,
)
def test_a_class_or_label_that_is_not_listed_gets_no_deployment(
    models: Deployments, scheduling: dict[str, object]
) -> None:
    models.apply(reporting(changed(scheduled(), scheduling=scheduling)))
    ready = models.until("scheduled", "SchedulingNotAllowed")
    assert ready["status"] == "False"
    assert models.workload("scheduled") is None
