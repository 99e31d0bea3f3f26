"""Where Envoy Gateway and its AI gateway send prompts, field by field.

Sources: gateway.envoyproxy.io/docs/tasks/traffic/backend; envoyproxy/ai-gateway api/v1beta1 (ai_service_backend.go,
ai_gateway_route.go, backendsecurity_policy.go); the definitions of v1alpha1 have the same fields.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.ai_gateways import Backend, BackendSecurityPolicy
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.model.findings import Verdict
from testbed.kubernetes_plants.pieces import manifest
from tests.kubernetes_estates import Manifest, sealed_cluster, served_group, verdicts

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
GATEWAY, AI_GATEWAY = "gateway.envoyproxy.io", "aigateway.envoyproxy.io"


def a_backend(*endpoints: Any, **spec: Any) -> Manifest:
    return manifest(f"{GATEWAY}/v1alpha1", "Backend", "b", "team", spec={"endpoints": list(endpoints), **spec})


def fqdn(name: Any) -> dict[str, Any]:
    return {"fqdn": {"hostname": name, "port": 443}}


def ip(address: Any) -> dict[str, Any]:
    return {"ip": {"address": address, "port": 443}}


def verdict(added: Manifest, check: str = "k8s-other-ways") -> Verdict:
    (only,) = verdicts(check, [*sealed_cluster(), added]).values()
    return only


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        (a_backend(fqdn("api.openai.com")), OPEN),
        (a_backend(fqdn("vllm.team.svc.cluster.local"), fqdn("api.example.com")), OPEN),
        (a_backend(ip("203.0.113.9")), OPEN),
        (a_backend(ip("2603:1000::9")), OPEN),
        (a_backend(ip("168.63.129.16")), OPEN),
        (a_backend(type="DynamicResolver"), OPEN),
        (a_backend(fqdn("vllm.team.svc"), type="DynamicResolver"), OPEN),
        (a_backend(fqdn("vllm.team.svc.cluster.local")), FINE),
        (a_backend(ip("10.0.0.9")), FINE),
        (a_backend({"unix": {"path": "/var/run/backend.sock"}}), FINE),
        # a private endpoint may lead there: the Azure checks decide
        (a_backend(fqdn("contoso.openai.azure.com")), FINE),
        (a_backend(fqdn("vllm.team.svc"), type="Endpoints"), FINE),
        (a_backend(fqdn("vllm.team.svc"), type="Tomorrow"), UNSEEN),
        (a_backend({"novel": {"target": "x"}}), UNSEEN),
        (a_backend({"fqdn": "api.example.com"}), UNSEEN),
        (a_backend(fqdn(None)), UNSEEN),
        (a_backend(fqdn(7)), UNSEEN),
        (a_backend("api.example.com"), UNSEEN),
    ],
)
def test_backend_is_open_where_an_endpoint_is_outside(backend: Manifest, expected: Verdict) -> None:
    assert verdict(backend) is expected


def a_policy(kind: str, version: str = "v1beta1", **spec: Any) -> Manifest:
    fields = {"type": kind, **spec}
    return manifest(f"{AI_GATEWAY}/{version}", "BackendSecurityPolicy", "p", "team", spec=fields)


def signing_in(issuer: str) -> dict[str, Any]:
    provider = {"issuer": issuer, "tokenEndpoint": f"{issuer}/token"}
    return {"oidcExchangeToken": {"oidc": {"provider": provider, "clientID": "x"}}}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (a_policy("APIKey", apiKey={"secretRef": {"name": "key"}}), FINE),
        (a_policy("AWSCredentials", awsCredentials={"region": "eu-north-1"}), OPEN),
        (a_policy("GCPCredentials", gcpCredentials={"projectName": "p", "region": "r"}), OPEN),
        (a_policy("AzureCredentials", azureCredentials={"tenantID": "t", "useManagedIdentity": True}), FINE),
        (a_policy("AzureCredentials", azureCredentials=signing_in("https://sso.example.com")), OPEN),
        (a_policy("AzureCredentials", azureCredentials=signing_in("https://sso.corp.internal")), FINE),
        (a_policy("TomorrowsKey"), UNSEEN),
        (a_policy("", apiKey={}), UNSEEN),
    ],
)
def test_sign_in_of_an_ai_gateway_is_open_where_its_server_is_outside(policy: Manifest, expected: Verdict) -> None:
    assert verdict(policy) is expected


def test_route_to_a_backend_that_is_read_is_left_to_the_backend() -> None:
    reference = {"group": GATEWAY, "kind": "Backend", "name": "b"}
    route = manifest(
        "gateway.networking.k8s.io/v1", "HTTPRoute", "r", "team", spec={"rules": [{"backendRefs": [reference]}]}
    )
    assert verdict(route, "k8s-gateway-routes") is FINE
    other = {"backendRefs": [{**reference, "group": "gateway.kgateway.dev"}]}
    assert verdict({**route, "spec": {"rules": [other]}}, "k8s-gateway-routes") is UNSEEN


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        (AI_GATEWAY, "AIServiceBackend", FINE),
        (AI_GATEWAY, "AIGatewayRoute", FINE),
        (AI_GATEWAY, "BackendSecurityPolicy", FINE),
        (GATEWAY, "Backend", FINE),
        # no document shows every field that may name a host
        (AI_GATEWAY, "MCPRoute", UNSEEN),
        (AI_GATEWAY, "GatewayConfig", UNSEEN),
        (GATEWAY, "EnvoyPatchPolicy", UNSEEN),
        (GATEWAY, "EnvoyProxy", UNSEEN),
        ("agentgateway.dev", "AgentgatewayBackend", UNSEEN),
        ("gateway.kgateway.dev", "Backend", UNSEEN),
    ],
)
def test_kind_of_a_gateway_passes_where_it_is_read_or_names_no_host(group: str, kind: str, expected: Verdict) -> None:
    verdict_of = verdicts("k8s-unread-kinds", [*sealed_cluster(), served_group(group, kind)])
    assert set(verdict_of.values()) == {expected}


def test_cache_keeps_addresses_alone_and_keeps_them_when_it_is_read_again() -> None:
    backend = a_backend(fqdn("api.openai.com"), ip("10.0.0.9"))
    projection = projected(Backend, backend)
    assert projection["spec"] == {"addresses": ["api.openai.com"]}
    assert projected(Backend, projection) == projection
    policy = projected(BackendSecurityPolicy, a_policy("AWSCredentials", apiKey={"secretRef": {"name": "secret"}}))
    assert policy["spec"] == {"addresses": ["https://amazonaws.com"]}
