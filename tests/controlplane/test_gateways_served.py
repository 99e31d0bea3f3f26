"""Right and wrong gateways for a model: the operator beside a controller that sets the status of Gateways and routes.

The CRDs are those of the Gateway API; what a Gateway says is said by the stand-in for its controller, and nothing is
written into a status by the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.api import Api
from testbed.certificates import Authority
from testbed.cloud_provider import PLANT_PUBLIC, WITHHOLD
from testbed.gateway.definitions import GROUP
from testbed.gateway.on_node import ALLOWED
from testbed.installation import CONFIGURATION, REPOSITORY, OperatorProcess, operator_kubeconfig
from testbed.kubectl import Kubectl
from testbed.processes import Component
from tests.controlplane.deployments import Deployments, module_namespace
from tests.controlplane.gateway_fixtures import GATEWAY_NAMESPACE, GatewayObjects
from tests.gateway_objects import INTERNAL, a_gateway, a_listener, a_secret, with_tls
from tests.scenarios import Manifest, a_baked_model, reporting
from tests.unit.test_gateway_page import of_the_page

EDGE = {"name": "edge", "namespace": GATEWAY_NAMESPACE}


@pytest.fixture(scope="module")
def allowing(
    installed: None,  # noqa: ARG001
    gateway_controller: Component,  # noqa: ARG001
    api: Api,
    cluster: Path,
    kubectl: Kubectl,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorProcess]:
    """The operator, with the Gateway `gateways/edge` allowed to models of every namespace."""
    kubectl("apply", "--server-side", "--kustomize", str(REPOSITORY / "manifests" / "gateways"))
    folder = tmp_path_factory.mktemp("operator")
    kubeconfig = operator_kubeconfig(api, cluster, folder / "operator.kubeconfig")
    operator = OperatorProcess(folder, kubeconfig, {**CONFIGURATION, "gateways": ALLOWED}, "operator")
    operator.start()
    yield operator
    operator.stop()
    kubectl("delete", "--kustomize", str(REPOSITORY / "manifests" / "gateways"))


@pytest.fixture(scope="module")
def home(
    allowing: OperatorProcess, api: Api, kubectl: Kubectl, component_logs: dict[str, Path]
) -> Iterator[Deployments]:
    component_logs["operator"] = allowing.component.log
    with module_namespace(api, "doors") as namespace:
        yield Deployments(api, kubectl, namespace, allowing)
    del component_logs["operator"]


@pytest.fixture
def models(home: Deployments) -> Iterator[Deployments]:
    yield home
    for manifest in home.api.get(home.collection)["items"]:
        home.api.delete(f"{home.collection}/{manifest['metadata']['name']}")
    home.wait("no models", lambda: not home.api.get(home.collection)["items"])
    home.wait("no routes", lambda: not home.api.get(routes_of(home))["items"])


def routes_of(home: Deployments) -> str:
    return f"/apis/{GROUP}/v1/namespaces/{home.namespace}/httproutes"


def behind(**gateway: Any) -> Manifest:
    """A model without pods: what a Gateway says of its route is told all the same."""
    return reporting(a_baked_model("phi", replicas=0, endpoint={"gateway": {**EDGE, **gateway}}))


def test_a_route_of_the_operator_is_accepted_by_the_definitions_and_by_a_controller(
    models: Deployments, gateway_objects: GatewayObjects
) -> None:
    gateway = gateway_objects.create(a_gateway())
    models.apply(behind())
    condition = models.until("phi", "RouteAccepted", "RouteServed")
    assert condition["message"].startswith("Gateway 'gateways/edge' serves HTTPRoute 'phi'")
    assert models.until("phi", "PrivateAddress", "EndpointPrivate")["status"] == "True"
    (address,) = gateway_objects.live(gateway)["status"]["addresses"]
    url = models.get("phi")["status"]["endpoint"]["url"]
    assert url == f"http://{address['value']}/{models.namespace}/phi/v1"


def test_a_route_is_not_written_again_when_the_definitions_have_filled_it_in(
    models: Deployments, gateway_objects: GatewayObjects
) -> None:
    gateway_objects.create(a_gateway())
    models.apply(behind())
    models.until("phi", "RouteAccepted", "RouteServed")
    before = models.api.get(f"{routes_of(models)}/phi")["metadata"]
    models.operator.stop()
    models.operator.start()
    models.change("phi", drainSeconds=20)
    models.until("phi", "RouteAccepted", "RouteServed")
    after = models.api.get(f"{routes_of(models)}/phi")["metadata"]
    assert (after["generation"], after["resourceVersion"]) == (before["generation"], before["resourceVersion"])


def listener_of(namespaces: Manifest) -> Manifest:
    return a_listener(allowedRoutes={"namespaces": namespaces})


def annotated(**annotations: str) -> Manifest:
    return {"annotations": {**INTERNAL, **annotations}}


HTTPS = with_tls("https", "absent", 80)
ELSEWHERE = {"certificateRefs": [{"name": "tls", "namespace": "elsewhere"}]}
WRONG: dict[str, tuple[Manifest | None, Manifest, str, str]] = {
    "absent": (None, {}, "GatewayNotFound", "Gateway 'gateways/edge' does not exist"),
    "takes routes of its own namespace": (
        a_gateway("edge", GATEWAY_NAMESPACE, listener_of({"from": "Same"})), {},
        "NoListenerForNamespace", "no listener of Gateway 'gateways/edge' takes HTTP routes of namespace",
    ),
    "takes routes of other labels": (
        a_gateway("edge", GATEWAY_NAMESPACE, listener_of(
            {"from": "Selector", "selector": {"matchLabels": {"models": "yes"}}})), {},
        "RouteRefused", "Accepted False: NotAllowedByListeners: no listener of Gateway gateways/edge allows HTTPRoutes",
    ),
    "listens to another protocol": (
        a_gateway("edge", GATEWAY_NAMESPACE, a_listener(protocol="TCP", port=8000)), {},
        "NoListenerForNamespace", "no listener of Gateway 'gateways/edge' takes HTTP routes",
    ),
    "has other host names": (
        a_gateway("edge", GATEWAY_NAMESPACE, a_listener(hostname="*.contoso.internal")),
        {"hostname": "models.example.com"}, "NoListenerForHostname", "is for 'models.example.com', but for",
    ),
    "has listeners that conflict": (
        a_gateway("edge", GATEWAY_NAMESPACE, a_listener(), HTTPS), {},
        "ListenerNotProgrammed",
        "listener 'https' of Gateway 'gateways/edge' is not in effect: Conflicted True: ProtocolConflict: listeners of",
    ),
    "has no certificate": (
        a_gateway("edge", GATEWAY_NAMESPACE, with_tls("https", "absent")), {},
        "ListenerNotProgrammed", "ResolvedRefs False: InvalidCertificateRef: Secret gateways/absent does not exist",
    ),
    "has no certificate for TLS beside plain HTTP": (
        a_gateway("edge", GATEWAY_NAMESPACE, a_listener(), with_tls("https", "absent")), {},
        "ListenerNotProgrammed", "ResolvedRefs False: InvalidCertificateRef: Secret gateways/absent does not exist",
    ),
    "may not read its certificate": (
        a_gateway("edge", GATEWAY_NAMESPACE, a_listener("https", port=443, protocol="HTTPS", tls=ELSEWHERE)), {},
        "ListenerNotProgrammed", "ResolvedRefs False: RefNotPermitted: no ReferenceGrant in namespace elsewhere",
    ),
    "passes TLS through": (
        a_gateway("edge", GATEWAY_NAMESPACE, a_listener("tls", port=443, protocol="TLS", tls={"mode": "Passthrough"})),
        {}, "NoListenerForNamespace", "listener 'tls' has the protocol TLS and takes no HTTPRoute; TLS must end at a",
    ),
    "has no address": (
        a_gateway(infrastructure=annotated(**{WITHHOLD: "true"})), {},
        "GatewayAddressPending", "has no address yet that would show it to be private",
    ),
    "has no internal load balancer": (
        a_gateway(infrastructure={"annotations": {}}), {}, "GatewayNotPrivate", "which is not known to be private",
    ),
    "has a public address all the same": (
        a_gateway(infrastructure=annotated(**{PLANT_PUBLIC: "true"})), {},
        "GatewayNotPrivate", "has the address '203.0.113.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_gateway_is_named_in_a_sentence(
    models: Deployments, gateway_objects: GatewayObjects, case: str
) -> None:
    gateway, fields, reason, sentence = WRONG[case]
    if gateway is not None:
        gateway_objects.create(gateway)
    models.apply(behind(**fields))
    models.until("phi", reason, "RouteServed")
    # of a public Gateway its Service may be seen first, and says the same in other words
    models.wait(f"RouteServed with {sentence}", lambda: sentence in models.condition("phi", "RouteServed")["message"])
    condition = models.condition("phi", "RouteServed")
    assert (condition["reason"], condition["status"] in ("False", "Unknown")) == (reason, True)


def test_a_route_attaches_to_the_listeners_with_tls_alone(
    models: Deployments, gateway_objects: GatewayObjects, api: Api
) -> None:
    """Of two with TLS to both; plain HTTP beside them is not opened, and is once it is all that is left."""
    secret = a_secret("tls", GATEWAY_NAMESPACE, Authority("test").server("models", ["models.internal"]))
    secrets = f"/api/v1/namespaces/{GATEWAY_NAMESPACE}/secrets"
    api.create(secrets, {name: secret[name] for name in ("type", "data")} | {"metadata": {"name": "tls"}})
    listeners = [a_listener(), with_tls("https", "tls"), with_tls("lab", "tls", 8443)]
    gateway = gateway_objects.create(a_gateway("edge", GATEWAY_NAMESPACE, *listeners))
    models.apply(behind(hostname="models.internal"))
    models.until("phi", "RouteAccepted", "RouteServed")
    url = models.get("phi")["status"]["endpoint"]["url"]
    assert url == f"https://models.internal/{models.namespace}/phi/v1"
    assert sections(models) == ["https", "lab"]
    served = gateway_objects.live(gateway)["status"]["listeners"]
    assert {listener["name"]: listener["attachedRoutes"] for listener in served} == {"http": 0, "https": 1, "lab": 1}

    path = f"/apis/{GROUP}/v1/namespaces/{GATEWAY_NAMESPACE}/gateways/edge"
    api.merge(path, {"spec": {"listeners": [a_listener(port=8080)]}})
    models.wait("a route to all listeners", lambda: sections(models) == [])
    models.until("phi", "RouteAccepted", "RouteServed")
    url = f"http://models.internal:8080/{models.namespace}/phi/v1"
    models.wait("the URL of the other port", lambda: models.get("phi")["status"]["endpoint"]["url"] == url)
    api.delete(f"{secrets}/tls")


def test_gateway_of_the_page_has_the_fields_of_the_definition(api: Api, gateway_namespace: str) -> None:
    gateways = f"/apis/{GROUP}/v1/namespaces/{gateway_namespace}/gateways"
    created = api.create(f"{gateways}?fieldValidation=Strict&dryRun=All", of_the_page("gateway.yaml"))
    assert [listener["protocol"] for listener in created["spec"]["listeners"]] == ["HTTPS"]


def sections(models: Deployments) -> list[str]:
    """The listeners that the route names."""
    parents = models.api.get(f"{routes_of(models)}/phi")["spec"]["parentRefs"]
    return [parent["sectionName"] for parent in parents if "sectionName" in parent]


def test_a_gateway_that_is_not_on_the_list_keeps_the_model_from_starting(
    models: Deployments, gateway_objects: GatewayObjects
) -> None:
    gateway_objects.create(a_gateway("other"))
    models.apply(behind(name="other"))
    models.until("phi", "GatewayNotAllowed")
    assert models.api.get(routes_of(models))["items"] == []


def test_the_route_goes_when_its_gateway_becomes_public_and_comes_back(
    models: Deployments, gateway_objects: GatewayObjects, api: Api
) -> None:
    gateway_objects.create(a_gateway())
    models.apply(behind())
    models.until("phi", "RouteAccepted", "RouteServed")
    path = f"/apis/{GROUP}/v1/namespaces/{GATEWAY_NAMESPACE}/gateways/edge"
    api.merge(path, {"spec": {"infrastructure": annotated(**{PLANT_PUBLIC: "true"})}})
    models.until("phi", "GatewayNotPrivate", "EndpointPrivate")
    models.wait("no route", lambda: not api.get(routes_of(models))["items"])
    api.merge(path, {"spec": {"infrastructure": {"annotations": {PLANT_PUBLIC: None}}}})
    models.until("phi", "RouteAccepted", "RouteServed")
