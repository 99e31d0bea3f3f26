"""A model behind a gateway on a real API server: its route, and what the operator's account and a tenant may write."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.cli.installation import Installation
from testbed.api import Api
from testbed.controlplane import ControlPlane, Settings
from testbed.errors import ApiError, CannotRunError
from testbed.fleet import Pool, add_nodes
from testbed.installation import CONFIGURATION, OperatorProcess, install, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.programs import programs
from tests.controlplane.deployments import Deployments
from tests.controlplane.gateway_api import GROUP, definitions, is_served
from tests.controlplane.test_tenant_rights import a_tenant
from tests.gateways import ADDRESS, ALLOWED, GATEWAY, a_gateway, a_report
from tests.scenarios import Manifest, a_baked_model, reporting

NAMESPACE = "inference"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROUTES = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/httproutes"
GATEWAYS = f"/apis/{GROUP}/v1/namespaces/{GATEWAY['namespace']}/gateways"
SECOND = "second"
POLICY: dict[str, Any] = {
    **CONFIGURATION,
    "gateways": [ALLOWED, {**ALLOWED, "name": SECOND}],
    "watchNamespaces": [NAMESPACE],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[Deployments]:
    """The rights of `hermetic rbac --config` for one namespace; the Gateway API comes with the test that needs it."""
    folder = tmp_path_factory.mktemp("gateway")
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    with ControlPlane(Settings()) as plane, contextlib.ExitStack() as ends:
        api, kubectl = Api(plane.kubeconfig), Kubectl(programs("kubernetes")["kubectl"], plane.kubeconfig)
        install(kubectl, Installation(Configuration.model_validate(POLICY)))
        api.create("/api/v1/namespaces", {"metadata": {"name": GATEWAY["namespace"]}})
        add_nodes(api, Pool("gpu"), 2)
        for definition in definitions():
            api.create(DEFINITIONS, definition)
        for plural in ("gateways", "httproutes"):
            wait_for(f"{plural} are served", lambda plural=plural: is_served(api, plural))
        kubeconfig = operator_kubeconfig(api, plane.kubeconfig, folder / "operator.kubeconfig")
        operator = OperatorProcess(folder, kubeconfig, POLICY, "operator")
        component_logs["gateway"] = operator.component.log
        ends.callback(component_logs.pop, "gateway", None)
        ends.callback(operator.stop)
        operator.start()
        yield Deployments(api, kubectl, NAMESPACE, operator)


@pytest.fixture
def gateway(home: Deployments) -> Iterator[str]:
    """The Gateway, without an address; its path."""
    manifest = a_gateway()
    home.api.create(GATEWAYS, {**manifest, "metadata": dict(GATEWAY)})
    yield f"{GATEWAYS}/{GATEWAY['name']}"
    home.api.delete(f"{GATEWAYS}/{GATEWAY['name']}")


@pytest.fixture
def model(home: Deployments) -> Iterator[Deployments]:
    home.apply(reporting(a_baked_model(endpoint={"gateway": GATEWAY}, drainSeconds=0)))
    yield home
    home.api.delete(f"{home.collection}/phi")
    home.wait("all gone", lambda: home.workload("phi") is None and route_of(home) is None)


def route_of(home: Deployments) -> Manifest | None:
    return home.child(f"{GROUP}/v1", "httproutes", "phi")


def address(home: Deployments, gateway: str, *values: str) -> None:
    addresses = [{"type": "IPAddress", "value": value} for value in values]
    home.api.merge(f"{gateway}/status", {"status": {"addresses": addresses}})


def serve(home: Deployments) -> None:
    """As the gateway's controller does once it serves the route."""
    home.wait("the route", lambda: route_of(home))
    home.api.merge(f"{ROUTES}/phi/status", {"status": {"parents": [a_report()]}})


def test_model_is_served_through_a_private_gateway_and_withdrawn_from_a_public_one(
    model: Deployments, gateway: str
) -> None:
    model.until("phi", "GatewayAddressPending", "RouteServed")
    assert route_of(model) is None

    address(model, gateway, ADDRESS)
    serve(model)
    model.until("phi", "ServingNotEnforced")
    assert model.get("phi")["status"]["endpoint"]["url"] == f"http://{ADDRESS}/{NAMESPACE}/phi/v1"
    assert model.condition("phi", "EndpointPrivate")["reason"] == "PrivateAddress"
    _rests(model)

    address(model, gateway, ADDRESS, "203.0.113.9")
    model.until("phi", "GatewayNotPrivate", "EndpointPrivate")
    model.wait("no route", lambda: route_of(model) is None)

    address(model, gateway, ADDRESS)
    serve(model)
    model.until("phi", "ServingNotEnforced")

    model.change("phi", endpoint={"gateway": None})
    model.wait("no route", lambda: route_of(model) is None)
    model.until("phi", "ClusterInternal", "EndpointPrivate")


def _rests(home: Deployments) -> None:
    """A change that the operator reads, and that alters nothing, leads to no write of the route."""
    before = (route_of(home) or {})["metadata"]["resourceVersion"]
    home.api.merge(f"{home.collection}/phi", {"metadata": {"annotations": {"seen": "yes"}}})
    home.api.merge(f"{home.collection}/phi", {"spec": {"startupBudgetSeconds": 1300}})
    home.wait(
        "the change is seen",
        lambda: home.get("phi")["status"]["observedGeneration"] == home.get("phi")["metadata"]["generation"],
    )
    assert (route_of(home) or {})["metadata"]["resourceVersion"] == before


def test_tenant_neither_changes_the_route_nor_takes_it_over(model: Deployments, gateway: str, tmp_path: Path) -> None:
    address(model, gateway, ADDRESS)
    serve(model)
    tenant = a_tenant(model.api, model.kubectl.kubeconfig, NAMESPACE, tmp_path / "kubeconfig")
    model.api.create(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
        {
            "metadata": {"name": "routes"},
            "rules": [{"apiGroups": [GROUP], "resources": ["httproutes"], "verbs": ["*"]}],
        },
    )
    model.api.create(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
        {
            "metadata": {"name": "routes"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "routes"},
            "subjects": [{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )
    attempts: dict[str, Manifest] = {
        "spec: only the operator changes the route": {"spec": {"hostnames": ["stolen.internal"]}},
        "metadata.labels": {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}},
        "metadata.ownerReferences": {"metadata": {"ownerReferences": []}},
    }
    for field, patch in attempts.items():
        assert field in model.wait(f"the rights of a tenant: {field}", lambda patch=patch: _refusal(tenant, patch))
    model.api.delete(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings/routes")
    model.api.delete(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/routes")


def _refusal(tenant: Api, patch: Manifest) -> str:
    """The message of an admission policy; "" while the right itself is not in force."""
    with pytest.raises(ApiError) as refused:
        tenant.merge(f"{ROUTES}/phi", patch)
    return "" if refused.value.status == 403 else str(refused.value)


def _spoiled(route: Manifest, case: str) -> None:
    spec = route["spec"]
    match case:
        case "another gateway":
            spec["parentRefs"][0]["name"] = "public"
        case "two gateways":
            spec["parentRefs"].append({**spec["parentRefs"][0], "name": SECOND})
        case "another Service":
            spec["rules"][0]["backendRefs"][0]["name"] = "other"
        case "a Service of another namespace":
            spec["rules"][0]["backendRefs"][0]["namespace"] = "kube-system"
        case "a mirror":
            mirror = {"backendRef": {"name": "phi", "port": 8000}}
            spec["rules"][0]["filters"] = [{"type": "RequestMirror", "requestMirror": mirror}]
        case "every default gateway":
            spec["useDefaultGateways"] = "All"
        case "no owner":
            del route["metadata"]["ownerReferences"]
        case "another name":
            route["metadata"]["name"] = "other"


REFUSED = {
    "another gateway": "spec.parentRefs: the operator's account writes only routes of Gateways that its configuration",
    "two gateways": "spec.parentRefs: the operator's account writes only routes of one Gateway",
    "another Service": "spec.rules[].backendRefs",
    "a Service of another namespace": "spec.rules[].backendRefs",
    "a mirror": "spec.rules[].filters",
    "every default gateway": "spec: the operator's account writes only routes with parentRefs",
    "no owner": "metadata.ownerReferences",
    "another name": "metadata.name",
}


def test_stolen_token_of_the_operator_writes_no_other_route(model: Deployments, gateway: str) -> None:
    address(model, gateway, ADDRESS)
    route = model.wait("the route", lambda: route_of(model))
    account = Api(model.operator.kubeconfig)
    for case, message in REFUSED.items():
        manifest = copy.deepcopy(route)
        manifest["metadata"] = {name: manifest["metadata"][name] for name in ("name", "labels", "ownerReferences")}
        _spoiled(manifest, case)
        with pytest.raises(ApiError) as refused:
            account.create(f"{ROUTES}?dryRun=All", manifest)
        assert message in str(refused.value) or "spec.rules[].backendRefs" in str(refused.value), case


def test_definition_of_an_earlier_release_is_named(home: Deployments, gateway: str) -> None:
    """Without `timeouts` the API server takes no route; the field comes with v1.1."""
    address(home, gateway, ADDRESS)
    (route,) = [definition for definition in definitions() if definition["spec"]["names"]["kind"] == "HTTPRoute"]
    name = f"{DEFINITIONS}/{route['metadata']['name']}"
    schema = route["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    earlier = copy.deepcopy(route)
    fields = earlier["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del fields["rules"]["items"]["properties"]["timeouts"]
    assert "timeouts" in schema["properties"]["rules"]["items"]["properties"]
    home.api.merge(name, {"spec": {"versions": earlier["spec"]["versions"]}})
    try:
        home.apply(reporting(a_baked_model("old", endpoint={"gateway": GATEWAY}, drainSeconds=0)))
        condition = home.until("old", "GatewayApiTooOld")
        assert "field not declared in schema" in condition["message"]
    finally:
        home.api.merge(name, {"spec": {"versions": route["spec"]["versions"]}})
    home.api.delete(f"{home.collection}/old")
    home.wait("all gone", lambda: home.workload("old") is None)


# ---------------------------------------------------------------------- a group

SHARED = f"{ROUTES}/group.chat"


def a_member(name: str, weight: int) -> Manifest:
    gateway = {**GATEWAY, "group": "chat", "weight": weight}
    return reporting(a_baked_model(name, endpoint={"gateway": gateway}, drainSeconds=0))


def weights(home: Deployments) -> dict[str, int]:
    rules = home.api.get(SHARED)["spec"]["rules"]
    return {backend["name"]: backend["weight"] for backend in rules[0]["backendRefs"]}


@pytest.fixture
def group(home: Deployments, gateway: str) -> Iterator[Deployments]:
    """Two members that serve, with nine tenths for the older one."""
    address(home, gateway, ADDRESS)
    home.apply(a_member("v1", 90))
    home.wait("the first", lambda: weights(home) == {"v1": 90})
    home.apply(a_member("v2", 10))
    home.wait("both", lambda: weights(home) == {"v1": 90, "v2": 10})
    yield home
    for name in ("v1", "v2"):
        with contextlib.suppress(ApiError):
            home.api.delete(f"{home.collection}/{name}")
    home.wait("all gone", lambda: all(home.workload(name) is None for name in ("v1", "v2")))
    home.wait("no route", lambda: home.child(f"{GROUP}/v1", "httproutes", "group.chat") is None)


def test_canary_is_promoted_and_the_route_outlives_the_model_that_made_it(group: Deployments) -> None:
    """With the real garbage collector, and by the rights and policies of the operator's account."""
    uid = group.api.get(SHARED)["metadata"]["uid"]
    for old, new in ((50, 50), (0, 100)):
        for name, weight in (("v1", old), ("v2", new)):
            group.change(name, endpoint={"gateway": {"weight": weight}})
        group.wait("promoted", lambda old=old, new=new: weights(group) == {"v1": old, "v2": new})
    group.api.merge(f"{SHARED}/status", {"status": {"parents": [a_report()]}})
    group.until("v2", "ServingNotEnforced")
    assert group.get("v2")["status"]["endpoint"]["url"] == f"http://{ADDRESS}/{NAMESPACE}/chat/v1"

    group.api.delete(f"{group.collection}/v1")
    group.wait("one member", lambda: weights(group) == {"v2": 100})
    group.wait("one owner", lambda: len(group.api.get(SHARED)["metadata"]["ownerReferences"]) == 1)
    assert group.api.get(SHARED)["metadata"]["uid"] == uid


SPOILED_GROUPS: dict[str, tuple[Manifest, str]] = {
    "a backend that owns nothing": ({"spec": {"backend": "other"}}, "spec.rules[].backendRefs"),
    "no owner": ({"metadata": {"ownerReferences": []}}, "metadata.ownerReferences"),
    "an owner of another kind": (
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "v1", "uid": "x"}]}},
        "metadata.ownerReferences",
    ),
    "another group": ({"metadata": {"name": "group.other"}}, "metadata.labels"),
    "no label of the group": (
        {"metadata": {"labels": {"app.kubernetes.io/managed-by": "hermetic"}}},
        "metadata.labels",
    ),
    "a finalizer": ({"metadata": {"finalizers": ["example.com/hold"]}}, "metadata.finalizers"),
    "the name of a model": ({"metadata": {"name": "v1"}}, "metadata.ownerReferences"),
}


def test_stolen_token_of_the_operator_writes_no_other_route_of_a_group(group: Deployments) -> None:
    account, route = Api(group.operator.kubeconfig), group.api.get(SHARED)
    plain = {name: route["metadata"][name] for name in ("name", "labels", "ownerReferences")}
    for case, (change, message) in SPOILED_GROUPS.items():
        manifest = {**copy.deepcopy(route), "metadata": {**copy.deepcopy(plain), **change.get("metadata", {})}}
        manifest.pop("status", None)
        if "spec" in change:
            manifest["spec"]["rules"][0]["backendRefs"][0]["name"] = change["spec"]["backend"]
        with pytest.raises(ApiError) as refused:
            account.create(f"{ROUTES}?dryRun=All", manifest)
        # Where several policies refuse, the API server tells one of them.
        assert message in str(refused.value) or "spec.rules[].backendRefs" in str(refused.value), case

    of_a_tenant = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "group.theirs"},
        "spec": route["spec"],
    }
    group.api.create(ROUTES, of_a_tenant)
    with pytest.raises(ApiError, match=r"metadata\.labels"):
        account.delete(f"{ROUTES}/group.theirs")
    group.api.delete(f"{ROUTES}/group.theirs")
