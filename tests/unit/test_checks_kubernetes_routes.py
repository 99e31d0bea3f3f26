"""Routes of the Gateway API: which of them lead outside, and in which version they are read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.all_kinds import question
from hermetic.audit.estate.kubernetes.routes import ROUTES, HttpRoute, TlsRoute
from hermetic.audit.estate.kubernetes.services import EndpointSlice, Service
from hermetic.audit.findings import Verdict
from hermetic.collect.kube.answering import KubeAnswerer
from hermetic.collect.kube.cache import ClusterObservations
from hermetic.collect.kube.cache_watches import CacheWatches
from tests.fakes.served_cluster import Served
from tests.kubernetes_estates import CLUSTER, Manifest, manifest, sealed_cluster, verdicts

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
        (to("api.team.svc.cluster.local", kind="Hostname", group="networking.istio.io"), FINE),
        (to("pool", kind="InferencePool", group="inference.networking.k8s.io"), FINE),
        (to("far", kind="ServiceImport", group="multicluster.x-k8s.io"), UNSEEN),
        (to("far", kind="Backend", group="gateway.envoyproxy.io"), UNSEEN),
        (to("far", kind="Thing"), UNSEEN),
        ({"filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "out"}}}]}, OPEN),
        ({"filters": [{"type": "ExternalAuth", "externalAuth": {"backendRef": {"name": "out"}}}]}, OPEN),
        (to("web", filters=[{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "out"}}}]), OPEN),
        ({"filters": [{"type": "ExtensionRef", "extensionRef": {"group": "x", "kind": "F", "name": "f"}}]}, UNSEEN),
        ({"filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": "example.com"}}]}, FINE),
        ({"backendRefs": "x"}, UNSEEN),
    ],
)
def test_a_route_is_open_where_it_leads_outside(kind: Any, rule: dict[str, Any], verdict: Verdict) -> None:
    found = verdicts(CHECK, [*sealed_cluster(), OUT, NEAR, WEB, route(kind, **rule)])
    assert found == about(kind, verdict)


def test_a_service_with_an_address_outside_is_one() -> None:
    assert verdicts(CHECK, [*sealed_cluster(), WEB, FAR, route(**to("web"))]) == about(HttpRoute, OPEN)


@pytest.mark.parametrize("kind", [*ROUTES, Service, EndpointSlice])
def test_what_may_not_be_listed_leaves_it_unknown(kind: Any) -> None:
    assert verdicts(CHECK, [*sealed_cluster(), WEB], forbidden=[kind]) == {CLUSTER: UNSEEN}


def as_v1() -> Served:
    """An API server that serves TLSRoute as v1 alone."""
    some = {**route(TlsRoute, **to("out")), "apiVersion": "gateway.networking.k8s.io/v1"}
    api = Served([some])
    api.groups["gateway.networking.k8s.io"] = {"v1": ["tlsroutes", "gateways"]}
    return api


async def test_a_kind_is_listed_in_the_version_that_is_served() -> None:
    asked = question(TlsRoute, "")
    answers = await KubeAnswerer(as_v1()).answers([asked])
    assert answers[asked].problem is None
    assert answers[asked].evidence[0].request == "GET /apis/gateway.networking.k8s.io/v1/tlsroutes"
    assert len(answers[asked].bodies) == 1


async def test_a_kind_is_watched_in_the_version_that_is_served() -> None:
    api, observations = as_v1(), ClusterObservations()
    task = asyncio.create_task(CacheWatches(api, observations).run())
    try:
        async with asyncio.timeout(10):
            while not observations.is_complete:  # noqa: ASYNC110 - it has no event of its own
                await asyncio.sleep(0.01)
            one = route(TlsRoute, **to("web"))
            api.put({**one, "metadata": {**one["metadata"], "name": "y"}, "apiVersion": "gateway.networking.k8s.io/v1"})
            while len(observations.answers()[question(TlsRoute, "")].bodies) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
