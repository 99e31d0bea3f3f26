"""Priority classes and node labels: what a namespace may name, and that nothing is allowed that is not listed."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.api.spec_reasons import SpecReason
from hermetic.plan.allowed_scheduling import scheduling_is_allowed
from hermetic.plan.gate_results import Blocks
from hermetic.plan.gates import cpu_limit_holds_the_request, ephemeral_storage_limit_holds_the_folders
from tests.renderings import RENDERINGS, scheduled
from tests.scenarios import a_baked_model
from tests.snapshots import OWNER, a_snapshot, rendered, spec_of

CLASSES = [
    {"name": "models-high", "namespaces": [OWNER.namespace]},
    {"name": "batch", "namespaces": ["elsewhere"]},
    {"name": "system-node-critical", "namespaces": ["*"]},
]
LABELS = [
    {"key": "kubernetes.azure.com/agentpool", "values": ["gpu", "gpu2"], "namespaces": [OWNER.namespace]},
    {"key": "topology.kubernetes.io/zone", "namespaces": ["*"]},
]
POOL = "kubernetes.azure.com/agentpool"


def verdict(scheduling: dict[str, Any] | None, **lists: Any) -> Blocks | None:
    policy = Configuration.model_validate({"priorityClasses": CLASSES, "nodeLabels": LABELS, **lists})
    manifest = a_baked_model(**({"scheduling": scheduling} if scheduling is not None else {}))
    result = scheduling_is_allowed(spec_of(manifest), a_snapshot(policy=policy))
    return result if isinstance(result, Blocks) else None


@pytest.mark.parametrize(
    "scheduling",
    [
        None,
        {},
        {"priorityClassName": "models-high"},
        {"nodeSelector": {POOL: "gpu2"}},
        {"nodeSelector": {"topology.kubernetes.io/zone": "anything", POOL: "gpu"}},
    ],
)
def test_what_is_listed_may_be_named(scheduling: dict[str, Any] | None) -> None:
    assert verdict(scheduling) is None


@pytest.mark.parametrize(
    ("scheduling", "text"),
    [
        ({"priorityClassName": "model-high"}, "did you mean 'models-high'"),
        ({"priorityClassName": "batch"}, "choose one of models-high, or ask the platform team"),
        ({"priorityClassName": "system-node-critical"}, "a class of the system, which no model may have"),
        ({"nodeSelector": {POOL: "gpuu"}}, "did you mean 'gpu'"),
        ({"nodeSelector": {POOL: ""}}, f"'{POOL}: ' may not be selected"),
        ({"nodeSelector": {"kubernetes.azure.com/agentpol": "gpu"}}, f"did you mean '{POOL}'"),
        ({"nodeSelector": {POOL: "gpu", "team": "a"}}, "'team: a' may not be selected"),
    ],
)
def test_what_is_not_listed_is_refused_with_what_is(scheduling: dict[str, Any], text: str) -> None:
    block = verdict(scheduling)
    assert block is not None
    assert block.reason is SpecReason.SCHEDULING_NOT_ALLOWED
    assert text in block.message
    assert block.reason.needs_human


@pytest.mark.parametrize("scheduling", [{"priorityClassName": "models-high"}, {"nodeSelector": {POOL: "gpu"}}])
def test_without_a_list_nothing_is_allowed(scheduling: dict[str, Any]) -> None:
    block = verdict(scheduling, priorityClasses=[], nodeLabels=[])
    assert block is not None
    assert "ask the platform team to list it" in block.message
    assert "namespaces: [" in block.message


@pytest.mark.parametrize(
    ("resources", "holds"),
    [({}, True), ({"cpuLimit": "4"}, True), ({"cpu": "500m", "cpuLimit": 1}, True), ({"cpuLimit": "3999m"}, False)],
)
def test_a_cpu_limit_is_no_less_than_the_request(resources: dict[str, Any], holds: bool) -> None:
    result = cpu_limit_holds_the_request(spec_of(a_baked_model(resources=resources)), a_snapshot())
    assert (not isinstance(result, Blocks)) == holds
    if isinstance(result, Blocks):
        assert result.reason is SpecReason.CPU_LIMIT_TOO_LOW


@pytest.mark.parametrize(
    ("resources", "holds"),
    [
        ({}, True),
        ({"ephemeralStorageLimit": "23Gi"}, True),
        ({"ephemeralStorageLimit": "22Gi"}, False),
        ({"scratch": "500Mi", "ephemeralStorageLimit": "3572Mi"}, True),
        ({"scratch": "500Mi", "ephemeralStorageLimit": "3571Mi"}, False),
        ({"ephemeralStorageLimit": "1Mi"}, False),
    ],
)
def test_a_limit_of_the_disk_holds_every_folder_of_the_pod(resources: dict[str, Any], holds: bool) -> None:
    result = ephemeral_storage_limit_holds_the_folders(spec_of(a_baked_model(resources=resources)), a_snapshot())
    assert (not isinstance(result, Blocks)) == holds
    if isinstance(result, Blocks):
        assert result.reason is SpecReason.EPHEMERAL_STORAGE_LIMIT_TOO_LOW
        assert result.field == "spec.resources.ephemeralStorageLimit"


def test_every_container_has_the_limit_of_the_disk_and_none_asks_for_more_than_the_engine() -> None:
    """Without a request of its own, the API server would make the limit the request, and the pod would need it all."""
    limits = {"ephemeralStorageLimit": "40Gi", "scratch": "30Gi"}
    manifest = {**RENDERINGS["nim-profile"], "spec": {**RENDERINGS["nim-profile"]["spec"], "resources": limits}}
    pod = rendered(manifest)["Deployment"]["spec"]["template"]["spec"]
    for container in (*pod["containers"], *pod["initContainers"]):
        assert container["resources"]["limits"]["ephemeral-storage"] == "40Gi"
        assert container["resources"]["requests"]["ephemeral-storage"] == "30Gi"


def test_pods_have_what_is_asked_for_and_the_service_its_own_port() -> None:
    objects = rendered(scheduled())
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    containers = [*pod["containers"], *pod.get("initContainers", ())]
    assert {container["resources"]["limits"]["cpu"] for container in containers} == {"16"}
    assert (pod["priorityClassName"], pod["nodeSelector"]) == ("models", {POOL: "gpu"})
    [port] = objects["Service"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, 8443)
    [rule] = objects["NetworkPolicy"]["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8443}]


@pytest.mark.parametrize("name", sorted(RENDERINGS))
def test_who_asks_for_none_of_it_keeps_the_pods_that_run(name: str) -> None:
    pod = rendered(RENDERINGS[name])["Deployment"]["spec"]["template"]["spec"]
    assert not {"priorityClassName", "nodeSelector"} & pod.keys()
    limits = [
        container["resources"].get("limits", {}) for container in (*pod["containers"], *pod.get("initContainers", ()))
    ]
    assert not [limit for limit in limits if {"cpu", "ephemeral-storage"} & limit.keys()]
