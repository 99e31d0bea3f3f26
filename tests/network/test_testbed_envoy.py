"""Routes of the Gateway API in the real Envoy: what the project documents of matches, weights and status codes."""

from __future__ import annotations

import collections
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.certificates import Authority
from testbed.gateway.snapshot import Manifest
from tests.gateway_objects import (
    ENDING,
    NOT_READY,
    READY,
    a_gateway,
    a_listener,
    a_route,
    a_rule,
    a_secret,
    a_service,
    a_slice,
    with_tls,
)
from tests.network.local_gateway import Backend, LocalGateway

NAMESPACE = "models"
HEADER = "x-gateway-model-name"


@pytest.fixture(scope="module")
def backends() -> Iterator[dict[str, Backend]]:
    started = {name: Backend(name) for name in ("stable", "canary", "other")}
    yield started
    for backend in started.values():
        backend.close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    started = LocalGateway(tmp_path_factory.mktemp("envoy"))
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def services(backends: dict[str, Backend]) -> list[Manifest]:
    """A Service with a ready endpoint for each backend."""
    parts = [a_slice(backend.name, NAMESPACE, backend.port) for backend in backends.values()]
    return [*(a_service(name, NAMESPACE) for name in backends), *parts]


# The table at HTTPPathModifier.ReplacePrefixMatch in apis/v1/httproute_types.go.
REWRITES = [
    ("/foo/bar", "/foo", "/xyz", "/xyz/bar"),
    ("/foo/bar", "/foo", "/xyz/", "/xyz/bar"),
    ("/foo/bar", "/foo/", "/xyz", "/xyz/bar"),
    ("/foo/bar", "/foo/", "/xyz/", "/xyz/bar"),
    ("/foo", "/foo", "/xyz", "/xyz"),
    ("/foo/", "/foo", "/xyz", "/xyz/"),
    ("/foo/bar", "/foo", "", "/bar"),
    ("/foo/", "/foo", "", "/"),
    ("/foo", "/foo", "", "/"),
    ("/foo/", "/foo", "/", "/"),
    ("/foo", "/foo", "/", "/"),
    ("/foo/v1/models?limit=1", "/foo", "/", "/v1/models?limit=1"),
]


def test_a_prefix_is_rewritten_as_the_table_of_the_gateway_api_says(
    gateway: LocalGateway, services: list[Manifest]
) -> None:
    for path, prefix, replacement, expected in REWRITES:
        rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": replacement}}
        filters = [{"type": "URLRewrite", "urlRewrite": rewrite}]
        gateway.serve(a_route("chat", NAMESPACE, a_rule(("stable", 1), prefix=prefix, filters=filters)), *services)
        status, answer = gateway.ask(path)
        assert (status, answer.get("path")) == (200, expected), (path, prefix, replacement)


def test_a_prefix_matches_whole_elements_and_nothing_matches_the_rest(
    gateway: LocalGateway, services: list[Manifest]
) -> None:
    gateway.serve(a_route("chat", NAMESPACE, a_rule(("stable", 1), prefix="/models/phi")), *services)
    assert [gateway.ask(path)[0] for path in ("/models/phi", "/models/phi/v1", "/models/phi-4", "/")] == [
        200, 200, 404, 404,
    ]  # fmt: skip


def test_the_longest_prefix_wins_then_a_method_then_headers_then_the_order(
    gateway: LocalGateway, services: list[Manifest]
) -> None:
    def rule(backend: str, **match: Any) -> Manifest:
        path = {"type": "PathPrefix", "value": match.pop("prefix", "/")}
        return a_rule((backend, 1), matches=[{"path": path, **match}])

    by_header = rule("canary", headers=[{"name": HEADER, "value": "phi"}])
    rules = [rule("stable"), by_header, rule("other", prefix="/long"), rule("other", method="PUT"), rule("other")]
    gateway.serve(a_route("chat", NAMESPACE, *rules), *services)
    assert gateway.ask("/")[1]["backend"] == "stable"
    assert gateway.ask("/", x_gateway_model_name="phi")[1]["backend"] == "canary"
    assert gateway.ask("/", x_gateway_model_name="phi-4")[1]["backend"] == "stable"
    assert gateway.ask("/long/way", x_gateway_model_name="phi")[1]["backend"] == "other"


def test_an_exact_path_wins_over_a_prefix(gateway: LocalGateway, services: list[Manifest]) -> None:
    exact = a_rule(("canary", 1), matches=[{"path": {"type": "Exact", "value": "/v1"}}])
    gateway.serve(a_route("chat", NAMESPACE, a_rule(("stable", 1), prefix="/v1"), exact), *services)
    assert gateway.ask("/v1")[1]["backend"] == "canary"
    assert gateway.ask("/v1/models")[1]["backend"] == "stable"


def test_a_request_belongs_to_the_listener_of_the_most_specific_hostname(
    gateway: LocalGateway, services: list[Manifest]
) -> None:
    listeners = [
        a_listener("all", port=gateway.port),
        a_listener("wild", port=gateway.port, hostname="*.contoso.internal"),
        a_listener("exact", port=gateway.port, hostname="models.contoso.internal"),
    ]
    routes = [
        a_route(name, NAMESPACE, a_rule((backend, 1)),
                parentRefs=[{"name": "edge", "namespace": "gateways", "sectionName": section}])
        for name, backend, section in (("a", "other", "all"), ("b", "stable", "wild"), ("c", "canary", "exact"))
    ]  # fmt: skip
    gateway.serve(a_gateway("edge", "gateways", *listeners), *routes, *services)
    hosts = ("models.contoso.internal", "models.contoso.internal:8080", "a.contoso.internal", "example.com")
    assert [gateway.ask("/", host)[1]["backend"] for host in hosts] == ["canary", "canary", "stable", "other"]


def test_a_hostname_of_the_route_excludes_all_others(gateway: LocalGateway, services: list[Manifest]) -> None:
    route = a_route("chat", NAMESPACE, a_rule(("stable", 1)), hostnames=["models.contoso.internal"])
    gateway.serve(route, *services)
    assert gateway.ask("/", "models.contoso.internal")[0] == 200
    assert gateway.ask("/", "other.contoso.internal")[0] == 404


def asked_by_tls(gateway: LocalGateway, authority: Authority, name: str) -> str:
    """The backend that answers a client which asks for this server name and trusts the authority alone."""
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    context.set_alpn_protocols(["http/1.1"])
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as plain:
        connection.sock = context.wrap_socket(plain, server_hostname=name)
        connection.request("GET", "/", headers={"Host": name})
        backend: str = json.loads(connection.getresponse().read())["backend"]
        connection.close()
    return backend


def test_a_listener_with_tls_serves_the_certificate_of_the_name_that_a_client_asks_for(
    gateway: LocalGateway, services: list[Manifest]
) -> None:
    """Each name has a certificate of an authority of its own; another name gets no connection."""
    names = ("models.contoso.internal", "models.lab.internal")
    authorities = {name: Authority(f"authority of {name}") for name in names}
    secrets = [a_secret(name, "gateways", authority.server(name, [name])) for name, authority in authorities.items()]
    listeners = [with_tls(name.split(".")[1], name, gateway.port, hostname=name) for name in authorities]
    routes = [
        a_route(backend, NAMESPACE, a_rule((backend, 1)), hostnames=[name])
        for name, backend in zip(authorities, ("stable", "canary"), strict=True)
    ]
    gateway.serve(a_gateway("edge", "gateways", *listeners), *secrets, *routes, *services)
    answers = [asked_by_tls(gateway, authority, name) for name, authority in authorities.items()]
    assert answers == ["stable", "canary"]
    first, second = authorities
    with pytest.raises(ssl.SSLCertVerificationError):
        asked_by_tls(gateway, authorities[first], second)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        asked_by_tls(gateway, authorities[first], "other.contoso.internal")


@pytest.mark.parametrize(
    ("stable", "canary", "at_least", "at_most"), [(100, 0, 0, 0), (90, 10, 15, 95), (0, 100, 500, 500)]
)
def test_weights_divide_the_requests(
    gateway: LocalGateway, services: list[Manifest], stable: int, canary: int, at_least: int, at_most: int
) -> None:
    """Of 500 at a tenth, 15 to 95 reach the canary but once in ten million runs."""
    gateway.serve(a_route("chat", NAMESPACE, a_rule(("stable", stable), ("canary", canary))), *services)
    answers = collections.Counter(gateway.ask("/")[1]["backend"] for _ in range(500))
    assert at_least <= answers["canary"] <= at_most
    assert answers.total() == 500


def test_the_documented_status_codes_of_rules_without_a_usable_backend(
    gateway: LocalGateway, services: list[Manifest], backends: dict[str, Backend]
) -> None:
    statuses = {}
    cases = {
        "none": a_rule(),
        "absent": a_rule(("absent", 1)),
        "weights of zero": a_rule(("stable", 0), ("canary", 0)),
        "not ready": a_rule(("waiting", 1)),
    }
    waiting = [a_service("waiting", NAMESPACE), a_slice("waiting", NAMESPACE, backends["other"].port, NOT_READY)]
    for case, rule in cases.items():
        gateway.serve(a_route("chat", NAMESPACE, rule), *services, *waiting)
        statuses[case] = gateway.ask("/")[0]
    assert statuses == {"none": 500, "absent": 500, "weights of zero": 500, "not ready": 503}


def test_the_share_of_an_absent_backend_gets_500(gateway: LocalGateway, services: list[Manifest]) -> None:
    gateway.serve(a_route("chat", NAMESPACE, a_rule(("stable", 50), ("absent", 50))), *services)
    statuses = collections.Counter(gateway.ask("/")[0] for _ in range(200))
    assert set(statuses) == {200, 500}
    assert 60 < statuses[500] < 140


def test_an_ending_pod_gets_no_requests_while_another_is_ready(
    gateway: LocalGateway, services: list[Manifest], backends: dict[str, Backend]
) -> None:
    old = a_slice("rolled", NAMESPACE, backends["stable"].port, ENDING)
    new = a_slice("rolled", NAMESPACE, backends["canary"].port, READY)
    new["metadata"]["name"] = "rolled-2"
    service = a_service("rolled", NAMESPACE)
    gateway.serve(a_route("chat", NAMESPACE, a_rule(("rolled", 1))), service, old, new, *services)
    assert {gateway.ask("/")[1]["backend"] for _ in range(50)} == {"canary"}


def test_headers_are_set_and_removed(gateway: LocalGateway, services: list[Manifest]) -> None:
    modifier = {"set": [{"name": "x-model", "value": "phi"}], "remove": ["x-secret"]}
    filters = [{"type": "RequestHeaderModifier", "requestHeaderModifier": modifier}]
    gateway.serve(a_route("chat", NAMESPACE, a_rule(("stable", 1), filters=filters)), *services)
    headers = gateway.ask("/", x_secret="1", x_model="other")[1]["headers"]
    assert headers["x-model"] == "phi"
    assert "x-secret" not in headers
