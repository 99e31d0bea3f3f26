"""Where Services, EndpointSlices, Ingresses and routes lead, and why one is not private."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.routes import ROUTES as AUDITED
from hermetic.kinds import BY_API_VERSION, ROUTES
from hermetic.kube.exposure_index import ROOM, SMALL, ExposureIndex
from hermetic.objects.names import Owner
from hermetic.plan.exposure.exposing_objects import MOST_ADDRESSES
from hermetic.plan.snapshot import Exposure
from tests.scenarios import Manifest
from tests.snapshots import POLICY
from tests.traced_memory import traced_memory

OWNER = Owner("team-a", "llama", "uid-of-llama")
MODEL = {"hermetic.dev/modeldeployment": "llama", "app.kubernetes.io/instance": "llama", "tier": "chat"}
INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"
KEPT = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
GATEWAYS = "gateway.networking.k8s.io/v1"
VERSIONS = {kind: version for version, kind in reversed(BY_API_VERSION)}
BOOK = [
    {"manager": "kubectl-create", "operation": "Update", "time": "2026-11-22T10:00:00Z", "fieldsV1": {}},
    {"manager": "mallory\n\u202e", "operation": "Update", "time": "2026-11-22T11:00:00Z", "fieldsV1": {}},
    {"manager": "cloud", "operation": "Update", "subresource": "status", "time": "2026-11-22T12:00:00Z"},
]


def an_object(kind: str, name: str, namespace: str = "team-a", version: int = 7, **fields: Any) -> Manifest:
    metadata = {
        key: fields.pop(key) for key in ("annotations", "labels", "managedFields", "ownerReferences") if key in fields
    }
    default_metadata = {
        "namespace": namespace,
        "name": name,
        "uid": f"uid-{kind}-{namespace}-{name}",
        "resourceVersion": str(version),
    }
    return {
        "apiVersion": fields.pop("apiVersion", VERSIONS[kind]),
        "kind": kind,
        "metadata": {**default_metadata, **metadata},
        **fields,
    }


def a_service(name: str = "other", namespace: str = "team-a", **fields: Any) -> Manifest:
    spec = {"type": "ClusterIP", "selector": {"tier": "chat"}, **fields.pop("spec", {})}
    return an_object("Service", name, namespace, spec=spec, **fields)


def own_service(**fields: Any) -> Manifest:
    owned = [{"kind": "ModelDeployment", "name": "llama", "uid": OWNER.uid, "controller": True}]
    selector = {"hermetic.dev/modeldeployment": "llama"}
    return a_service("llama", ownerReferences=owned, spec={"selector": selector, **fields.pop("spec", {})}, **fields)


def a_slice(service: str = "other", *addresses: str, namespace: str = "team-a", **labels: str) -> Manifest:
    fields = {**({"kubernetes.io/service-name": service} if service else {}), **labels}
    endpoints = [{"addresses": [address]} for address in addresses or ("10.244.0.9",)]
    return an_object("EndpointSlice", f"{service}-x", namespace, labels=fields, addressType="IPv4", endpoints=endpoints)


def an_ingress(service: str = "llama", *addresses: str, name: str = "chat", default: bool = False) -> Manifest:
    backend = {"service": {"name": service, "port": {"number": 8000}}}
    rules = [{"http": {"paths": [{"path": "/", "backend": backend}]}}]
    spec = {"defaultBackend": backend} if default else {"rules": rules}
    return an_object("Ingress", name, spec=spec, status=balancer(*addresses))


def a_route(
    kind: str = "HTTPRoute",
    namespace: str = "team-a",
    parent: Manifest | None = None,
    more: Sequence[Manifest] = (),
    **backend: Any,
) -> Manifest:
    rules = [{"backendRefs": [{"name": "llama", **backend}, *more]}]
    return an_object(kind, "chat", namespace, spec={"parentRefs": [parent or {"name": "front"}], "rules": rules})


def a_gateway(*addresses: str, namespace: str = "team-a") -> Manifest:
    return an_object("Gateway", "front", namespace, status={"addresses": [{"value": address} for address in addresses]})


def balancer(*addresses: str) -> Manifest:
    return {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}}


def a_pod(name: str = "llama-0", *addresses: str, **status: Any) -> Manifest:
    ips = [{"ip": address} for address in addresses or ("10.244.0.9",)]
    return an_object("Service", name, labels=MODEL, status={"podIPs": ips, **status}) | {"kind": "Pod"}


def found(*manifest: Manifest) -> list[Exposure]:
    """What is found of the model with one pod, in whatever order the objects were seen."""
    answers = []
    for order in (manifest, manifest[::-1]):
        exposure_index = ExposureIndex(POLICY)
        for at, planted in enumerate((*order, None)):
            if planted is None or (order is manifest and at == 0):
                exposure_index.put_pod(a_pod(), OWNER.key)
            if planted is not None:
                exposure_index.put(planted)
        answers.append(list(exposure_index.into(OWNER)))
    assert answers[0] == answers[1]
    return answers[0]


def named(*manifest: Manifest) -> list[str]:
    return [f"{exposure.kind} {exposure.namespace}/{exposure.name}" for exposure in found(*manifest)]


# ---------------------------------------------------------------------- Services

OPEN: dict[str, dict[str, Any]] = {
    "a load balancer": {"spec": {"type": "LoadBalancer"}},
    "a load balancer that is nearly internal": {"spec": {"type": "LoadBalancer"}, "annotations": {INTERNAL: "True"}},
    "a load balancer of another class": {
        "spec": {"type": "LoadBalancer", "loadBalancerClass": "x/y"},
        "annotations": {INTERNAL: "true"},
    },
    "an internal one with a public address": {
        "spec": {"type": "LoadBalancer"},
        "annotations": {INTERNAL: "true"},
        "status": balancer("20.1.2.3"),
    },
    "an internal one that asks for a public address": {
        "spec": {"type": "LoadBalancer"},
        "annotations": {INTERNAL: "true", "service.beta.kubernetes.io/azure-pip-name": "mine"},
    },
    "a name outside": {
        "spec": {"type": "LoadBalancer"},
        "annotations": {INTERNAL: "true"},
        "status": {"loadBalancer": {"ingress": [{"hostname": "chat.example.com"}]}},
    },
    "a node port": {"spec": {"type": "NodePort", "ports": [{"nodePort": 30123}]}},
    "an external IP": {"spec": {"externalIPs": ["10.0.0.9"]}},
    "published": {"annotations": {"external-dns.alpha.kubernetes.io/hostname": "chat.example.com"}},
    "shared with other clusters": {"annotations": {"service.cilium.io/global": "true"}},
}
PRIVATE: dict[str, dict[str, Any]] = {
    "inside": {},
    "headless": {"spec": {"clusterIP": "None"}},
    "internal": {"spec": {"type": "LoadBalancer"}, "annotations": {INTERNAL: "true"}, "status": balancer("10.1.2.3")},
    "switched off": {"annotations": {"tailscale.com/expose": "false"}},
}


@pytest.mark.parametrize("how", OPEN)
def test_a_service_of_others_that_selects_our_pods_and_is_open_is_found(how: str) -> None:
    assert named(a_service(**OPEN[how])) == ["Service team-a/other"]


@pytest.mark.parametrize("how", PRIVATE)
def test_a_private_one_is_not(how: str) -> None:
    assert not named(a_service(**PRIVATE[how]))


@pytest.mark.parametrize(
    "spec",
    [
        {"selector": {"tier": "web"}},
        {"selector": {"tier": "chat", "more": "x"}},
        {"selector": {}},
        {"selector": None},
        {"type": "ExternalName", "externalName": "elsewhere.other.svc"},
    ],
)
def test_one_that_leads_elsewhere_is_not(spec: Manifest) -> None:
    assert not named(a_service(spec={"type": "LoadBalancer", **spec}))


def test_one_of_another_namespace_selects_nothing_here() -> None:
    assert not named(a_service(namespace="team-b", spec={"type": "LoadBalancer"}))


def test_the_last_writer_is_named_in_one_line_and_never_that_of_the_status() -> None:
    (exposure,) = found(a_service(spec={"type": "NodePort"}, managedFields=BOOK))
    assert exposure.writer == "'mallory \ufffd' (Update, 2026-11-22T11:00:00Z)"


def test_a_record_of_managers_that_cannot_be_read_names_none() -> None:
    for book in (None, "x", [], ["x"], [{}], [{"manager": "", "operation": "Update"}]):
        (exposure,) = found(a_service(spec={"type": "NodePort"}, managedFields=book))
        assert exposure.writer == ""


def test_a_long_name_of_a_writer_is_cut() -> None:
    (exposure,) = found(
        a_service(spec={"type": "NodePort"}, managedFields=[{"manager": "m" * 5000, "time": "t" * 5000}])
    )
    assert len(exposure.writer) < 200


def test_a_selector_that_is_too_large_to_keep_counts_as_one_that_fits() -> None:
    assert named(a_service(spec={"type": "NodePort", "selector": {f"k{n}": "v" for n in range(65)}}))


# ---------------------------------------------------------------------- slices


def test_a_slice_by_hand_in_the_model_s_namespace_is_found_whatever_its_service() -> None:
    assert named(a_service(spec={"selector": None}), a_slice()) == ["EndpointSlice team-a/other-x"]


def test_one_that_another_controller_mirrors_is_by_hand_too() -> None:
    mirrored = {"endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"}
    assert named(a_service(spec={"selector": None}), a_slice(**mirrored))


def test_one_that_claims_to_be_the_controller_s_is_not_believed_where_the_service_selects_nothing() -> None:
    assert named(a_service(spec={"selector": None}), a_slice(**KEPT))


def test_what_the_controller_keeps_says_no_more_than_the_selector() -> None:
    """An address that another pod had before: the slice is behind by a moment."""
    assert not named(a_service(spec={"selector": {"tier": "web"}}), a_slice(**KEPT))
    assert not named(own_service(), a_slice("llama", **KEPT))


def test_the_service_of_another_namespace_behind_which_our_pods_are_is_found_where_it_is_open() -> None:
    leads = a_slice(namespace="team-b")
    inside, outside = ({"spec": {"selector": None, "type": how}} for how in ("ClusterIP", "NodePort"))
    assert not named(a_service(namespace="team-b", **inside), leads)
    assert named(a_service(namespace="team-b", **outside), leads) == ["Service team-b/other"]


def test_a_slice_of_no_service_is_found_in_any_namespace() -> None:
    assert named(a_slice("", namespace="team-b")) == ["EndpointSlice team-b/-x"]


@pytest.mark.parametrize("spelled", ["::ffff:10.244.0.9", "010.244.000.009"])
def test_an_address_in_another_spelling_is_the_same(spelled: str) -> None:
    assert named(a_slice("other", spelled))


@pytest.mark.parametrize("address", ["10.244.0.99", "0.244.0.9", "10.244.0.9.example.com", "9"])
def test_an_address_that_only_looks_like_it_is_not(address: str) -> None:
    assert not named(a_slice("other", address))


def test_a_pod_that_ended_has_no_address_any_more() -> None:
    exposure_index = ExposureIndex(POLICY)
    exposure_index.put(a_slice())
    exposure_index.put_pod(a_pod(), OWNER.key)
    assert exposure_index.into(OWNER)
    exposure_index.put_pod(a_pod(phase="Failed"), OWNER.key)
    assert not exposure_index.into(OWNER)


def test_of_two_pods_with_one_address_the_other_keeps_it() -> None:
    """Pods of the host's network share their node's address."""
    for gone in ("uid-a", "uid-b"):
        exposure_index = ExposureIndex(POLICY)
        exposure_index.put(a_slice())
        for uid in ("uid-a", "uid-b"):
            pod = a_pod()
            pod["metadata"]["uid"] = uid
            exposure_index.put_pod(pod, OWNER.key)
        exposure_index.drop_pod(gone)
        assert exposure_index.into(OWNER)
    exposure_index.drop_pod("uid-a")
    assert not exposure_index.into(OWNER)


def test_the_manager_of_the_field_that_opens_is_named_and_not_who_came_later() -> None:
    of = {name: {"f:spec": {f"f:{name}": {}}} for name in ("type", "ports")}
    book = [
        {"manager": "helm", "operation": "Update", "time": "2026-11-22T08:00:00Z", "fieldsV1": of["type"]},
        {"manager": "ci", "operation": "Update", "time": "2026-11-22T12:00:00Z", "fieldsV1": of["ports"]},
    ]
    public = a_service(spec={"type": "NodePort", "ports": [{"nodePort": 30000}]}, managedFields=book)
    (exposure,) = found(public)
    assert exposure.writer == "'helm' (Update, 2026-11-22T08:00:00Z)"


# ---------------------------------------------------------------------- Ingresses


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize("addresses", [(), ("20.1.2.3",), ("10.0.0.4", "20.1.2.3")])
def test_an_ingress_to_our_service_is_found_unless_its_addresses_are_private(
    addresses: tuple[str, ...],
    default: bool,
) -> None:
    assert named(own_service(), an_ingress("llama", *addresses, default=default)) == ["Ingress team-a/chat"]
    assert not named(own_service(), an_ingress("llama", "10.0.0.4", default=default))


@pytest.mark.parametrize("name", ["azure/application-gateway", "azure-application-gateway", "azure-alb-external"])
@pytest.mark.parametrize("by_field", [True, False])
def test_an_ingress_of_a_class_that_makes_public_addresses_is_found_whatever_address_it_says(
    name: str, by_field: bool
) -> None:
    ingress = an_ingress("llama", "10.0.0.4")
    if by_field:
        ingress["spec"]["ingressClassName"] = name
    else:
        ingress["metadata"]["annotations"] = {"kubernetes.io/ingress.class": name}
    assert named(own_service(), ingress) == ["Ingress team-a/chat"]
    ingress["metadata"].setdefault("annotations", {})["appgw.ingress.kubernetes.io/use-private-ip"] = "true"
    # Application Gateway for Containers does not read it.
    assert named(own_service(), ingress) == (["Ingress team-a/chat"] if name == "azure-alb-external" else [])


def test_an_ingress_with_two_classes_is_of_both() -> None:
    ingress = an_ingress("llama", "10.0.0.4")
    ingress["spec"]["ingressClassName"] = "nginx"
    ingress["metadata"]["annotations"] = {"kubernetes.io/ingress.class": "azure/application-gateway"}
    assert named(own_service(), ingress) == ["Ingress team-a/chat"]


def test_an_ingress_to_a_service_of_others_before_our_pods_is_found() -> None:
    assert named(a_service(), an_ingress("other")) == ["Ingress team-a/chat"]
    assert not named(a_service(spec={"selector": {"tier": "web"}}), an_ingress("other"))


def test_a_name_that_stands_for_our_service_is_followed() -> None:
    alias = {"type": "ExternalName", "selector": None}
    for target in ("llama.team-a.svc.cluster.local", "llama.team-a.svc", "LLAMA.team-a.svc.cluster.local."):
        manifests = (own_service(), a_service("alias", spec={**alias, "externalName": target}), an_ingress("alias"))
        assert named(*manifests) == ["Ingress team-a/chat"], target
    twice = a_service("again", spec={**alias, "externalName": "alias.team-a.svc"})
    assert named(own_service(), manifests[1], twice, an_ingress("again")) == ["Ingress team-a/chat"]
    itself = a_service("again", spec={**alias, "externalName": "again.team-a.svc"})
    assert not named(itself, an_ingress("again"))


# ---------------------------------------------------------------------- routes


@pytest.mark.parametrize("kind", ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"])
def test_a_route_to_our_service_is_found_unless_its_gateways_are_private(kind: str) -> None:
    assert named(own_service(), a_route(kind), a_gateway("20.1.2.3")) == [f"{kind} team-a/chat"]
    assert named(own_service(), a_route(kind), a_gateway()) == [f"{kind} team-a/chat"]
    assert named(own_service(), a_route(kind)) == [f"{kind} team-a/chat"]
    assert not named(own_service(), a_route(kind), a_gateway("10.0.0.4"))


def test_a_route_inside_a_mesh_is_private_and_one_behind_something_unknown_is_not() -> None:
    assert not named(own_service(), a_route(parent={"kind": "Service", "group": "", "name": "llama"}))
    assert named(own_service(), a_route(parent={"kind": "XListenerSet", "group": "gateway.x", "name": "l"}))
    of_others = {"kind": "Gateway", "group": "networking.istio.io", "name": "front"}
    assert named(own_service(), a_route(parent=of_others), a_gateway("10.0.0.4"))


@pytest.mark.parametrize("parents", [[], [{"name": "front"}]], ids=["alone", "beside a private Gateway"])
@pytest.mark.parametrize(("by_default", "exposes"), [("All", True), ("Other", True), ("None", False), (None, False)])
def test_a_route_by_the_default_gateways_of_the_cluster_is_found(
    parents: list[Manifest], by_default: str | None, exposes: bool
) -> None:
    route = a_route()
    route["spec"] |= {"parentRefs": parents, **({"useDefaultGateways": by_default} if by_default else {})}
    assert bool(named(own_service(), route, a_gateway("10.0.0.4"))) is exposes


def test_every_version_of_a_route_that_the_audit_reads_is_watched() -> None:
    """But HTTPRoutes of releases before 1.0, which serve them as v1beta1 alone."""
    read = {
        (f"gateway.networking.k8s.io/{version}", kind.KIND)
        for kind in AUDITED
        for version in (kind.TYPE.split("/")[1], *kind.ALSO_SERVED_AS)
    }
    watched = {(kind.api_version, kind.kind) for kind in ROUTES}
    assert read - watched == {("gateway.networking.k8s.io/v1beta1", "HTTPRoute")}


@pytest.mark.parametrize("sends", ["requestMirror", "externalAuth"])
@pytest.mark.parametrize("of_the_backend", [True, False])
def test_a_filter_that_sends_requests_leads_as_requests_do(sends: str, of_the_backend: bool) -> None:
    filters = {"filters": [{"type": "x", sends: {"backendRef": {"name": "llama"}}}]}
    backend = {"name": "web", **(filters if of_the_backend else {})}
    rules = [{"backendRefs": [backend], **({} if of_the_backend else filters)}]
    assert named(own_service(), an_object("HTTPRoute", "web", spec={"parentRefs": [{"name": "front"}], "rules": rules}))


def test_a_pool_may_select_every_model_of_its_namespace() -> None:
    pool = {"kind": "InferencePool", "group": "inference.networking.k8s.io", "name": "pool"}
    elsewhere = {"name": "web"}
    assert named(own_service(), a_route(more=[pool], **elsewhere)) == ["HTTPRoute team-a/chat"]
    assert not named(own_service(), a_route(more=[pool], **elsewhere), a_gateway("10.0.0.4"))
    assert not named(own_service(), a_route(namespace="team-b", more=[pool], **elsewhere))


def test_a_route_of_another_namespace_counts_once_a_gateway_serves_it() -> None:
    """No tenant makes another's model unready by a route that no gateway is allowed to follow."""
    route = a_route(namespace="team-b")
    route["spec"]["rules"] = [{"backendRefs": [{"name": "llama", "namespace": "team-a"}]}]
    assert not named(own_service(), route)
    accepted = {"type": "Accepted", "status": "True", "reason": "Accepted"}
    refused = {"type": "ResolvedRefs", "status": "False", "reason": "RefNotPermitted"}
    assert not named(own_service(), route | {"status": {"parents": [{"conditions": [accepted, refused]}]}})
    assert named(own_service(), route | {"status": {"parents": [{"conditions": [accepted]}]}}) == [
        "HTTPRoute team-b/chat"
    ]


# ---------------------------------------------------------------------- who is concerned


@pytest.mark.parametrize(
    "versions",
    [
        (a_service(spec={"type": "NodePort"}),),
        (a_service(spec={"selector": None}), a_slice()),
        (own_service(), an_ingress()),
        (a_service(), an_ingress("other")),
        (own_service(), a_route()),
        (own_service(), a_route(), a_gateway("10.0.0.4")),
    ],
    ids=["service", "slice", "ingress", "ingress to another", "route", "gateway"],
)
def test_the_model_is_told_when_a_way_comes_changes_and_goes(versions: tuple[Manifest, ...]) -> None:
    exposure_index, last = ExposureIndex(POLICY), versions[-1]
    exposure_index.put_pod(a_pod(), OWNER.key)
    for manifest in versions[:-1]:
        exposure_index.put(manifest)
    assert exposure_index.put(last) == {OWNER.key}
    assert not exposure_index.put(last), "nothing new"
    newer = {**last, "metadata": {**last["metadata"], "resourceVersion": "9"}}
    assert not exposure_index.put(newer), "nothing that counts is new"
    before = exposure_index.into(OWNER)
    assert exposure_index.drop({**newer, "metadata": {**newer["metadata"], "resourceVersion": "10"}}) == {OWNER.key}
    assert exposure_index.into(OWNER) != before


def test_what_a_list_no_longer_holds_is_forgotten() -> None:
    exposure_index, service = ExposureIndex(POLICY), a_service(spec={"type": "NodePort"})
    kind = BY_API_VERSION["v1", "Service"]
    exposure_index.put_pod(a_pod(), OWNER.key)
    exposure_index.put(service)
    assert not exposure_index.sweep(kind, set(), 6), "younger than the list"
    assert not exposure_index.sweep(kind, {service["metadata"]["uid"]}, 9)
    assert exposure_index.into(OWNER)
    assert exposure_index.sweep(kind, set(), 9) == {OWNER.key}
    assert not exposure_index.into(OWNER)


def hostile(number: int, addresses: int = MOST_ADDRESSES, service: str = "", **labels: str) -> Manifest:
    """A slice of another namespace; none of its addresses is of a pod."""
    many = [f"fd00:{number:x}:aaaa:bbbb:cccc:dddd:eeee:{of:x}" for of in range(1, addresses + 1)]
    endpoint_slice = a_slice(service, *many, namespace="team-b", **labels)
    endpoint_slice["metadata"] |= {"name": f"hostile-{number}", "uid": f"uid-of-hostile-{number}"}
    return endpoint_slice


def test_slices_of_very_many_addresses_take_a_bounded_room_and_are_named() -> None:
    exposure_index = ExposureIndex(POLICY)
    exposure_index.put_pod(a_pod(), OWNER.key)
    woken = [exposure_index.put(hostile(number)) for number in range(18)]
    more = [hostile(number) for number in (18, 19)]
    with traced_memory() as memory_use:
        woken += [exposure_index.put(manifest) for manifest in more]
        assert memory_use()[0] <= 8 * SMALL
    assert (woken[0], woken[-1]) == (frozenset(), {OWNER.key})
    reasons = {exposure.name: exposure.why for exposure in exposure_index.into(OWNER)}
    assert reasons["hostile-19"] == "belongs to no Service, names more addresses than are read"
    assert "hostile-0" not in reasons
    for number in range(20):
        gone = hostile(number)
        gone["metadata"]["resourceVersion"] = "10"
        exposure_index.drop(gone)
    assert not exposure_index.into(OWNER)
    assert not exposure_index.put(hostile(20)), "there is room again"


def test_a_slice_of_more_addresses_than_a_controller_writes_is_not_read() -> None:
    exposure_index = ExposureIndex(POLICY)
    exposure_index.put_pod(a_pod(), OWNER.key)
    endpoint_slice = hostile(1, 100_000)
    with traced_memory() as memory_use:
        assert exposure_index.put(endpoint_slice) == {OWNER.key}
        assert memory_use()[0] <= 32 * SMALL
    assert [exposure.name for exposure in exposure_index.into(OWNER)] == ["hostile-1"]


def test_a_service_before_a_slice_that_is_not_read_is_named_where_it_is_open() -> None:
    exposure_index = ExposureIndex(POLICY)
    exposure_index.put_pod(a_pod(), OWNER.key)
    exposure_index.put(a_service(namespace="team-b", spec={"selector": None, "type": "NodePort"}))
    exposure_index.put(hostile(1, 100_000, service="other"))
    assert [(exposure.kind, exposure.namespace) for exposure in exposure_index.into(OWNER)] == [("Service", "team-b")]


def test_what_the_controller_of_slices_keeps_names_no_manager_however_large() -> None:
    exposure_index = ExposureIndex(POLICY)
    exposure_index.put_pod(a_pod(), OWNER.key)
    slice_labels = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    for number in range(18):
        assert not exposure_index.put(hostile(number, service="chat", **slice_labels))
    more = [hostile(number, service="chat", **slice_labels) for number in (18, 19)]
    with traced_memory() as memory_use:
        assert not any(exposure_index.put(manifest) for manifest in more)
        assert memory_use()[0] <= 8 * SMALL
    assert not exposure_index.into(OWNER)


def test_services_ingresses_and_routes_of_a_megabyte_take_a_bounded_room_and_are_named() -> None:
    exposure_index = ExposureIndex(POLICY)
    exposure_index.put_pod(a_pod(), OWNER.key)
    routes = [a_route() for _ in range(10)]
    for number, route in enumerate(routes):
        backends = [{"name": f"{number}-{of}-{'x' * 200}"} for of in range(5_000)]
        route["spec"]["rules"] = [{"backendRefs": [*backends, {"name": "llama"}]}]
        route["metadata"]["name"] = f"hostile-{number}"
    with traced_memory() as memory_use:
        for route in routes:
            exposure_index.put(route)
        assert memory_use()[0] <= 2 * ROOM
    assert "hostile-9" in {exposure.name for exposure in exposure_index.into(OWNER)}


def test_other_models_are_not_concerned() -> None:
    exposure_index = ExposureIndex(POLICY)
    exposure_index.put_pod(a_pod(), OWNER.key)
    assert not exposure_index.put(a_service(spec={"selector": {"tier": "web"}, "type": "NodePort"}))
    assert not exposure_index.into(Owner("team-a", "phi", "uid-of-phi"))
