"""The registry that AKS makes for itself in the node resource group: the default of an isolated cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hermetic.audit.estate.questions import Answer, Problem, Question, UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from tests.audit_estates import CLUSTER, NODE_GROUP
from tests.audit_services import REGISTRY, REGISTRY_ENDPOINT, FakeServices, add_endpoint, served_cluster

MANAGED = f"{NODE_GROUP}/providers/Microsoft.ContainerRegistry/registries/aksmanaged"
CONTROL_PLANE = "99999999-0000-0000-0000-000000000000"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"


def _managed(**switches: Any) -> FakeServices:
    """As network-isolated.md and managed-identity-overview.md of azure-aks-docs have it."""
    azure = served_cluster()
    properties = {**azure.properties(REGISTRY), "loginServer": "aksmanaged.azurecr.io", **switches}
    azure.put(MANAGED, properties, location="westeurope")
    azure.put(
        f"{MANAGED}/cacheRules/aks-managed-mcr",
        {"sourceRepository": "mcr.microsoft.com/*", "targetRepository": "aks-managed-repository/*"},
    )
    for arm_id in [body_id for body_id in azure.bodies if body_id.startswith(REGISTRY.lower())]:
        del azure.bodies[arm_id]
    add_endpoint(azure, REGISTRY_ENDPOINT, MANAGED)
    azure.change(CLUSTER, bootstrapProfile={"artifactSource": "Cache", "containerRegistryId": MANAGED})
    azure.bodies[CLUSTER.lower()]["identity"] = {"type": "SystemAssigned", "principalId": CONTROL_PLANE}
    role = f"{MANAGED}/providers/Microsoft.Authorization/roleAssignments/aks"
    definition = f"/providers/Microsoft.Authorization/roleDefinitions/{CONTRIBUTOR}"
    azure.put(role, {"principalId": CONTROL_PLANE, "roleDefinitionId": definition, "scope": NODE_GROUP})
    return azure


EXPORTS = {"policies": {"exportPolicy": {"status": "enabled"}}}


@pytest.mark.parametrize("switches", [{}, EXPORTS, {"policies": None}])
def test_the_source_of_artifacts_passes(switches: dict[str, Any]) -> None:
    finding = _managed(**switches).findings("aks-artifact-source")[CLUSTER.lower()]
    assert finding.verdict is Verdict.PASS


def test_the_control_planes_role_on_the_node_group_is_information() -> None:
    assert _managed().findings("acr-push-identity")[MANAGED.lower()].verdict is Verdict.PASS


@pytest.mark.parametrize("expected", ["AzureServices", None])
def test_the_bypass_is_a_warning_with_a_remedy_that_leaves_the_registry_alone(expected: str | None) -> None:
    finding = _managed(networkRuleBypassOptions=expected).findings("acr-trusted-bypass")[MANAGED.lower()]
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.MEDIUM)
    assert "az acr update" not in finding.remedy
    assert "the bypass must be off" in finding.remedy


def test_the_bypass_of_a_registry_with_images_of_the_team_decides() -> None:
    azure = _managed(networkRuleBypassOptions="AzureServices")
    azure.sources = ("azure", "kube")
    pod = {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"image": "aksmanaged.azurecr.io/m:1"}]},
    }
    azure.objects["v1/pods"] = [pod]
    finding = azure.findings("acr-trusted-bypass")[MANAGED.lower()]
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)


def test_export_is_a_warning_with_a_remedy_that_leaves_the_registry_alone() -> None:
    finding = _managed(**EXPORTS).findings("acr-export-policy")[MANAGED.lower()]
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.MEDIUM)
    assert "az acr update" not in finding.remedy
    assert "az resource update" not in finding.remedy
    assert "bootstrap-container-registry-resource-id" in finding.remedy


def test_a_public_one_does_not_pass() -> None:
    azure = _managed(publicNetworkAccess="Enabled")
    assert azure.findings("aks-artifact-source")[CLUSTER.lower()].verdict is Verdict.UNKNOWN
    assert azure.findings("acr-public")[MANAGED.lower()].verdict is Verdict.FAIL


def _running(azure: FakeServices, image: str) -> FakeServices:
    azure.sources = ("azure", "kube")
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [{"image": image}]}}
    azure.objects["v1/pods"] = [pod]
    return azure


@pytest.mark.parametrize(
    ("image", "severity"),
    [
        ("aksmanaged.azurecr.io/aks-managed-repository/oss/kubernetes/pause:3.10", Severity.MEDIUM),
        ("aksmanaged.azurecr.io/llama/weights:1", Severity.HIGH),
        ("AKSMANAGED.azurecr.io/aks-managed-repository-2/weights:1", Severity.HIGH),
    ],
)
def test_with_images_of_workloads_in_it_export_decides(image: str, severity: Severity) -> None:
    finding = _running(_managed(**EXPORTS), image).findings("acr-export-policy")[MANAGED.lower()]
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, severity)


def test_with_pods_that_were_not_all_seen_export_decides() -> None:
    azure = _running(_managed(**EXPORTS), "aksmanaged.azurecr.io/aks-managed-repository/oss/kubernetes/pause:3.10")
    inner = azure.answer

    def cut(question: Question) -> Answer:
        answer = inner(question)
        problem = Problem(UnreadReason.TRUNCATED, "the second page never came") if question.kind == "v1/pods" else None
        return replace(answer, problem=answer.problem or problem)

    azure.answer = cut  # type: ignore[method-assign]
    finding = azure.findings("acr-export-policy")[MANAGED.lower()]
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)


def test_another_registry_in_the_node_group_is_not_aks_s() -> None:
    other = MANAGED.replace("aksmanaged", "weights")
    azure = _managed()
    azure.put(other, {**azure.properties(MANAGED), **EXPORTS}, location="westeurope")
    add_endpoint(azure, f"{REGISTRY_ENDPOINT}-2", other)
    finding = azure.findings("acr-export-policy")[other.lower()]
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)


def test_a_registry_of_our_own_keeps_the_severity() -> None:
    azure = served_cluster().change(REGISTRY, **EXPORTS)
    assert azure.findings("acr-export-policy")[REGISTRY.lower()].severity is Severity.HIGH  # type: ignore[attr-defined]
