"""Routes of the Gateway API that lead to a model, on an API server that serves them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.api import Api
from testbed.installation import OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.gateway_api import GROUP, definitions, is_served
from tests.scenarios import Manifest, a_baked_model, reporting

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
OPTIONAL = "hermetic-operator-optional"


@pytest.fixture(scope="module")
def gateway_api(api: Api) -> Iterator[None]:
    """The kinds are served before the operator starts: it asks for what was not served once a minute."""
    for definition in definitions():
        api.create(DEFINITIONS, definition)
    for plural in ("gateways", "httproutes"):
        wait_for(f"{plural} are served", lambda plural=plural: is_served(api, plural))
    yield
    for definition in definitions():
        api.delete(f"{DEFINITIONS}/{definition['metadata']['name']}")


@pytest.fixture(scope="module")
def routed(gateway_api: None, hermetic: OperatorProcess, api: Api, kubectl: Kubectl) -> Iterator[Deployments]:  # noqa: ARG001
    """A model without pods: what leads to its Service is told all the same."""
    with module_namespace(api, "routes") as namespace:
        deployments = Deployments(api, kubectl, namespace, hermetic)
        deployments.apply(reporting(a_baked_model("phi", replicas=0, endpoint={})))
        deployments.until("phi", "ClusterInternal", "EndpointPrivate")
        yield deployments


def path(deployments: Deployments, plural: str) -> str:
    return f"/apis/{GROUP}/v1/namespaces/{deployments.namespace}/{plural}"


def a_route(**rule: Any) -> Manifest:
    rules = [rule or {"backendRefs": [{"name": "phi", "port": 8000}]}]
    spec = {"parentRefs": [{"name": "edge"}], "rules": rules}
    return {"apiVersion": f"{GROUP}/v1", "kind": "HTTPRoute", "metadata": {"name": "out"}, "spec": spec}


def a_gateway() -> Manifest:
    spec = {"gatewayClassName": "any", "listeners": []}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Gateway", "metadata": {"name": "edge"}, "spec": spec}


MIRROR = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "phi", "port": 8000}}}
ROUTES: dict[str, Manifest] = {
    "backend": a_route(),
    "mirror": a_route(filters=[MIRROR]),
    "mirror of a backend": a_route(backendRefs=[{"name": "other", "port": 80, "filters": [MIRROR]}]),
    "backend of another kind": a_route(backendRefs=[{"group": "example.com", "kind": "Pool", "name": "any"}]),
}


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_is_named_until_its_gateway_is_known_to_be_private(routed: Deployments, route: str) -> None:
    routes, gateways = path(routed, "httproutes"), path(routed, "gateways")
    routed.api.create(routes, ROUTES[route])
    condition = routed.until("phi", "EndpointExposed", "EndpointPrivate")
    assert (
        f"HTTPRoute '{routed.namespace}/out' leads to pods of this model and is served by Gateway"
        in condition["message"]
    )
    assert "; written by field manager '" in condition["message"]

    routed.api.create(gateways, a_gateway())
    for value, reason in (("10.224.0.9", "ClusterInternal"), ("203.0.113.9", "EndpointExposed")):
        routed.api.merge(f"{gateways}/edge/status", {"status": {"addresses": [{"type": "IPAddress", "value": value}]}})
        routed.until("phi", reason, "EndpointPrivate")

    routed.api.delete(f"{routes}/out")
    routed.until("phi", "ClusterInternal", "EndpointPrivate")
    routed.api.delete(f"{gateways}/edge")


def test_routes_that_may_not_be_listed_leave_the_endpoint_unknown(routed: Deployments) -> None:
    """Without the optional role, while the kinds are served."""
    binding = next(
        candidate for candidate in routed.api.get(BINDINGS)["items"] if candidate["roleRef"]["name"] == OPTIONAL
    )
    routed.api.delete(f"{BINDINGS}/{binding['metadata']['name']}")
    try:
        routed.operator.stop()
        routed.operator.start()
        condition = routed.until("phi", "PermissionLost", "EndpointPrivate")
        assert condition["status"] == "Unknown"
        assert "the operator may not list gateways, httproutes," in condition["message"]
    finally:
        del binding["metadata"]["resourceVersion"], binding["metadata"]["uid"]
        routed.api.create(BINDINGS, binding)
