"""Nothing but reads can leave: whatever is asked for, the one function that sends refuses it before a socket exists."""

from __future__ import annotations

import ast
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hermetic
from hermetic.collect.azure.allowed_requests import READING_ACTIONS, must_read
from hermetic.collect.azure.clouds import cloud_of
from hermetic.collect.azure.replies import Ask
from hermetic.collect.azure.transport import ArmTransport
from hermetic.errors import WriteAttempted
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

GROUP = "/subscriptions/s/resourceGroups/g/providers"
NIC = f"{GROUP}/Microsoft.Network/networkInterfaces/nic"


def _sent() -> tuple[ArmTransport, list[httpx.Request]]:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={})

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return ArmTransport(cloud_of("https://management.azure.com"), client), requests


def test_the_table_of_actions_is_the_one_that_was_agreed() -> None:
    assert {f"{kind}/{action}" for kind, action in READING_ACTIONS} == {
        "Microsoft.Network/networkInterfaces/effectiveRouteTable",
        "Microsoft.Network/networkInterfaces/effectiveNetworkSecurityGroups",
        "Microsoft.Network/networkWatchers/nextHop",
        "Microsoft.Network/virtualNetworks/listNetworkManagerEffectiveConnectivityConfigurations",
        "Microsoft.Network/virtualNetworks/listNetworkManagerEffectiveSecurityAdminRules",
        "Microsoft.Network/virtualNetworks/listDnsResolverPolicies",
        "Microsoft.Network/virtualNetworks/listDnsForwardingRulesets",
        "Microsoft.Network/virtualHubs/effectiveRoutes",
        "Microsoft.Network/virtualNetworkGateways/getLearnedRoutes",
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", NIC),
        ("DELETE", NIC),
        ("PATCH", NIC),
        ("get", NIC),
        ("POST", NIC),
        ("POST", f"{GROUP}/Microsoft.Storage/storageAccounts/a/listKeys"),
        ("POST", f"{GROUP}/Microsoft.ContainerService/managedClusters/c/runCommand"),
        ("POST", f"{GROUP}/Microsoft.Compute/virtualMachines/vm/effectiveRouteTable"),
        ("POST", f"{GROUP}/Microsoft.Compute/virtualMachines/vm/deallocate?x=/effectiveRouteTable"),
        (
            "POST",
            f"{GROUP}/Microsoft.Compute/virtualMachines/vm/deallocate/../../../networkInterfaces/n/effectiveRouteTable",
        ),
        ("POST", f"{NIC}/%2e%2e/effectiveRouteTable"),
        ("POST", f"{NIC}%2fx/effectiveRouteTable"),
        ("POST", f"{NIC}//effectiveRouteTable"),
        ("POST", f"{NIC}/effectiveRouteTable/"),
        ("POST", f"{NIC}\\x/effectiveRouteTable"),
        ("POST", "/providers/Microsoft.ResourceGraph/resources/../../x"),
        ("GET", "https://elsewhere.example/x"),
        ("GET", "@elsewhere.example/x"),
        ("GET", ""),
    ],
)
async def test_what_does_not_only_read_raises_before_anything_is_sent(method: str, path: str) -> None:
    wire, requests = _sent()
    with pytest.raises(WriteAttempted):
        await wire.send(Ask(method, path, ""), "token")  # type: ignore[arg-type]
    assert requests == []


@given(
    method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "MERGE"]),
    kind=st.sampled_from([kind for kind, _ in READING_ACTIONS] + ["Microsoft.Compute/virtualMachines"]),
    action=st.text(st.characters(codec="ascii"), max_size=40),
)
def test_no_other_action_of_any_spelling_passes(method: str, kind: str, action: str) -> None:
    allowed = method == "POST" and (kind.lower(), action.partition("?")[0].lower()) in {
        (kind.lower(), action.lower()) for kind, action in READING_ACTIONS
    }
    if allowed:
        must_read(method, f"{GROUP}/{kind}/x/{action}")
    else:
        with pytest.raises(WriteAttempted):
            must_read(method, f"{GROUP}/{kind}/x/{action}")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", NIC), ("POST", f"{NIC}/EFFECTIVEroutetable"), ("POST", "/providers/Microsoft.ResourceGraph/resources")],
)
async def test_reads_go_out_to_the_configured_host_with_the_token(method: str, path: str) -> None:
    wire, requests = _sent()
    attempt = await wire.send(Ask(method, f"{path}?api-version=1", ""), "token")  # type: ignore[arg-type]
    assert attempt.status == 200
    assert [(str(request.url), request.headers["authorization"]) for request in requests] == [
        (f"https://management.azure.com{path}?api-version=1", "Bearer token")
    ]


@pytest.mark.parametrize(
    ("link", "local"),
    [
        ("https://management.azure.com/a?$skiptoken=x%20y", "/a?$skiptoken=x%20y"),
        ("https://MANAGEMENT.azure.com:443/a", "/a"),
        ("/a?b=c", "/a?b=c"),
        ("https://management.azure.com.evil.example/a", ""),
        ("https://management.azure.com@evil.example/a", ""),
        ("https://user@management.azure.com/a", ""),
        ("http://management.azure.com/a", ""),
        ("https://management.azure.com:8443/a", ""),
        ("//evil.example/a", ""),
        ("https://management.azure.com:port/a", ""),
        ("/a?$filter=b eq c", "/a?$filter=b eq c"),
        ("/a\ud800", ""),
        ("/a\x7f", ""),
        ("a/b", ""),
        ("file:/etc/passwd", ""),
        ("https://management.azure.com/a\r\nHost: evil.example", ""),
        ("", ""),
    ],
)
def test_a_link_to_another_host_is_no_link(link: str, local: str) -> None:
    wire, _ = _sent()
    assert wire.local(link) == local


def test_one_function_of_the_collectors_sends_http() -> None:
    calls = []
    for file in (Path(hermetic.__file__).parent / "collect").rglob("*.py"):
        tree = ast.parse(file.read_text())
        imports_httpx = any(
            isinstance(node, ast.Import) and any(name.name == "httpx" for name in node.names) for node in ast.walk(tree)
        )
        for function in ast.walk(tree):
            if imports_httpx and isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef):
                calls += [
                    (file.name, function.name)
                    for node in ast.walk(function)
                    if isinstance(node, ast.Attribute)
                    and node.attr in {"stream", "request", "get", "post", "put", "delete", "patch", "send"}
                ]
    assert calls == [("transport.py", "_exchange")]
