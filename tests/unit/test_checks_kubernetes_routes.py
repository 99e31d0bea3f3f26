"""Routes of the Gateway API: which of them lead outside, and in which version they are read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.all_kinds import question
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.kubernetes.routes import ROUTES, HttpRoute, TlsRoute
from hermetic.audit.estate.kubernetes.services import EndpointSlice, Ingress, Service
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.collect.kube.answering import KubeAnswerer
from hermetic.collect.kube.cache import ClusterObservations
from hermetic.collect.kube.cache_watches import CacheWatches
from tests.fakes.served_cluster import Served
from tests.kubernetes_estates import CLUSTER, Manifest, findings, manifest, sealed_cluster, verdicts

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
CHECK = "k8s-gateway-routes"
OUT = manifest(Service, "out", "team", spec={"type": "ExternalName", "externalName": "api.example.com"})
NEAR = manifest(Service, "near", "team", spec={"type": "ExternalName", "externalName": "db.team.svc.cluster.local"})
WEB = manifest(Service, "web", "team", spec={"type": "ClusterIP"})
FAR = manifest(
    EndpointSlice, "web-1", "team",
    labels={"kubernetes.io/service-name": "web"}, addressType="IPv4", endpoints=[{"addresses": ["203.0.113.7"]}],
)  # fmt: skip


def route(kind: Any = HttpRoute, **rule: Any) -> Manifest:
    """team/x of one rule."""
    return manifest(kind, "x", "team", spec={"rules": [rule]})


def to(name: str, **fields: Any) -> dict[str, Any]:
    """A rule with one backend."""
    return {"backendRefs": [{"name": name, **fields}]}


def about(kind: Any, verdict: Verdict) -> dict[str, Verdict]:
    """What is found of team/x."""
    resource = f"{kind.TYPE.rpartition('/')[0]}/{kind.KIND} team/x"
    return {CLUSTER if verdict is FINE else resource: verdict}


@pytest.mark.parametrize("kind", ROUTES)
@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (to("out"), OPEN),
        (to("out", kind="Service", group=""), OPEN),
        (to("out", namespace="team"), OPEN),
        (to("out", namespace="another"), FINE),
        (to("near"), FINE),
        (to("web"), FINE),
        (to("nowhere"), FINE),
        ({}, FINE),
        (to("api.example.com", kind="Hostname", group="networking.istio.io"), OPEN),
        (to("*.com", kind="Hostname", group="networking.istio.io"), OPEN),
        (to("api.team.svc.cluster.local", kind="Hostname", group="networking.istio.io"), FINE),
        (to("pool", kind="InferencePool", group="inference.networking.k8s.io"), FINE),
        (to("far", kind="ServiceImport", group="multicluster.x-k8s.io"), UNSEEN),
        (to("far", kind="Backend", group="gateway.kgateway.dev"), UNSEEN),
        (to("far", kind="Thing"), UNSEEN),
        ({"filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "out"}}}]}, OPEN),
        ({"filters": [{"type": "ExternalAuth", "externalAuth": {"backendRef": {"name": "out"}}}]}, OPEN),
        (to("web", filters=[{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "out"}}}]), OPEN),
        ({"filters": [{"type": "ExtensionRef", "extensionRef": {"group": "x", "kind": "F", "name": "f"}}]}, UNSEEN),
        ({"filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": "example.com"}}]}, FINE),
        ({**to("web"), "name": "r", "matches": [], "timeouts": {}}, FINE),
        ({**to("web"), "filters": [{"type": "RequestTee", "requestTee": {"backendRef": {"name": "out"}}}]}, UNSEEN),
        ({**to("web"), "fallbackRefs": [{"name": "out"}]}, UNSEEN),
        ({"backendRefs": "x"}, UNSEEN),
    ],
)
def test_a_route_is_open_where_it_leads_outside(kind: Any, rule: dict[str, Any], verdict: Verdict) -> None:
    verdict_of = verdicts(CHECK, [*sealed_cluster(), OUT, NEAR, WEB, route(kind, **rule)])
    assert verdict_of == about(kind, verdict)


def test_a_service_with_an_address_outside_is_one() -> None:
    assert verdicts(CHECK, [*sealed_cluster(), WEB, FAR, route(**to("web"))]) == about(HttpRoute, OPEN)


@pytest.mark.parametrize("kind", [*ROUTES, Ingress, Service, EndpointSlice])
def test_what_may_not_be_listed_leaves_it_unknown(kind: Any) -> None:
    assert verdicts(CHECK, [*sealed_cluster(), WEB], forbidden=[kind]) == {CLUSTER: UNSEEN}


def ingress(*backends: Manifest, annotation: tuple[str, str] = ("", ""), host: str = "a.corp", **spec: Any) -> Manifest:
    """team/x of one rule."""
    paths = [{"path": "/", "backend": backend} for backend in backends]
    ingress_spec = {"rules": [{"host": host, "http": {"paths": paths}}], **spec}
    return manifest(Ingress, "x", "team", annotations=dict([annotation]), spec=ingress_spec)


def service(name: str) -> Manifest:
    return {"service": {"name": name, "port": {"number": 443}}}


def nginx(name: str, value: str) -> tuple[str, str]:
    return (f"nginx.ingress.kubernetes.io/{name}", value)


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        (ingress(service("out")), OPEN),
        (ingress(service("web"), service("out")), OPEN),
        (ingress(defaultBackend=service("out")), OPEN),
        (ingress(service("web")), FINE),
        (ingress(service("near")), FINE),
        (ingress(rules=None), FINE),
        (ingress(rules=[{"host": "a"}]), FINE),
        (ingress(rules="x"), UNSEEN),
        (ingress({"resource": {"apiGroup": "k8s.example.com", "kind": "StorageBucket", "name": "b"}}), UNSEEN),
        (ingress(annotation=nginx("default-backend", "out")), OPEN),
        (ingress(annotation=nginx("default-backend", "web")), FINE),
        (ingress(annotation=nginx("auth-url", "https://api.example.com/a")), OPEN),
        (ingress(annotation=nginx("auth-url", "https://user@api.example.com/a")), OPEN),
        (ingress(annotation=nginx("auth-url", "http://134744072/a")), OPEN),
        (ingress(annotation=nginx("auth-url", "http://proxy.auth.svc.cluster.local:4180/oauth2/auth")), FINE),
        (ingress(annotation=nginx("auth-url", "http://10.1.2.3")), FINE),
        (ingress(annotation=nginx("auth-url", "https://$host/oauth2/auth")), UNSEEN),
        (ingress(annotation=nginx("auth-url", "https://$arg_x/auth")), UNSEEN),
        (ingress(annotation=nginx("auth-url", "https://db.svc$arg_x/auth")), UNSEEN),
        (ingress(annotation=("haproxy-ingress.github.io/auth-url", "http://api.example.com")), OPEN),
        (ingress(annotation=nginx("mirror-target", "https://api.example.com$request_uri")), OPEN),
        (ingress(annotation=nginx("mirror-target", "https://test.team.svc.cluster.local$request_uri")), FINE),
        (ingress(annotation=nginx("auth-signin", "https://login.example.com/start")), FINE),
        (ingress(annotation=nginx("upstream-vhost", "api.example.com")), FINE),
        (ingress(annotation=nginx("configuration-snippet", "proxy_pass https://api.example.com;")), UNSEEN),
        (ingress(annotation=nginx("server-snippet", "location /x { proxy_pass http://8.8.8.8; }")), UNSEEN),
        (ingress(annotation=nginx("stream-snippet", "server { listen 1; proxy_pass x:1; }")), UNSEEN),
        (ingress(annotation=nginx("auth-snippet", "set $target https://api.example.com;")), UNSEEN),
        (
            ingress(annotation=nginx("configuration-snippet", "add_header X a'b; proxy_pass http://e; set $c d'e;")),
            UNSEEN,
        ),
        (ingress(annotation=nginx("configuration-snippet", "# x\naccess_log syslog:server=8.8.8.8;")), UNSEEN),
        (ingress(annotation=("nginx.org/location-snippets", "resolver 8.8.8.8;")), UNSEEN),
        (
            ingress(annotation=nginx("configuration-snippet", 'more_set_headers "A: b; proxy_pass c";\n# proxy_pass')),
            FINE,
        ),
        (
            ingress(
                annotation=nginx(
                    "server-snippet",
                    "set $a ${host};\nif ($a ~* 'x') {\n  return 302 https://x.example.com;\n}\naccess_log off;",
                )
            ),
            FINE,
        ),
        (ingress(annotation=nginx("configuration-snippet", "")), FINE),
    ],
)
def test_an_ingress_is_open_where_it_leads_outside(changed: Manifest, verdict: Verdict) -> None:
    assert verdicts(CHECK, [*sealed_cluster(), OUT, NEAR, WEB, changed]) == about(Ingress, verdict)


@pytest.mark.parametrize(
    ("changed", "severity"),
    [
        (ingress(annotation=nginx("auth-url", "https://$host/oauth2/auth")), Severity.MEDIUM),
        (ingress(annotation=nginx("auth-url", "https://$host/oauth2/auth"), host="*.corp"), Severity.HIGH),
        (
            ingress(annotation=nginx("auth-url", "https://$host/oauth2/auth"), defaultBackend=service("web")),
            Severity.HIGH,
        ),
        (ingress(annotation=nginx("auth-url", "https://$arg_x/auth")), Severity.HIGH),
        (ingress(service("out")), Severity.HIGH),
    ],
)
def test_how_much_a_relay_by_an_ingress_weighs(changed: Manifest, severity: Severity) -> None:
    (finding,) = findings(CHECK, [*sealed_cluster(), OUT, WEB, changed])
    assert finding.severity is severity


def test_an_ingress_to_a_service_with_an_address_outside_is_open() -> None:
    assert verdicts(CHECK, [*sealed_cluster(), WEB, FAR, ingress(service("web"))]) == about(Ingress, OPEN)


def test_of_a_snippet_and_of_a_url_no_secret_is_kept() -> None:
    some = [nginx("auth-url", "https://u:secret@api.team.svc/x?token=secret"), nginx("server-snippet", "a secret;")]
    for snippet in some:
        assert "secret" not in str(projected(Ingress, ingress(annotation=snippet)))


def as_v1() -> Served:
    """An API server that serves TLSRoute as v1 alone."""
    some = {**route(TlsRoute, **to("out")), "apiVersion": "gateway.networking.k8s.io/v1"}
    api = Served([some])
    api.groups["gateway.networking.k8s.io"] = {"v1": ["tlsroutes", "gateways"]}
    return api


async def test_a_kind_is_listed_in_the_version_that_is_served() -> None:
    routes_question = question(TlsRoute, "")
    answers = await KubeAnswerer(as_v1()).answers([routes_question])
    assert answers[routes_question].problem is None
    assert answers[routes_question].evidence[0].request == "GET /apis/gateway.networking.k8s.io/v1/tlsroutes"
    assert len(answers[routes_question].bodies) == 1


async def test_a_kind_is_watched_in_the_version_that_is_served() -> None:
    api, observations = as_v1(), ClusterObservations()
    task = asyncio.create_task(CacheWatches(api, observations).run())
    try:
        async with asyncio.timeout(10):
            while not observations.is_complete:  # noqa: ASYNC110 - it has no event of its own
                await asyncio.sleep(0.01)
            tls_route = route(TlsRoute, **to("web"))
            api.put(
                {
                    **tls_route,
                    "metadata": {**tls_route["metadata"], "name": "y"},
                    "apiVersion": "gateway.networking.k8s.io/v1",
                }
            )
            while len(observations.answers()[question(TlsRoute, "")].bodies) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
