"""Table B, what Azure itself says: effective routes and next hops of sentinels, routing appliances."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import (
    API_SERVER,
    CLUSTER,
    GROUP,
    NETWORK,
    NODES,
    ROUTES,
    SENTINEL,
    SUBSCRIPTION,
    VNET,
    small_cluster,
)
from tests.outbound_methods import the
from tests.routes_and_sentinels import (
    FILTERED,
    FIREWALL_ADDRESS,
    WATCHER,
    effective,
    line,
    sentinel,
    verdict_and_severity,
    with_a_firewall,
    with_a_method,
)

EFFECTIVE = [
    (line("0.0.0.0/0", "None", "User"), "Pass", "critical"),
    (line("0.0.0.0/0", "Internet"), "Pass", "critical"),
    (line("0.0.0.0/0", "Internet", "User"), "Fail", "medium"),
    (line("20.0.0.0/8", "Internet", "User"), "Fail", "medium"),
    (line("0.0.0.0/0", "VirtualAppliance", "User", address="10.0.9.9"), "Fail", "critical"),
    (line("20.0.0.0/8", "VirtualAppliance", "User", address="10.0.9.9"), "Fail", "high"),
    (line("0.0.0.0/0", "VirtualNetworkGateway", "VirtualNetworkGateway"), "Fail", "high"),
    (line("20.0.0.0/8", "VirtualNetworkGateway", "VirtualNetworkGateway"), "Fail", "high"),
    (line("192.168.0.0/16", "VirtualNetworkGateway", "VirtualNetworkGateway"), "Pass", "critical"),
    (line("20.150.0.0/16", "VirtualNetworkServiceEndpoint"), "Fail", "critical"),
    (line("20.150.0.0/16", "MicrosoftEdge"), "Fail", "high"),
    (line("20.150.0.0/16", "HopOfTomorrow"), "Unknown", "critical"),
    (line("10.9.0.0/16", "HopOfTomorrow"), "Unknown", "critical"),
    (line("", "VirtualAppliance"), "Unknown", "critical"),
    (line("Storage.WestEurope", "Internet", "User"), "Fail", "medium"),
    (line("Storage.WestEurope", "VirtualAppliance", "User"), "Fail", "high"),
    (line("Storage.WestEurope", "None", "User"), "Pass", "critical"),
    (line("10.1.0.0/16", "VNetPeering"), "Pass", "critical"),
    (line("10.0.1.7/32", "InterfaceEndpoint"), "Pass", "critical"),
    (line("0.0.0.0/0", "VirtualAppliance", "User", "Invalid", "10.0.9.9"), "Pass", "critical"),
    (line("0.0.0.0/0", "VirtualAppliance", "User", "StateOfTomorrow", "10.0.9.9"), "Fail", "critical"),
    (line("0.0.0.0/0", "VirtualAppliance", "SourceOfTomorrow", address="10.0.9.9"), "Fail", "critical"),
]


@pytest.mark.parametrize(("shown", "verdict", "severity"), EFFECTIVE)
def test_effective_routes_are_judged_by_hop(shown: dict[str, Any], verdict: str, severity: str) -> None:
    assert verdict_and_severity(effective(shown).findings("effective-routes"), NODES) == (verdict, severity)


def test_azures_own_route_to_the_internet_fails_where_something_carries_it() -> None:
    shown = line("0.0.0.0/0", "Internet")
    azure = effective(shown, azure=with_a_method(small_cluster()))
    assert verdict_and_severity(azure.findings("effective-routes"), NODES) == ("Fail", "critical")
    azure = effective(shown, azure=small_cluster().change(NODES, defaultOutboundAccess=None))
    assert verdict_and_severity(azure.findings("effective-routes"), NODES) == ("Fail", "critical")


def test_azures_own_route_passes_only_where_every_method_could_be_seen() -> None:
    azure = effective(line("0.0.0.0/0", "Internet")).refuse(SUBSCRIPTION, kind="Microsoft.Network/natGateways")
    assert verdict_and_severity(azure.findings("effective-routes"), NODES)[0] == "Unknown"


STORAGE = {"service": "Microsoft.Storage", "locations": ["westeurope"]}
SERVICE_POLICY = f"{NETWORK}/serviceEndpointPolicies/p"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/ours"


@pytest.mark.parametrize(
    ("resources", "severity"), [(None, "critical"), ([SUBSCRIPTION], "high"), ([ACCOUNT], "medium")]
)
def test_a_service_endpoint_route_is_as_bad_as_what_it_reaches(resources: list[str] | None, severity: str) -> None:
    azure = effective(line("20.150.0.0/16", "VirtualNetworkServiceEndpoint")).change(NODES, serviceEndpoints=[STORAGE])
    if resources is not None:
        policy_fields = {
            "serviceEndpointPolicyDefinitions": [{"name": "d", "properties": {"serviceResources": resources}}]
        }
        azure.put(SERVICE_POLICY, policy_fields).change(NODES, serviceEndpointPolicies=[{"id": SERVICE_POLICY}])
    assert verdict_and_severity(azure.findings("effective-routes"), NODES) == ("Fail", severity)


def test_a_service_endpoint_route_of_another_service_is_as_bad_as_its_endpoint() -> None:
    azure = effective(line("20.60.0.0/16", "VirtualNetworkServiceEndpoint"))
    azure.change(NODES, serviceEndpoints=[{"service": "Microsoft.KeyVault"}])
    assert verdict_and_severity(azure.findings("effective-routes"), NODES) == ("Fail", "high")


def test_the_declared_firewall_passes_in_effective_routes_and_next_hops() -> None:
    azure = with_a_firewall(effective(line("0.0.0.0/0", "VirtualAppliance", "User", address=FIREWALL_ADDRESS)))
    azure.act(WATCHER, "nextHop", {"nextHopType": "VirtualAppliance", "nextHopIpAddress": FIREWALL_ADDRESS})
    for check in ("effective-routes", "nexthop-spotcheck"):
        assert verdict_and_severity(azure.findings(check, FILTERED), NODES)[0] == "Pass"
        assert verdict_and_severity(azure.findings(check), NODES)[0] == "Fail"


@pytest.mark.parametrize("value", [{"value": []}, {}])
def test_a_machine_without_any_effective_route_cannot_be(value: dict[str, Any]) -> None:
    azure = sentinel(small_cluster()).act(SENTINEL, "effectiveRouteTable", value)
    assert verdict_and_severity(azure.findings("effective-routes"), NODES)[0] == "Unknown"


NEXT_HOPS = [
    ({"nextHopType": "None"}, "Pass", "high"),
    ({"nextHopType": "Internet", "routeTableId": "System Route"}, "Pass", "high"),
    ({"nextHopType": "Internet", "routeTableId": ROUTES}, "Fail", "medium"),
    ({"nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.9.9"}, "Fail", "high"),
    ({"nextHopType": "VirtualNetworkGateway"}, "Fail", "high"),
    ({"nextHopType": "VirtualNetworkServiceEndpoint"}, "Fail", "high"),
    ({"nextHopType": "MicrosoftEdge"}, "Fail", "high"),
    ({"nextHopType": "HopOfTomorrow"}, "Unknown", "high"),
    ({"nextHopType": "VnetLocal"}, "Unknown", "high"),
    ({}, "Unknown", "high"),
]


@pytest.mark.parametrize(("answer", "verdict", "severity"), NEXT_HOPS)
def test_the_next_hop_is_judged(answer: dict[str, Any], verdict: str, severity: str) -> None:
    azure = sentinel(small_cluster()).act(WATCHER, "nextHop", answer)
    assert verdict_and_severity(azure.findings("nexthop-spotcheck"), NODES) == (verdict, severity)


def test_the_next_hop_to_the_internet_fails_where_something_carries_it() -> None:
    azure = sentinel(with_a_method(small_cluster()))
    azure.act(WATCHER, "nextHop", {"nextHopType": "Internet", "routeTableId": "System Route"})
    assert verdict_and_severity(azure.findings("nexthop-spotcheck"), NODES) == ("Fail", "high")


def test_the_remedy_of_a_next_hop_names_the_machine_that_was_asked_about() -> None:
    azure = sentinel(with_a_method(small_cluster())).act(WATCHER, "nextHop", {"nextHopType": "Internet"})
    remedy = the(azure.findings("nexthop-spotcheck"), NODES).remedy
    assert "SENTINEL_" not in remedy
    assert "--vm sentinel" in remedy
    assert "--source-ip 10.0.1.200" in remedy


def test_without_a_watcher_in_the_region_the_next_hop_does_not_apply() -> None:
    azure = sentinel(small_cluster()).put(WATCHER, {}, location="northeurope")
    assert verdict_and_severity(azure.findings("nexthop-spotcheck"), NODES)[0] == "NotApplicable"


@pytest.mark.parametrize("check", ["effective-routes", "nexthop-spotcheck", "nsg-effective"])
def test_a_sentinel_that_is_there_and_does_not_answer_is_unknown(check: str) -> None:
    azure = sentinel(small_cluster()).refuse(SENTINEL, UnreadReason.REFUSED, verb="post").refuse(WATCHER, verb="post")
    assert verdict_and_severity(azure.findings(check), NODES)[0] == "Unknown"


@pytest.mark.parametrize("check", ["effective-routes", "nexthop-spotcheck", "nsg-effective"])
def test_no_sentinel_does_not_apply_and_an_unread_list_is_unknown(check: str) -> None:
    assert verdict_and_severity(small_cluster().findings(check), NODES)[0] == "NotApplicable"
    azure = small_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/networkInterfaces")
    assert verdict_and_severity(azure.findings(check), NODES)[0] == "Unknown"


@pytest.mark.parametrize("missing", ["virtualMachine", "privateEndpoint"])
def test_only_a_machine_that_stands_alone_is_a_sentinel(missing: str) -> None:
    azure = effective(line("0.0.0.0/0", "VirtualAppliance", "User"))
    if missing == "virtualMachine":
        azure.drop(SENTINEL, "virtualMachine")
    else:
        azure.change(SENTINEL, privateEndpoint={"id": "/subscriptions/x"})
    assert verdict_and_severity(azure.findings("effective-routes"), NODES)[0] == "NotApplicable"


def test_a_sentinel_of_the_policy_that_was_not_seen_is_unknown() -> None:
    policy = Policy(sentinel_nics=(SENTINEL,))
    findings = small_cluster().findings("effective-routes", policy)
    assert verdict_and_severity(findings, SENTINEL)[0] == "Unknown"


def test_each_subnet_has_its_own_sentinel() -> None:
    azure = effective(line("0.0.0.0/0", "VirtualAppliance", "User"))
    findings = azure.findings("effective-routes")
    assert verdict_and_severity(findings, NODES)[0] == "Fail"
    assert verdict_and_severity(findings, API_SERVER)[0] == "NotApplicable"


# ---------------------------------------------------------------- routing appliances


APPLIANCE = f"{NETWORK}/virtualNetworkAppliances/a"


def test_a_routing_appliance_in_reach_is_told() -> None:
    azure = small_cluster().put(APPLIANCE, {"subnet": {"id": f"{VNET}/subnets/a"}})
    assert verdict_and_severity(azure.findings("vnra"), APPLIANCE) == ("Fail", "medium")


def test_one_that_is_out_of_reach_passes_and_one_without_a_place_is_unknown() -> None:
    azure = small_cluster().put(APPLIANCE, {"subnet": {"id": f"{VNET}9/subnets/a"}})
    assert verdict_and_severity(azure.findings("vnra"), APPLIANCE)[0] == "Pass"
    assert verdict_and_severity(small_cluster().put(APPLIANCE, {}).findings("vnra"), APPLIANCE)[0] == "Unknown"


def test_appliances_that_cannot_be_listed_are_unknown() -> None:
    azure = small_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/virtualNetworkAppliances")
    assert verdict_and_severity(azure.findings("vnra"), CLUSTER)[0] == "Unknown"
