"""What the store knows of the gateway of a model, in whatever order news comes, and whom a change concerns."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest

from hermetic.kinds import GATEWAY, HTTP_ROUTE
from hermetic.kube.owners import Key
from hermetic.kube.store import Store
from hermetic.kube.store_lists import StoreList
from hermetic.kube.watch_specs import WatchSpec
from hermetic.objects.http_route import RouteSettings, http_route
from hermetic.objects.names import Owner
from hermetic.plan.snapshot import ClusterSnapshot
from tests.gateways import ADDRESS, ALLOWED, allowing
from tests.gateways import GATEWAY as REFERENCE
from tests.gateways import a_gateway as as_reported
from tests.scenarios import Manifest, a_baked_model
from tests.snapshots import living, spec_of

_VERSIONS = itertools.count(1)
KEY: Key = ("team-a", "m")


def asking(namespace: str, *, created: int = 0, stalled: str = "", **gateway: Any) -> Manifest:
    """A ModelDeployment that asks for the gateway; all have the same model name."""
    manifest = a_baked_model("m", endpoint={"gateway": {**REFERENCE, **gateway}})
    manifest["metadata"] |= {
        "namespace": namespace,
        "uid": f"uid-{namespace}",
        "resourceVersion": str(next(_VERSIONS)),
        "generation": 1,
        "creationTimestamp": f"2026-11-21T12:00:{created:02}Z",
    }
    if stalled:
        manifest["status"] = {"conditions": [{"type": "Stalled", "status": "True", "reason": stalled}]}
    return manifest


def its_route(model: Manifest, **settings: Any) -> Manifest:
    """The live route of a ModelDeployment."""
    spec, metadata = spec_of(model), model["metadata"]
    assert spec.endpoint.gateway is not None
    owner = Owner(metadata["namespace"], metadata["name"], metadata["uid"])
    route = http_route(owner, "vLLM", spec.model.name, spec.endpoint, spec.endpoint.gateway, RouteSettings(**settings))
    live = living(route)
    live["metadata"] |= {"resourceVersion": str(next(_VERSIONS)), "uid": f"route-of-{metadata['uid']}"}
    return live


def a_gateway(*addresses: str) -> Manifest:
    return as_reported(addresses=addresses or (ADDRESS,), version=next(_VERSIONS))


def a_service(selector: dict[str, str], kind: str = "LoadBalancer", namespace: str = "envoy") -> Manifest:
    """In front of the pods of the gateway; a load balancer without the annotation is public."""
    metadata = {"name": "edge", "namespace": namespace, "uid": "edge", "resourceVersion": str(next(_VERSIONS))}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"type": kind, "selector": selector}}


def a_store(*manifests: Manifest) -> Store:
    store = Store(allowing(ALLOWED))
    for manifest in manifests:
        store.put(manifest)
    return store


def snapshot_of(store: Store, namespace: str = "team-a") -> ClusterSnapshot:
    snapshot = store.snapshot((namespace, "m"))
    assert snapshot is not None
    return snapshot


@pytest.mark.parametrize("order", [1, -1], ids=["model first", "gateway first"])
def test_gateway_of_a_model_is_in_its_snapshot_with_what_is_read_of_it(order: int) -> None:
    store = a_store(*[asking("team-a"), a_gateway()][::order])
    gateway = snapshot_of(store).gateway.manifest
    assert gateway is not None
    assert gateway["status"]["addresses"] == [{"type": "IPAddress", "value": ADDRESS}]
    assert "gatewayClassName" not in gateway["spec"]


def test_gateway_that_is_not_listed_is_not_kept() -> None:
    another = a_gateway()
    another["metadata"]["name"] = "another"
    store = a_store(asking("team-a", name="another"))
    assert store.put(another) == frozenset()
    assert snapshot_of(store).gateway.manifest is None
    assert store.count(GATEWAY) == 0


def test_change_of_a_gateway_concerns_its_models_and_its_deletion_is_seen() -> None:
    first = a_gateway()
    store = a_store(asking("team-a"), asking("team-b", name="another"), first)
    assert KEY in store.put(a_gateway("20.1.2.3"))
    again = a_gateway("20.1.2.3")
    assert store.put(again) == frozenset(), "nothing that is read has changed"
    assert KEY in store.drop(again)
    assert snapshot_of(store).gateway.manifest is None


def test_list_without_the_gateway_removes_it() -> None:
    store = a_store(asking("team-a"), a_gateway())
    assert KEY in store.sweep(GATEWAY, set(), next(_VERSIONS))
    assert snapshot_of(store).gateway.manifest is None


# ---------------------------------------------------------------------- Services in front of the gateway's pods

OPEN = {
    "the labels": ({"gateway": "models"}, "LoadBalancer", "envoy", True),
    "more labels": ({"gateway": "models", "app": "envoy"}, "LoadBalancer", "envoy", True),
    "a node port": ({"gateway": "models"}, "NodePort", "envoy", True),
    "inside the cluster": ({"gateway": "models"}, "ClusterIP", "envoy", False),
    "labels that the configuration does not name": ({"app": "envoy"}, "LoadBalancer", "envoy", True),
    "pods that are not known": ({}, "LoadBalancer", "envoy", True),
    "other pods": ({"gateway": "others"}, "LoadBalancer", "envoy", False),
    "other pods by one of two labels": ({"gateway": "others", "app": "envoy"}, "LoadBalancer", "envoy", False),
    "another namespace": ({"gateway": "models"}, "LoadBalancer", "team-b", False),
}


@pytest.mark.parametrize("case", OPEN)
@pytest.mark.parametrize("order", [1, -1], ids=["model first", "Service first"])
def test_service_in_front_of_the_gateway_that_is_not_private_is_seen(case: str, order: int) -> None:
    selector, kind, namespace, is_open = OPEN[case]
    store = a_store(*[asking("team-a"), a_service(selector, kind, namespace)][::order])
    assert ("Service 'envoy/edge' in front of its pods" in snapshot_of(store).gateway.exposed_by) is is_open


def test_change_of_that_service_concerns_the_models() -> None:
    store = a_store(asking("team-a"))
    public = a_service({"gateway": "models"})
    assert KEY in store.put(public)
    assert KEY in store.drop(public)
    assert snapshot_of(store).gateway.exposed_by == ""


def an_ingress(*addresses: str, service: str = "edge") -> Manifest:
    """To a Service in front of the pods of the gateway."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "envoy", "uid": "web", "resourceVersion": str(next(_VERSIONS))},
        "spec": {"defaultBackend": {"service": {"name": service}}},
        "status": {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}},
    }


def a_route(gateway: str, *, namespace: str, service: str) -> Manifest:
    """A route of others to a Service of its namespace."""
    return {
        "apiVersion": HTTP_ROUTE.api_version,
        "kind": HTTP_ROUTE.kind,
        "metadata": {"name": "web", "namespace": namespace, "uid": "way", "resourceVersion": str(next(_VERSIONS))},
        "spec": {
            "parentRefs": [{"namespace": "gateways", "name": gateway}],
            "rules": [{"backendRefs": [{"name": service}]}],
        },
    }


INSIDE = ({"gateway": "models"}, "ClusterIP")


@pytest.mark.parametrize("order", [1, -1], ids=["Service first", "Ingress first"])
def test_ingress_in_front_of_the_gateway_that_is_not_private_is_seen_and_told(order: int) -> None:
    store = a_store(asking("team-a"), *[a_service(*INSIDE), an_ingress("20.1.2.3")][::order])
    reason = snapshot_of(store).gateway.exposed_by
    assert reason.startswith(
        "has the Ingress 'envoy/web' in front of its Service 'edge', which has the address 20.1.2.3"
    )
    assert KEY in store.put(an_ingress("10.0.0.4"))
    assert snapshot_of(store).gateway.exposed_by == ""
    assert KEY in store.put(an_ingress("20.1.2.3"))
    assert KEY in store.drop(an_ingress("20.1.2.3"))
    assert snapshot_of(store).gateway.exposed_by == ""


def test_another_gateway_in_front_of_the_gateway_is_seen_and_told() -> None:
    def edge(*addresses: str) -> Manifest:
        gateway = a_gateway(*addresses)
        gateway["metadata"] |= {"name": "edge", "uid": "uid-of-the-edge"}
        return gateway

    store = a_store(asking("team-a"), a_gateway(), a_service(*INSIDE), edge("10.0.0.4"))
    store.put(a_route("edge", namespace="envoy", service="edge"))
    assert snapshot_of(store).gateway.exposed_by == ""
    assert KEY in store.put(edge("20.1.2.3"))
    assert "HTTPRoute 'envoy/web' in front of its Service 'edge'" in snapshot_of(store).gateway.exposed_by


def test_gateway_that_leads_to_its_own_pods_is_read_once() -> None:
    store = a_store(asking("team-a"), a_gateway(), a_service(*INSIDE))
    store.put(a_route("models", namespace="envoy", service="edge"))
    assert snapshot_of(store).gateway.exposed_by == ""


def test_route_of_others_by_a_gateway_with_a_public_service_is_an_exposure() -> None:
    model = asking("team-a")
    owners = its_route(model)["metadata"]["ownerReferences"]
    service = living({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "m", "namespace": "team-a"}})
    service["metadata"] |= {"resourceVersion": str(next(_VERSIONS)), "ownerReferences": owners}
    service["spec"] = {"type": "ClusterIP", "selector": {"hermetic.dev/modeldeployment": "m"}}
    del model["spec"]["endpoint"]["gateway"]
    store = a_store(model, service, a_gateway(), a_route("models", namespace="team-a", service="m"))
    assert snapshot_of(store).exposures == ()
    assert KEY in store.put(a_service({"gateway": "models"}))
    (exposure,) = snapshot_of(store).exposures
    assert exposure.why.startswith("is served by Gateway 'gateways/models', which has the Service 'envoy/edge'")


# ---------------------------------------------------------------------- its own route


def test_own_route_is_a_child_and_no_exposure_whatever_is_known_of_the_gateway() -> None:
    model = asking("team-a")
    store = a_store(model)
    assert KEY in store.put(its_route(model))
    snapshot = snapshot_of(store)
    assert (HTTP_ROUTE.kind, "m") in snapshot.children
    assert snapshot.exposures == ()


@pytest.mark.parametrize("spoiled", ["gateway", "backend", "owner"])
def test_own_route_that_leads_otherwise_is_an_exposure(spoiled: str) -> None:
    model = asking("team-a")
    route = its_route(model)
    owners = copy.deepcopy(route["metadata"]["ownerReferences"])
    if spoiled == "gateway":
        route["spec"]["parentRefs"][0]["name"] = "public"
    elif spoiled == "backend":
        route["spec"]["rules"][0]["backendRefs"].append({"group": "example.com", "kind": "Pool", "name": "any"})
    else:
        route["metadata"]["ownerReferences"][0]["uid"] = "another"
    service = living({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "m", "namespace": "team-a"}})
    service["metadata"] |= {
        "resourceVersion": str(next(_VERSIONS)), "ownerReferences": owners,
    }  # fmt: skip
    service["spec"] = {"type": "ClusterIP", "selector": {"hermetic.dev/modeldeployment": "m"}}
    store = a_store(model, service, route)
    assert [exposure.kind for exposure in snapshot_of(store).exposures] == ["HTTPRoute"]


def test_route_of_others_is_not_stored() -> None:
    route = its_route(asking("team-a"))
    del route["metadata"]["labels"], route["metadata"]["ownerReferences"]
    store = a_store(asking("team-a"), route)
    assert store.count(HTTP_ROUTE) == 0


# ---------------------------------------------------------------------- several models that meet


def holders(store: Store, *namespaces: str) -> list[tuple[str, str]]:
    facts = [snapshot_of(store, namespace).gateway for namespace in namespaces]
    return [(gateway.path_holder, gateway.model_name_holder) for gateway in facts]


@pytest.mark.parametrize("order", [1, -1], ids=["oldest first", "oldest last"])
def test_name_of_a_model_leads_to_the_oldest_that_has_it_and_each_path_to_its_own(order: int) -> None:
    store = a_store(*[asking("team-a", created=2), asking("team-b", created=1)][::order])
    assert holders(store, "team-a", "team-b") == [("", "team-b/m"), ("", "")]


def test_model_whose_route_has_the_name_keeps_it() -> None:
    younger = asking("team-a", created=2)
    store = a_store(asking("team-b", created=1), younger, its_route(younger))
    assert holders(store, "team-a", "team-b") == [("", ""), ("", "team-a/m")]


def test_model_whose_route_lacks_the_name_does_not_keep_it() -> None:
    younger = asking("team-a", created=2)
    store = a_store(asking("team-b", created=1), younger, its_route(younger, has_model_name=False))
    assert holders(store, "team-a", "team-b") == [("", "team-b/m"), ("", "")]


def test_models_under_different_host_names_do_not_meet() -> None:
    store = a_store(
        asking("team-a", created=2, hostname="a.internal"), asking("team-b", created=1, hostname="b.internal")
    )
    assert holders(store, "team-a", "team-b") == [("", ""), ("", "")]
    # Without a host name it is for all of them.
    store.put(asking("team-b", created=1))
    assert holders(store, "team-a", "team-b") == [("", "team-b/m"), ("", "")]


def test_model_that_is_refused_keeps_no_name_from_others() -> None:
    store = a_store(asking("team-a", created=2), asking("team-b", created=1, stalled="RegistryNotAllowed"))
    assert holders(store, "team-a", "team-b")[0] == ("", "")


def test_name_passes_on_when_its_model_goes_and_the_next_is_told() -> None:
    first = asking("team-b", created=1)
    store = a_store(asking("team-a", created=2), first)
    assert KEY in store.drop({**first, "metadata": {**first["metadata"], "resourceVersion": str(next(_VERSIONS))}})
    assert holders(store, "team-a") == [("", "")]


def test_same_path_of_two_models_belongs_to_one() -> None:
    store = Store(allowing({**ALLOWED, "paths": ["/"]}))
    for manifest in (asking("team-a", created=2, path="/chat"), asking("team-b", created=1, path="/chat")):
        store.put(manifest)
    assert holders(store, "team-a", "team-b") == [("team-b/m", "team-b/m"), ("", "")]


def test_path_that_is_not_allowed_is_kept_from_nobody() -> None:
    store = a_store(asking("team-a", created=2, path="/team-a/chat"), asking("team-b", created=1, path="/team-a/chat"))
    assert holders(store, "team-a")[0] == ("", "")


# ---------------------------------------------------------------------- kinds that are not served


@pytest.mark.parametrize("is_served", [True, False], ids=["may not be listed", "is not served"])
def test_gateway_and_route_of_a_kind_that_was_away_for_a_moment_are_read_again(is_served: bool) -> None:
    model = asking("team-a")
    gateway, route = a_gateway(), its_route(model)
    store = a_store(model, gateway, route)
    for kind in (GATEWAY, HTTP_ROUTE):
        StoreList(store, WatchSpec(kind, optional=True), None, lambda _: None).refused(is_served=is_served)
    snapshot = snapshot_of(store)
    assert (snapshot.gateway.manifest, (HTTP_ROUTE.kind, "m") in snapshot.children) == (None, False)
    for kind, manifest in ((GATEWAY, gateway), (HTTP_ROUTE, route)):
        again = StoreList(store, WatchSpec(kind, optional=True), None, lambda _: None)
        again.begin(str(next(_VERSIONS)))
        again.add(manifest)
        again.complete()
    snapshot = snapshot_of(store)
    assert snapshot.gateway.manifest is not None
    assert (HTTP_ROUTE.kind, "m") in snapshot.children
    store.put(a_gateway("20.1.2.3"))
    assert snapshot_of(store).gateway.manifest["status"]["addresses"][0]["value"] == "20.1.2.3"


@pytest.mark.parametrize("parent", ["models", {"parentRef": "models"}, {"parentRef": {"name": "x"}, "conditions": 1}])
def test_report_about_a_route_that_is_of_another_form_is_not_known(parent: Any) -> None:
    """A definition of others may allow any value: no reconcile must stumble over it again and again."""
    model = asking("team-a")
    route = {**its_route(model), "status": {"parents": [parent]}}
    store = a_store(model, a_gateway())
    StoreList(store, WatchSpec(HTTP_ROUTE, optional=True), None, lambda _: None).add(route)
    snapshot = snapshot_of(store)
    assert (snapshot.malformed, (HTTP_ROUTE.kind, "m") in snapshot.children) == (("httproutes",), False)


def test_kinds_that_are_not_served_are_absent_until_they_are_listed() -> None:
    store = a_store(asking("team-a"))
    assert store.note_served(GATEWAY, may_be_listed=True, is_served=False) == {KEY}
    assert snapshot_of(store).absent == ("gateways",)
    assert snapshot_of(store).unseen == ()
    assert store.note_served(GATEWAY, may_be_listed=False) == {KEY}
    assert (snapshot_of(store).absent, snapshot_of(store).unseen) == ((), ("gateways",))
