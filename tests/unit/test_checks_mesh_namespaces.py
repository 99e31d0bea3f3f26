"""Settings of a mesh count only where a control plane reads them.

Source: istio/istio, pilot/pkg/bootstrap/mesh.go: istiod reads the ConfigMap of its own namespace.
"""

from __future__ import annotations

import copy

import pytest

from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.result.run import evaluate
from testbed.kubernetes_plants.kinds import mesh_settings
from testbed.kubernetes_plants.pieces import closed_namespace, container, manifest, put
from tests.kubernetes_estates import POLICY, Manifest, estate, sealed_cluster

CLOSED = "outboundTrafficPolicy:\n  mode: REGISTRY_ONLY\n"
TRACED = f"{CLOSED}defaultConfig:\n  tracing: {{zipkin: {{address: out.example.com:9411}}}}\n"


def a_mesh(namespace: str, name: str = "istio") -> list[Manifest]:
    """A closed mesh in istio-system, and a ConfigMap with an address outside in this namespace."""
    manifests = copy.deepcopy(sealed_cluster())
    mesh_settings(manifests, CLOSED)
    put(manifests, manifest("v1", "ConfigMap", name, namespace, data={"mesh": TRACED}))
    return manifests


def failed(manifests: list[Manifest]) -> list[Finding]:
    findings = evaluate(estate(manifests), POLICY)
    return [finding for finding in findings if finding.check == "k8s-mesh-egress" and finding.verdict is Verdict.FAIL]


@pytest.mark.parametrize("name", ["istio", "istio-canary", "istio-shared-configmap-asm-1-30"])
def test_a_config_map_of_a_tenants_namespace_is_no_finding(name: str) -> None:
    assert failed(a_mesh("team-a", name)) == []


@pytest.mark.parametrize("namespace", ["istio-system", "aks-istio-system"])
def test_a_revision_in_the_namespace_of_the_control_plane_fails(namespace: str) -> None:
    findings = failed(a_mesh(namespace, "istio-asm-1-30"))
    assert [finding.resource for finding in findings] == [f"v1/ConfigMap {namespace}/istio-asm-1-30"]


@pytest.mark.parametrize("name", ["istiod", "istiod-canary"])
def test_a_control_plane_in_a_namespace_of_its_own_makes_its_settings_count(name: str) -> None:
    manifests = a_mesh("mesh")
    spec = {"replicas": 0, "template": {"spec": {"containers": [container(manifests)]}}}
    put(manifests, manifest("apps/v1", "Deployment", name, "mesh", spec=spec))
    assert [finding.resource for finding in failed(manifests)] == ["v1/ConfigMap mesh/istio"]


def test_a_deployment_of_another_name_makes_no_settings_count() -> None:
    manifests = a_mesh("planted")
    spec = {"replicas": 0, "template": {"spec": {"containers": [container(manifests)]}}}
    put(manifests, manifest("apps/v1", "Deployment", "istio-shop", closed_namespace(manifests), spec=spec))
    assert failed(manifests) == []


@pytest.mark.parametrize(
    ("host", "namespace", "expected"),
    [
        ("zipkin.aks-istio-system", "aks-istio-system", []),
        ("zipkin.istio-system", "istio-system", []),
        ("zipkin.aks-istio-system", "istio-system", ["MeshEgress"]),
        ("a.zipkin.aks-istio-system", "aks-istio-system", ["MeshEgress"]),
        ("aks-istio-system.example.com", "aks-istio-system", ["MeshEgress"]),
        ("zipkin.mesh", "mesh", ["MeshEgress"]),  # a top-level domain may have this name
        ("zipkin.xn--p1ai", "xn--p1ai", ["MeshEgress"]),
    ],
)
def test_the_tracing_address_that_aks_writes_is_inside_though_no_service_has_its_name(
    host: str, namespace: str, expected: list[str]
) -> None:
    """github.com/MicrosoftDocs/azure-docs/issues/123395 prints the ConfigMap; changes of it are reverted."""
    manifests = a_mesh("elsewhere")
    settings = f"{CLOSED}defaultConfig:\n  tracing: {{zipkin: {{address: '{host}:9411'}}}}\n"
    put(manifests, manifest("v1", "ConfigMap", "istio-asm-1-27", namespace, data={"mesh": settings}))
    spec = {"replicas": 0, "template": {"spec": {"containers": [container(manifests)]}}}
    put(manifests, manifest("apps/v1", "Deployment", "istiod-asm-1-27", namespace, spec=spec))
    assert [finding.reason for finding in failed(manifests)] == expected
