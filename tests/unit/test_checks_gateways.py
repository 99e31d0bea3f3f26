"""VPN and ExpressRoute gateways: present, connected, and what they have learned."""

from __future__ import annotations

import pytest

from hermetic.audit.model.findings import Severity, Verdict
from tests.audit_estates import NETWORK, SUBSCRIPTION, VNET
from tests.audit_services import (
    GATEWAY,
    add_connection,
    add_gateway,
    only,
    peer,
    served_cluster,
    verdicts,
)


def test_a_gateway_is_medium_without_a_connection() -> None:
    finding = only(add_gateway(served_cluster()), "vnet-gateway")
    assert (finding.verdict, finding.severity, finding.resource) == (Verdict.FAIL, Severity.MEDIUM, GATEWAY)


@pytest.mark.parametrize(
    ("status", "severity"),
    [("Connected", "high"), ("Connecting", "high"), (None, "high"), ("Odd", "high"), ("NotConnected", "medium")],
)
def test_any_connection_not_known_to_be_down_makes_it_high(status: str | None, severity: str) -> None:
    azure = add_gateway(served_cluster())
    add_connection(azure, status)
    assert only(azure, "vnet-gateway").severity == severity


@pytest.mark.parametrize(
    ("status", "verdict"),
    [("Connected", "Fail"), ("Connecting", "Unknown"), (None, "Unknown"), ("NotConnected", "Pass")],
)
def test_a_connection_fails_when_it_is_up(status: str | None, verdict: str) -> None:
    azure = add_gateway(served_cluster())
    connection = add_connection(azure, status)
    assert verdicts(azure, "gateway-connections") == {connection.lower(): verdict}


def test_a_connection_in_another_group_is_found_at_the_gateway() -> None:
    azure = add_gateway(served_cluster())
    elsewhere = f"{SUBSCRIPTION}/resourceGroups/other/providers/Microsoft.Network/connections/site"
    azure.put(elsewhere, {"connectionStatus": "Connected"})
    at_the_gateway = (GATEWAY.lower(), "microsoft.network/virtualnetworkgateways/connections")
    azure.lists[at_the_gateway] = [{"id": elsewhere, "name": "site", "properties": {}}]
    assert verdicts(azure, "gateway-connections") == {elsewhere.lower(): "Fail"}


def test_connections_that_cannot_be_listed_are_unknown() -> None:
    azure = add_gateway(served_cluster()).refuse(
        f"{SUBSCRIPTION}/resourceGroups/ai", kind="Microsoft.Network/connections"
    )
    assert verdicts(azure, "gateway-connections") == {GATEWAY.lower(): "Unknown"}


def test_something_in_the_gateway_subnet_that_is_no_listed_gateway_is_unknown() -> None:
    azure = add_gateway(served_cluster()).drop(GATEWAY)
    assert verdicts(azure, "vnet-gateway") == {VNET.lower(): "Unknown"}


def test_clients_fail() -> None:
    pool = {"vpnClientAddressPool": {"addressPrefixes": ["172.30.0.0/24"]}}
    azure = add_gateway(served_cluster(), vpnClientConfiguration=pool)
    assert verdicts(azure, "gateway-p2s") == {GATEWAY.lower(): "Fail"}
    assert verdicts(add_gateway(served_cluster()), "gateway-p2s") == {GATEWAY.lower(): "Pass"}


def test_a_default_site_fails() -> None:
    azure = add_gateway(served_cluster(), gatewayDefaultSite={"id": f"{NETWORK}/localNetworkGateways/site"})
    assert verdicts(azure, "gateway-forced-tunnel") == {GATEWAY.lower(): "Fail"}


@pytest.mark.parametrize(
    ("prefix", "verdict"),
    [
        ("0.0.0.0/0", "Fail"),
        ("::/0", "Fail"),
        ("0.0.0.0/1", "Fail"),
        ("128.0.0.0/1", "Fail"),
        ("20.0.0.0/8", "Fail"),
        ("not a prefix", "Fail"),
        ("10.0.0.0/8", "Pass"),
        ("100.64.0.0/10", "Pass"),
        ("fd00::/8", "Pass"),
    ],
)
def test_a_learned_prefix_fails_when_it_is_public(prefix: str, verdict: str) -> None:
    azure = add_gateway(served_cluster())
    azure.act(GATEWAY, "getLearnedRoutes", {"value": [{"network": prefix, "origin": "EBgp"}]})
    assert verdicts(azure, "gateway-forced-tunnel") == {GATEWAY.lower(): verdict}


@pytest.mark.parametrize(
    ("network", "origin", "verdict"),
    [
        ("20.30.0.0/16", "Network", "Pass"),
        ("20.30.4.0/24", "Network", "Pass"),
        ("20.40.0.0/16", "Network", "Pass"),
        ("20.30.0.0/16", "EBgp", "Fail"),
        ("20.30.0.0/15", "Network", "Fail"),
        ("0.0.0.0/0", "Network", "Fail"),
        ("not a prefix", "Network", "Fail"),
    ],
)
def test_public_space_of_the_networks_themselves_is_not_learned(network: str, origin: str, verdict: str) -> None:
    azure = add_gateway(peer(served_cluster(), remoteAddressSpace={"addressPrefixes": ["20.40.0.0/16"]}))
    azure.change(VNET, addressSpace={"addressPrefixes": ["10.0.0.0/16", "20.30.0.0/16"]})
    azure.act(GATEWAY, "getLearnedRoutes", {"value": [{"network": network, "origin": origin}]})
    assert verdicts(azure, "gateway-forced-tunnel") == {GATEWAY.lower(): verdict}


def test_routes_that_cannot_be_asked_for_are_unknown() -> None:
    azure = add_gateway(served_cluster()).refuse(GATEWAY, verb="post")
    assert verdicts(azure, "gateway-forced-tunnel") == {GATEWAY.lower(): "Unknown"}
    azure = add_gateway(served_cluster()).act(GATEWAY, "getLearnedRoutes", {})
    assert verdicts(azure, "gateway-forced-tunnel") == {GATEWAY.lower(): "Unknown"}
