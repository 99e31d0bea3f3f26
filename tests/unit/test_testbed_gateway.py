"""The stand-in for a gateway controller decides as the Gateway API documents it: no cluster, no Envoy."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from typing import Any

import pytest

from testbed.certificates import Authority
from testbed.errors import CannotRunError
from testbed.gateway import conditions
from testbed.gateway.attachment import attachments
from testbed.gateway.conditions import GatewayCondition, RouteCondition
from testbed.gateway.controller import CONTROLLER
from testbed.gateway.definitions import GROUP, definitions, sources
from testbed.gateway.discovery import Delivery, version_of
from testbed.gateway.listeners import covers, gateway_conditions, intersection, listener_states
from testbed.gateway.snapshot import Manifest
from testbed.gateway.translation import resources
from tests.gateway_objects import (
    a_gateway,
    a_listener,
    a_route,
    a_rule,
    a_secret,
    a_service,
    a_slice,
    a_snapshot,
)

GO_PREFIXES = {
    "ClassCondition": "GatewayClassConditionStatus",
    "GatewayCondition": "GatewayCondition",
    "GatewayReason": "GatewayReason",
    "ListenerCondition": "ListenerCondition",
    "ListenerReason": "ListenerReason",
    "RouteCondition": "RouteCondition",
    "RouteReason": "RouteReason",
}
SOURCE: dict[str, Any] = {}


@pytest.mark.parametrize("name", GO_PREFIXES)
def test_every_condition_and_reason_is_a_constant_of_the_gateway_api(name: str) -> None:
    try:
        folder = sources() / "apis" / "v1"
    except CannotRunError as reason:
        pytest.skip(str(reason))
    text = "\n".join(file.read_text() for file in folder.glob("*_types.go"))
    constants = dict(re.findall(rf'^\t{GO_PREFIXES[name]}(\w+) +\w+ = "(\w+)"$', text, re.MULTILINE))
    values: type[StrEnum] = getattr(conditions, name)
    assert {constants.get(value) for value in values} == {str(value) for value in values}


def test_the_definitions_are_those_of_the_standard_channel() -> None:
    try:
        crds = definitions()
    except CannotRunError as reason:
        pytest.skip(str(reason))
    kinds = {crd["spec"]["names"]["kind"]: crd["metadata"]["annotations"] for crd in crds}
    assert set(kinds) == {"GatewayClass", "Gateway", "HTTPRoute", "ReferenceGrant"}
    assert {annotations[f"{GROUP}/channel"] for annotations in kinds.values()} == {"standard"}
    assert {annotations[f"{GROUP}/bundle-version"] for annotations in kinds.values()} == {"v1.6.3"}


@pytest.mark.parametrize(
    ("wide", "narrow", "is_covered"),
    [
        ("", "a.example.com", True),
        ("a.example.com", "", False),
        ("*.example.com", "test.example.com", True),
        ("*.example.com", "foo.test.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "test.example.net", False),
        ("*.example.com", "*.test.example.com", True),
        ("*.test.example.com", "*.example.com", False),
    ],
)
def test_a_wildcard_matches_labels_before_a_suffix(wide: str, narrow: str, is_covered: bool) -> None:
    assert covers(wide, narrow) is is_covered
    assert (intersection(wide, narrow) == narrow) is is_covered


SERVICE = a_service("phi", "models")
RULE = a_rule(("phi", 1))
ROUTE = a_route("phi", "models", RULE)
GRANT = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "ReferenceGrant",
    "metadata": {"name": "grant", "namespace": "elsewhere"},
    "spec": {
        "from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": "models"}],
        "to": [{"group": "", "kind": "Service"}],
    },
}


def route_to(**reference: Any) -> Manifest:
    return a_route("phi", "models", {**RULE, "backendRefs": [{"name": "phi", "port": 8000, **reference}]})


def listener_from(namespaces: Manifest) -> Manifest:
    return a_listener(allowedRoutes={"namespaces": namespaces})


CASES: dict[str, tuple[list[Manifest], str, str]] = {
    "accepted": ([ROUTE, SERVICE, a_gateway()], "Accepted", "ResolvedRefs"),
    "no such section": (
        [a_route("phi", "models", RULE, parentRefs=[{"name": "edge", "namespace": "gateways", "sectionName": "x"}]),
         SERVICE, a_gateway()],
        "NoMatchingParent", "ResolvedRefs",
    ),
    "no such port": (
        [a_route("phi", "models", RULE, parentRefs=[{"name": "edge", "namespace": "gateways", "port": 81}]),
         SERVICE, a_gateway()],
        "NoMatchingParent", "ResolvedRefs",
    ),
    "namespaces by default": (
        [ROUTE, SERVICE, a_gateway("edge", "gateways", a_listener(allowedRoutes={}))],
        "NotAllowedByListeners", "ResolvedRefs",
    ),
    "namespaces by a selector that does not match": (
        [ROUTE, SERVICE, a_gateway("edge", "gateways", listener_from(
            {"from": "Selector", "selector": {"matchLabels": {"models": "yes"}}}))],
        "NotAllowedByListeners", "ResolvedRefs",
    ),
    "namespaces by a selector that matches": (
        [ROUTE, SERVICE, a_gateway("edge", "gateways", listener_from(
            {"from": "Selector", "selector": {"matchExpressions": [{"key": "models", "operator": "DoesNotExist"}]}}))],
        "Accepted", "ResolvedRefs",
    ),
    "kinds without HTTPRoute": (
        [ROUTE, SERVICE, a_gateway("edge", "gateways", a_listener(
            allowedRoutes={"namespaces": {"from": "All"}, "kinds": [{"kind": "GRPCRoute"}]}))],
        "NotAllowedByListeners", "ResolvedRefs",
    ),
    "another hostname": (
        [a_route("phi", "models", RULE, hostnames=["models.example.net"]), SERVICE,
         a_gateway("edge", "gateways", a_listener(hostname="*.example.com"))],
        "NoMatchingListenerHostname", "ResolvedRefs",
    ),
    "a filter that is not supported": (
        [a_route("phi", "models", {**RULE, "filters": [{"type": "RequestMirror"}]}), SERVICE, a_gateway()],
        "UnsupportedValue", "ResolvedRefs",
    ),
    "no such service": ([ROUTE, a_gateway()], "Accepted", "BackendNotFound"),
    "no such port of the service": ([route_to(port=9), SERVICE, a_gateway()], "Accepted", "BackendNotFound"),
    "another kind of backend": (
        [route_to(group="inference.networking.k8s.io", kind="InferencePool"), SERVICE, a_gateway()],
        "Accepted", "InvalidKind",
    ),
    "another namespace": (
        [route_to(namespace="elsewhere"), a_service("phi", "elsewhere"), a_gateway()], "Accepted", "RefNotPermitted",
    ),
    "another namespace with a grant": (
        [route_to(namespace="elsewhere"), a_service("phi", "elsewhere"), GRANT, a_gateway()],
        "Accepted", "ResolvedRefs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_route_gets_the_documented_reasons(case: str) -> None:
    objects, accepted, resolved = CASES[case]
    (attachment,) = attachments(a_snapshot(*objects), CONTROLLER)
    assert (attachment.accepted.reason, attachment.resolved.reason) == (accepted, resolved)
    assert attachment.accepted.is_true is (accepted == RouteCondition.ACCEPTED)
    assert attachment.resolved.is_true is (resolved == RouteCondition.RESOLVED_REFS)
    assert bool(attachment.hostnames) is attachment.accepted.is_true


def test_a_gateway_that_is_absent_or_of_another_controller_gives_a_route_no_status() -> None:
    assert not list(attachments(a_snapshot(ROUTE, SERVICE), CONTROLLER))
    assert not list(attachments(a_snapshot(ROUTE, SERVICE, a_gateway()), "example.net/other"))


TLS = {"certificateRefs": [{"name": "no-such-secret"}]}
PAIR, OTHER_PAIR = (Authority("test").server("models", ["models.internal"]) for _ in range(2))
PAIRS: dict[str, tuple[Manifest, Manifest, str]] = {
    "a certificate and its key": (
        {"name": "tls"}, a_secret("tls", "gateways", PAIR), "ResolvedRefs",
    ),
    "the key of another certificate": (
        {"name": "tls"}, a_secret("tls", "gateways", replace(PAIR, key=OTHER_PAIR.key)), "InvalidCertificateRef",
    ),
    "no certificate": (
        {"name": "tls"}, a_secret("tls", "gateways", replace(PAIR, certificate=b"x")), "InvalidCertificateRef",
    ),
    "another kind": (
        {"name": "tls", "kind": "ConfigMap"}, a_secret("tls", "gateways", PAIR), "InvalidCertificateRef",
    ),
    "another namespace without a grant": (
        {"name": "tls", "namespace": "elsewhere"}, a_secret("tls", "elsewhere", PAIR), "RefNotPermitted",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_a_listener_resolves_only_a_certificate_that_its_data_plane_can_serve(case: str) -> None:
    reference, secret, reason = PAIRS[case]
    gateway = a_gateway("edge", "gateways", a_listener("s", protocol="HTTPS", tls={"certificateRefs": [reference]}))
    (state,) = listener_states(a_snapshot(gateway, secret), gateway)
    (resolved,) = (condition for condition in state.conditions if condition.type == "ResolvedRefs")
    assert (resolved.reason, state.is_served) == (reason, reason == "ResolvedRefs")


@pytest.mark.parametrize(
    ("listeners", "addresses", "pods", "accepted", "programmed"),
    [
        ([a_listener()], ["10.13.76.9"], 1, "Accepted", "Programmed"),
        ([a_listener()], [], 1, "Accepted", "AddressNotAssigned"),
        ([a_listener()], ["10.13.76.9"], 0, "Accepted", "NoResources"),
        ([a_listener(protocol="TCP")], ["10.13.76.9"], 1, "ListenersNotValid", "Invalid"),
        ([a_listener(protocol="HTTPS", tls=TLS)], ["10.13.76.9"], 1, "ListenersNotValid", "Invalid"),
        ([a_listener(), a_listener("s", protocol="HTTPS", tls=TLS)], ["10.0.0.9"], 1, "ListenersNotValid", "Invalid"),
        ([a_listener(), a_listener("t", port=81, protocol="TCP")], ["10.0.0.9"], 1, "ListenersNotValid", "Programmed"),
    ],
)  # fmt: skip
def test_a_gateway_gets_the_documented_reasons(
    listeners: list[Manifest], addresses: list[str], pods: int, accepted: str, programmed: str
) -> None:
    gateway = a_gateway("edge", "gateways", *listeners)
    states = listener_states(a_snapshot(gateway), gateway)
    reasons = {c.type: (c.reason, c.is_true) for c in gateway_conditions(gateway, states, addresses, pods)}
    is_accepted = accepted == "Accepted" or programmed == "Programmed"
    assert reasons[GatewayCondition.ACCEPTED] == (accepted, is_accepted)
    assert reasons[GatewayCondition.PROGRAMMED] == (programmed, programmed == "Programmed")


def test_the_time_of_a_transition_changes_only_with_the_status() -> None:
    gateway = a_gateway()
    decided = gateway_conditions(gateway, listener_states(a_snapshot(gateway), gateway), [], 0)
    foreign = {"type": "example.net/Extra", "status": "True", "reason": "Extra", "message": ""}
    first = conditions.merged(decided, 1, [foreign], "2026-11-01T00:00:00Z")
    assert foreign in first
    decided = gateway_conditions(gateway, listener_states(a_snapshot(gateway), gateway), ["10.0.0.9"], 1)
    second = conditions.merged(decided, 2, first, "2026-11-02T00:00:00Z")
    times = {condition["type"]: condition.get("lastTransitionTime") for condition in second}
    assert times["Accepted"] == "2026-11-01T00:00:00Z"
    assert times["Programmed"] == "2026-11-02T00:00:00Z"
    assert foreign in second


def wanted(*weights: tuple[str, int]) -> Any:
    """The resources of a door with these Services."""
    services = [a_service(name, "models") for name, _ in weights]
    endpoints = [a_slice(name, "models", 9000) for name, _ in weights]
    gateway = a_gateway()
    snapshot = a_snapshot(gateway, a_route("chat", "models", a_rule(*weights)), *services, *endpoints)
    return resources(snapshot, gateway, list(attachments(snapshot, CONTROLLER)), SOURCE)


def clusters_of_routes(delivery: Delivery, version: str) -> tuple[str, set[str]]:
    """The version of the routes that an Envoy with this version gets, and the clusters that they name."""
    answer = delivery.answer("routes", ["port-80"], version)
    if answer is None:
        return version, set()
    (host,) = answer[1]["port-80"]["virtual_hosts"]
    clusters = host["routes"][0]["route"]["weighted_clusters"]["clusters"]
    return answer[0], {cluster["name"] for cluster in clusters}


def take_in(delivery: Delivery, kind: str, names: list[str], version: str = "") -> str:
    """Ask until nothing is new, as Envoy does; returns the version that it then has."""
    while (answer := delivery.answer(kind, names, version)) is not None:
        version = answer[0]
    return version


def test_a_route_is_handed_out_after_its_clusters_and_their_endpoints_are_taken_in() -> None:
    delivery = Delivery()
    delivery.publish(wanted(("stable", 100)))
    assert clusters_of_routes(delivery, "") == ("", set())
    clusters = take_in(delivery, "clusters", [])
    assert clusters_of_routes(delivery, "") == ("", set())
    take_in(delivery, "endpoints", ["models/stable:8000"])
    routes, named = clusters_of_routes(delivery, "")
    assert named == {"models/stable:8000"}

    delivery.publish(wanted(("stable", 50), ("canary", 50)))
    assert clusters_of_routes(delivery, routes) == (routes, set())
    clusters = take_in(delivery, "clusters", [], clusters)
    assert clusters_of_routes(delivery, routes) == (routes, set())
    take_in(delivery, "endpoints", ["models/canary:8000"])
    routes, named = clusters_of_routes(delivery, routes)
    assert named == {"models/stable:8000", "models/canary:8000"}


def test_a_cluster_stays_until_no_route_of_envoy_names_it() -> None:
    delivery = Delivery()
    both = wanted(("stable", 50), ("canary", 50))
    delivery.publish(both)
    clusters = take_in(delivery, "clusters", [])
    for name in both.clusters:
        take_in(delivery, "endpoints", [name])
    routes = take_in(delivery, "routes", ["port-80"])

    delivery.publish(wanted(("canary", 100)))
    assert delivery.answer("clusters", [], clusters) is None
    assert delivery.answer("endpoints", ["models/stable:8000"], "")
    take_in(delivery, "routes", ["port-80"], routes)
    answer = delivery.answer("clusters", [], clusters)
    assert answer is not None
    assert set(answer[1]) == {"models/canary:8000"}
    assert answer[0] == version_of(answer[1])
