"""Table B: routes as they are written, and as Azure says that they work."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.checks import routes
from hermetic.audit.model.findings import Verdict
from tests.audit_estates import (
    API_SERVER,
    NETWORK,
    NODES,
    ROUTES,
    SUBSCRIPTION,
    VNET,
    FakeAzure,
    route,
    small_cluster,
)
from tests.outbound_methods import the
from tests.routes_and_sentinels import (
    FILTERED,
    FIREWALL,
    FIREWALL_ADDRESS,
    verdict_and_severity,
    with_a_firewall,
    with_a_method,
    with_routes,
)

NOWHERE = [route("v4", "0.0.0.0/0", "None"), route("v6", "::/0", "None")]


# ---------------------------------------------------------------- route tables


def test_a_sealed_cluster_has_no_egress_path_by_routes() -> None:
    for check in routes.CHECKS:
        findings = small_cluster().findings(check.page.id)
        assert {finding.verdict for finding in findings.values()} <= {Verdict.PASS, Verdict.NOT_APPLICABLE}, (
            check.page.id
        )


DEFAULTS = [
    # prefix, hop, address, check, verdict, severity
    ("0.0.0.0/0", "Internet", "", "route-default-internet", "Fail", "medium"),
    ("::/0", "Internet", "", "route-default-internet", "Fail", "medium"),
    ("8.8.8.8/0", "Internet", "", "route-default-internet", "Fail", "medium"),
    ("0:0::/0", "internet", "", "route-default-internet", "Fail", "medium"),
    ("0.0.0.0/0", "None", "", "route-default-internet", "Pass", "critical"),
    ("0.0.0.0/0", "VirtualAppliance", "10.0.9.9", "route-default-appliance", "Fail", "critical"),
    ("::/0", "VirtualAppliance", "fd00::9", "route-default-appliance", "Fail", "critical"),
    ("0.0.0.0/0", "VirtualNetworkGateway", "", "route-default-appliance", "Fail", "critical"),
    ("0.0.0.0/0", "VirtualHubOfTomorrow", "", "route-default-appliance", "Fail", "critical"),
    ("0.0.0.0/0", "", "", "route-default-appliance", "Fail", "critical"),
    ("0.0.0.0/0", "VnetLocal", "", "route-default-appliance", "Unknown", "critical"),
    ("0.0.0.0/0", "None", "", "route-default-appliance", "Pass", "critical"),
    ("0.0.0.0/1", "VirtualAppliance", "10.0.9.9", "route-split-default", "Fail", "high"),
    ("128.0.0.0/1", "Internet", "", "route-split-default", "Fail", "high"),
    ("20.60.0.0/16", "VirtualNetworkGateway", "", "route-split-default", "Fail", "high"),
    ("2600::/16", "VirtualAppliance", "fd00::9", "route-split-default", "Fail", "high"),
    ("Storage.WestEurope", "Internet", "", "route-split-default", "Fail", "high"),
    *(
        (tag, hop, address, "route-split-default", "Fail", "high")
        for tag in ("AzureCloud", "AzureCloud.swedencentral", "AzureMonitor", "Storage", "MicrosoftContainerRegistry")
        for hop, address in (("VirtualAppliance", "10.0.9.9"), ("Internet", ""))
    ),
    ("20.60.0.0/16", "HopOfTomorrow", "", "route-split-default", "Fail", "high"),
    ("20.60.0.0/16", "VnetLocal", "", "route-split-default", "Unknown", "high"),
    ("20.60.0.0/16", "None", "", "route-split-default", "Pass", "high"),
    ("Storage", "None", "", "route-split-default", "Pass", "high"),
    ("10.0.0.0/8", "VirtualAppliance", "10.0.9.9", "route-split-default", "Unknown", "high"),
    ("100.64.0.0/10", "VirtualAppliance", "10.0.9.9", "route-split-default", "Unknown", "high"),
    ("fd00::/8", "VirtualAppliance", "fd00::9", "route-split-default", "Pass", "high"),
    ("168.63.129.16/32", "Internet", "", "route-split-default", "Pass", "high"),
    ("8.0.0.0/7", "VirtualAppliance", "10.0.9.9", "route-split-default", "Fail", "high"),
]


@pytest.mark.parametrize(("prefix", "hop", "address", "check", "verdict", "severity"), DEFAULTS)
def test_a_route_is_judged_by_prefix_and_hop(
    prefix: str, hop: str, address: str, check: str, verdict: str, severity: str
) -> None:
    azure = with_routes(route("r", prefix, hop, address))
    assert verdict_and_severity(azure.findings(check), ROUTES) == (verdict, severity)


@pytest.mark.parametrize(
    ("prefix", "check"), [("0.0.0.0/0", "route-default-internet"), ("128.0.0.0/1", "route-split-default")]
)
def test_a_route_to_the_internet_is_critical_where_something_carries_it(prefix: str, check: str) -> None:
    open_subnet = with_routes(route("r", prefix, "Internet")).change(NODES, defaultOutboundAccess=None)
    assert verdict_and_severity(open_subnet.findings(check), ROUTES) == ("Fail", "critical")
    assert verdict_and_severity(with_a_method(with_routes(route("r", prefix, "Internet"))).findings(check), ROUTES) == (
        "Fail",
        "critical",
    )


def test_the_api_servers_own_subnet_carries_nothing() -> None:
    azure = with_routes(route("r", "0.0.0.0/0", "Internet")).change(API_SERVER, defaultOutboundAccess=None)
    assert verdict_and_severity(azure.findings("route-default-internet"), ROUTES) == ("Fail", "medium")


def test_a_method_that_may_be_hidden_counts_as_one() -> None:
    azure = with_routes(route("r", "0.0.0.0/0", "Internet"))
    azure.refuse(SUBSCRIPTION, kind="Microsoft.Network/natGateways")
    assert verdict_and_severity(azure.findings("route-default-internet"), ROUTES) == ("Fail", "critical")


def test_what_the_network_and_its_peers_use_for_themselves_is_not_public() -> None:
    azure = with_routes(
        route("own", "20.1.0.0/16", "VirtualAppliance"), route("far", "21.1.0.0/16", "VirtualAppliance")
    )
    azure.change(VNET, addressSpace={"addressPrefixes": ["10.0.0.0/16", "20.1.0.0/16"]})
    assert verdict_and_severity(azure.findings("route-split-default"), ROUTES) == ("Fail", "high")
    peering = {"remoteVirtualNetwork": {"id": f"{VNET}2"}, "remoteAddressSpace": {"addressPrefixes": ["21.0.0.0/8"]}}
    azure.put(f"{VNET}/virtualNetworkPeerings/p", peering)
    assert verdict_and_severity(azure.findings("route-split-default"), ROUTES)[0] == "Pass"


def test_the_path_names_every_subnet_behind_the_table() -> None:
    azure = with_routes(route("r", "0.0.0.0/0", "VirtualAppliance", "10.0.9.9"))
    paths = the(azure.findings("route-default-appliance"), ROUTES).path_texts
    assert paths == (
        "subnet api -> VirtualAppliance 10.0.9.9 -> internet",
        "subnet nodes -> VirtualAppliance 10.0.9.9 -> internet",
    )


@pytest.mark.parametrize("check", ["route-default-internet", "route-default-appliance", "route-split-default"])
def test_a_table_that_was_not_seen_is_unknown(check: str) -> None:
    assert verdict_and_severity(small_cluster().refuse(ROUTES).findings(check), ROUTES)[0] == "Unknown"


@pytest.mark.parametrize("check", ["route-default-internet", "route-default-appliance", "route-split-default"])
def test_a_subnet_without_a_table_has_no_route_to_judge(check: str) -> None:
    findings = small_cluster().drop(NODES, "routeTable").findings(check)
    assert verdict_and_severity(findings, NODES)[0] == "NotApplicable"


# ---------------------------------------------------------------- the declared firewall


def test_the_default_route_to_the_declared_firewall_passes() -> None:
    azure = with_a_firewall(with_routes(route("v4", "0.0.0.0/0", "VirtualAppliance", FIREWALL_ADDRESS), NOWHERE[1]))
    assert verdict_and_severity(azure.findings("route-default-appliance", FILTERED), ROUTES)[0] == "Pass"
    assert verdict_and_severity(azure.findings("route-table-missing", FILTERED), ROUTES)[0] == "Pass"
    assert verdict_and_severity(azure.findings("route-default-appliance"), ROUTES) == ("Fail", "critical")


@pytest.mark.parametrize(
    ("prefix", "hop", "address", "check"),
    [
        ("0.0.0.0/0", "VirtualAppliance", "10.0.5.5", "route-default-appliance"),
        ("0.0.0.0/0", "VirtualNetworkGateway", "", "route-default-appliance"),
        ("0.0.0.0/0", "VirtualAppliance", "", "route-default-appliance"),
        ("0.0.0.0/1", "VirtualAppliance", FIREWALL_ADDRESS, "route-split-default"),
        ("Storage", "VirtualAppliance", FIREWALL_ADDRESS, "route-split-default"),
    ],
)
def test_nothing_else_passes_beside_it(prefix: str, hop: str, address: str, check: str) -> None:
    azure = with_a_firewall(with_routes(route("r", prefix, hop, address)))
    assert verdict_and_severity(azure.findings(check, FILTERED), ROUTES)[0] == "Fail"


def test_a_firewall_that_was_not_seen_may_be_where_the_route_leads() -> None:
    azure = with_routes(route("v4", "0.0.0.0/0", "VirtualAppliance", FIREWALL_ADDRESS)).refuse(FIREWALL)
    assert verdict_and_severity(azure.findings("route-default-appliance", FILTERED), ROUTES)[0] == "Unknown"


# ---------------------------------------------------------------- learned routes, missing tables


def gateway(azure: FakeAzure) -> FakeAzure:
    home = f"{VNET}/subnets/GatewaySubnet"
    azure.put(home, {"addressPrefix": "10.0.8.0/27"})
    gateway_fields = {"ipConfigurations": [{"name": "i", "properties": {"subnet": {"id": home}}}]}
    return azure.put(f"{NETWORK}/virtualNetworkGateways/vpn", gateway_fields)


def remote_gateway(azure: FakeAzure) -> FakeAzure:
    peering_fields = {
        "remoteVirtualNetwork": {"id": f"{VNET}2"},
        "peeringState": "Connected",
        "useRemoteGateways": True,
    }
    return azure.put(f"{VNET}/virtualNetworkPeerings/hub", peering_fields)


def hub(azure: FakeAzure) -> FakeAzure:
    arm_id = f"{NETWORK}/virtualHubs/h"
    azure.put(arm_id, {})
    return azure.put(f"{arm_id}/hubVirtualNetworkConnections/c", {"remoteVirtualNetwork": {"id": VNET}})


def route_server(azure: FakeAzure) -> FakeAzure:
    return azure.put(f"{VNET}/subnets/RouteServerSubnet", {"addressPrefix": "10.0.8.0/27"})


@pytest.mark.parametrize("something", [gateway, remote_gateway, hub, route_server])
def test_propagation_fails_where_something_can_be_learned(something: Any) -> None:
    azure = something(small_cluster().change(ROUTES, disableBgpRoutePropagation=None))
    assert verdict_and_severity(azure.findings("route-bgp-propagation"), ROUTES) == ("Fail", "high")


def test_a_subnet_without_a_table_learns_too() -> None:
    azure = gateway(small_cluster().drop(NODES, "routeTable"))
    assert verdict_and_severity(azure.findings("route-bgp-propagation"), NODES) == ("Fail", "high")


def test_propagation_passes_where_it_is_off_or_nothing_is_in_reach() -> None:
    assert verdict_and_severity(gateway(small_cluster()).findings("route-bgp-propagation"), ROUTES)[0] == "Pass"
    azure = small_cluster().change(ROUTES, disableBgpRoutePropagation=False)
    assert verdict_and_severity(azure.findings("route-bgp-propagation"), ROUTES)[0] == "Pass"


@pytest.mark.parametrize(
    ("target", "kind"), [(VNET, "Microsoft.Network/virtualNetworks/virtualNetworkPeerings"), (VNET, "")]
)
def test_without_sight_of_gateways_propagation_is_unknown(target: str, kind: str) -> None:
    azure = small_cluster().change(ROUTES, disableBgpRoutePropagation=False).refuse(target, kind=kind)
    assert verdict_and_severity(azure.findings("route-bgp-propagation"), ROUTES)[0] == "Unknown"


@pytest.mark.parametrize("check", ["route-default-internet", "route-split-default", "route-table-missing"])
def test_a_table_without_a_list_of_routes_is_not_known_to_have_none(check: str) -> None:
    assert verdict_and_severity(small_cluster().drop(ROUTES, "routes").findings(check), ROUTES)[0] == "Unknown"


def test_a_missing_table_is_told_low_on_the_subnet() -> None:
    findings = small_cluster().drop(NODES, "routeTable").findings("route-table-missing")
    assert verdict_and_severity(findings, NODES) == ("Fail", "low")


def test_a_table_without_a_route_to_nowhere_is_told_on_the_table() -> None:
    assert verdict_and_severity(with_routes().findings("route-table-missing"), ROUTES) == ("Fail", "low")


def test_ipv6_needs_its_route_where_a_subnet_has_a_prefix() -> None:
    azure = with_routes(NOWHERE[0])
    assert verdict_and_severity(azure.findings("route-table-missing"), ROUTES)[0] == "Pass"
    azure.change(NODES, addressPrefixes=["10.0.1.0/24", "fd00::/64"])
    assert verdict_and_severity(azure.findings("route-table-missing"), ROUTES)[0] == "Fail"
