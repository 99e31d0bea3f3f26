"""The stand-in for a gateway controller on a real API server, which has the Gateway API's own CRDs."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.api import Api
from testbed.cloud_provider import PLANT_PUBLIC, WITHHOLD
from testbed.errors import ApiError
from testbed.gateway.snapshot import GATEWAY_LABEL, Manifest
from testbed.installation import wait_for
from tests.controlplane.gateway_fixtures import GATEWAY_NAMESPACE, GatewayObjects
from tests.gateway_objects import INTERNAL, a_gateway, a_listener, a_route, a_rule
from tests.sampled_groups import TEST_BED_CONTROL_PLANE

pytestmark = TEST_BED_CONTROL_PLANE

PRIVATE, PUBLIC = "10.13.76.", "203.0.113."


@pytest.fixture
def service(api: Api, namespace: str) -> Manifest:
    spec = {"selector": {"app": "phi"}, "ports": [{"name": "http", "port": 8000}]}
    return api.create(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "phi"}, "spec": spec})


def address_of(objects: GatewayObjects, gateway: Manifest) -> str:
    return str(objects.live(gateway)["status"]["addresses"][0]["value"])


@pytest.mark.usefixtures("gateway_namespace")
def test_a_gateway_without_a_controller_waits(gateway_objects: GatewayObjects, namespace: str) -> None:
    """What the CRD itself fills in; the class is not there yet either."""
    gateway = gateway_objects.create(a_gateway("unserved", gatewayClassName="of-nobody"))
    route = gateway_objects.create(a_route("phi", namespace, a_rule(("phi", 1))))
    conditions = gateway_objects.conditions(gateway)
    assert {(c["status"], c["reason"]) for c in conditions.values()} == {("Unknown", "Pending")}
    assert gateway_objects.conditions(route) == {}


@pytest.mark.usefixtures("gateway_controller", "service")
def test_a_gateway_is_programmed_at_a_private_address_with_its_routes(
    gateway_objects: GatewayObjects, namespace: str
) -> None:
    gateway = gateway_objects.create(a_gateway())
    route = gateway_objects.create(a_route("phi", namespace, a_rule(("phi", 1), prefix="/models/phi")))
    gateway_objects.until(gateway, "Programmed", "Programmed")
    gateway_objects.until(route, "Accepted", "Accepted")
    gateway_objects.until(route, "ResolvedRefs", "ResolvedRefs")
    assert address_of(gateway_objects, gateway).startswith(PRIVATE)
    (listener,) = wait_for(
        "an attached route",
        lambda: [entry for entry in gateway_objects.live(gateway)["status"]["listeners"] if entry["attachedRoutes"]],
    )
    assert {c["type"]: c["status"] for c in listener["conditions"]} == {
        "Accepted": "True", "Conflicted": "False", "Programmed": "True", "ResolvedRefs": "True",
    }  # fmt: skip


WRONG_GATEWAYS: dict[str, tuple[Manifest, dict[str, Any], str, str]] = {
    "no listener takes routes of the namespace": (
        a_gateway("edge", GATEWAY_NAMESPACE, a_listener(allowedRoutes={"namespaces": {"from": "Same"}})), {},
        "Accepted", "NotAllowedByListeners",
    ),
    "no listener has the hostname": (
        a_gateway("edge", GATEWAY_NAMESPACE, a_listener(hostname="*.contoso.internal")),
        {"hostnames": ["models.example.com"]}, "Accepted", "NoMatchingListenerHostname",
    ),
    "no listener of this name": (
        a_gateway(), {"parentRefs": [{"name": "edge", "namespace": GATEWAY_NAMESPACE, "sectionName": "https"}]},
        "Accepted", "NoMatchingParent",
    ),
    "the Service is absent": (a_gateway(), {"rules": [a_rule(("absent", 1))]}, "ResolvedRefs", "BackendNotFound"),
}  # fmt: skip


@pytest.mark.usefixtures("gateway_controller", "service")
@pytest.mark.parametrize("case", WRONG_GATEWAYS)
def test_a_route_to_a_wrong_gateway_gets_the_documented_reason(
    gateway_objects: GatewayObjects, namespace: str, case: str
) -> None:
    gateway, fields, kind, reason = WRONG_GATEWAYS[case]
    gateway_objects.create(gateway)
    route = gateway_objects.create(a_route("phi", namespace, a_rule(("phi", 1)), **fields))
    assert gateway_objects.until(route, kind, reason)["status"] == "False"


@pytest.mark.usefixtures("gateway_controller")
@pytest.mark.parametrize(
    ("annotations", "reason", "address"),
    [
        ({}, "Programmed", PUBLIC),
        ({**INTERNAL, PLANT_PUBLIC: "true"}, "Programmed", PUBLIC),
        ({**INTERNAL, WITHHOLD: "true"}, "AddressNotAssigned", None),
    ],
)
def test_a_gateway_shows_the_address_that_its_load_balancer_got(
    gateway_objects: GatewayObjects, annotations: dict[str, str], reason: str, address: str | None
) -> None:
    gateway = gateway_objects.create(a_gateway(infrastructure={"annotations": annotations}))
    gateway_objects.until(gateway, "Programmed", reason)
    if address is None:
        assert gateway_objects.live(gateway)["status"]["addresses"] == []
    else:
        assert address_of(gateway_objects, gateway).startswith(address)


@pytest.mark.usefixtures("gateway_controller")
def test_a_requested_address_is_the_address(gateway_objects: GatewayObjects) -> None:
    addresses = [{"type": "IPAddress", "value": "10.13.76.77"}]
    gateway = gateway_objects.create(a_gateway(addresses=addresses))
    gateway_objects.until(gateway, "Programmed", "Programmed")
    assert gateway_objects.live(gateway)["status"]["addresses"] == addresses


@pytest.mark.usefixtures("gateway_controller")
def test_what_another_controller_says_of_a_route_stays(
    api: Api, gateway_objects: GatewayObjects, namespace: str
) -> None:
    route = gateway_objects.create(a_route("phi", namespace, a_rule(("phi", 1))))
    condition = {
        "type": "Accepted", "status": "False", "reason": "Other", "message": "",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    }  # fmt: skip
    foreign = {"parentRef": {"name": "other"}, "controllerName": "example.net/other", "conditions": [condition]}
    path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{namespace}/httproutes/phi/status"
    api.merge(path, {"status": {"parents": [foreign]}})
    gateway_objects.create(a_gateway())
    parents = wait_for(
        "two parents",
        lambda: [
            p for p in gateway_objects.live(route)["status"]["parents"] if p["controllerName"] != "example.net/other"
        ],
    )
    assert len(parents) == 1
    assert gateway_objects.live(route)["status"]["parents"][0]["controllerName"] == "example.net/other"


@pytest.mark.usefixtures("gateway_controller")
def test_what_serves_a_gateway_has_its_label_and_ends_with_it(api: Api, gateway_objects: GatewayObjects) -> None:
    """The garbage collector deletes what an owner leaves, and learns of new kinds every half a minute."""
    gateway = gateway_objects.create(a_gateway())
    gateway_objects.until(gateway, "Programmed", "Programmed")
    for collection in ("/apis/apps/v1/namespaces/{}/deployments", "/api/v1/namespaces/{}/services"):
        (part,) = api.get(collection.format(GATEWAY_NAMESPACE), labelSelector=f"{GATEWAY_LABEL}=edge")["items"]
        assert [owner["uid"] for owner in part["metadata"]["ownerReferences"]] == [gateway["metadata"]["uid"]]
    pods = api.get(f"/api/v1/namespaces/{GATEWAY_NAMESPACE}/pods", labelSelector=f"{GATEWAY_LABEL}=edge")["items"]
    assert pods


@pytest.mark.usefixtures("gateway_namespace")
def test_the_definitions_refuse_what_no_gateway_could_serve(gateway_objects: GatewayObjects, namespace: str) -> None:
    """The rules of the CRDs themselves, which a route of the operator must keep."""
    two_matches = [{"path": {"type": "PathPrefix", "value": value}} for value in ("/a", "/b")]
    with pytest.raises(ApiError, match="exactly one PathPrefix match"):
        gateway_objects.create(a_route("phi", namespace, a_rule(("phi", 1), prefix="/a", matches=two_matches)))
