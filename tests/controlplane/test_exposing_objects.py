"""What leads to a model's pods beside its own Service: found, and named with who wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.kstatus import kstatus
from tests.controlplane.test_tenant_rights import Tenancy, serving
from tests.scenarios import Manifest

SERVICES = "/api/v1/namespaces/{}/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/{}/ingresses"
PORTS = [{"port": 80, "targetPort": 8000}]


@pytest.fixture(scope="module")
def tenancy(
    hermetic: OperatorProcess,
    api: Api,
    cluster: Path,
    kubectl: Kubectl,
    gpu_nodes: None,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tenancy]:
    """A model that serves inside the cluster, and one who may edit its namespace."""
    with module_namespace(api, "ways") as namespace:
        kubeconfig = tmp_path_factory.mktemp("ways") / "kubeconfig"
        yield serving(Deployments(api, kubectl, namespace, hermetic), cluster, kubeconfig)


def a_service(**spec: Any) -> Manifest:
    """It selects the pods by labels that are not Hermetic's own: the policies of admission do not see it."""
    selector = {"app.kubernetes.io/instance": "phi"}
    return {"metadata": {"name": "side"}, "spec": {"selector": selector, "ports": PORTS, **spec}}


def an_ingress() -> Manifest:
    backend = {"service": {"name": "phi", "port": {"number": 8000}}}
    return {"metadata": {"name": "side"}, "spec": {"defaultBackend": backend}}


def address_of_the_pod(tenancy: Tenancy) -> str:
    def address() -> str:
        return str(tenancy.deployments.pods("phi")[0]["status"].get("podIP") or "")

    return tenancy.deployments.wait("an address of the pod", address)


WAYS: dict[str, tuple[str, Manifest]] = {
    "load balancer": (SERVICES, a_service(type="LoadBalancer")),
    "node port": (SERVICES, a_service(type="NodePort")),
    "external IPs": (SERVICES, a_service(externalIPs=["203.0.113.7"])),
    "ingress": (INGRESSES, an_ingress()),
}


@pytest.mark.parametrize("way", [*WAYS, "slice"])
def test_an_exposing_object_of_a_tenant_is_named_with_who_made_it_and_is_over_when_it_goes(
    tenancy: Tenancy, way: str
) -> None:
    root, manifest = WAYS.get(way) or (SLICES, a_slice(tenancy))
    kind = {SERVICES: "Service", SLICES: "EndpointSlice", INGRESSES: "Ingress"}[root]
    collection = root.format(tenancy.deployments.namespace)
    # The ClusterRole `edit` writes no EndpointSlices; controllers and administrators do.
    account = tenancy.deployments.api if root == SLICES else tenancy.tenant
    wait_for("the rights of a tenant", lambda: _created(account, collection, manifest))

    ready = tenancy.deployments.until("phi", "EndpointExposed")
    endpoint = tenancy.deployments.condition("phi", "EndpointPrivate")
    assert (endpoint["status"], endpoint["reason"]) == ("False", "EndpointExposed")
    assert f"{kind} '{tenancy.deployments.namespace}/side'" in endpoint["message"]
    assert "; written by field manager '" in endpoint["message"]
    assert " (Update, 20" in endpoint["message"]
    assert ready["message"] == endpoint["message"]
    assert kstatus(tenancy.deployments.get("phi")) == "Failed"
    assert tenancy.deployments.condition("phi", "Available")["status"] == "True", "the pods serve all the while"

    account.delete(f"{collection}/side")
    tenancy.deployments.until("phi", "Serving")


def a_slice(tenancy: Tenancy) -> Manifest:
    return {
        "metadata": {"name": "side", "labels": {"kubernetes.io/service-name": "side"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address_of_the_pod(tenancy)]}],
        "ports": [{"port": 8000}],
    }


def _created(tenant: Api, collection: str, manifest: Manifest) -> bool:
    try:
        tenant.create(collection, manifest)
    except ApiError as error:
        if error.status != 403:
            raise
        return False
    return True


def test_a_private_service_of_a_tenant_is_no_finding(tenancy: Tenancy) -> None:
    collection = SERVICES.format(tenancy.deployments.namespace)
    wait_for("the rights of a tenant", lambda: _created(tenancy.tenant, collection, a_service()))
    tenancy.deployments.change("phi", drainSeconds=41)
    tenancy.deployments.until("phi", "Serving")
    assert tenancy.deployments.condition("phi", "EndpointPrivate")["status"] == "True"
    tenancy.tenant.delete(f"{collection}/side")
