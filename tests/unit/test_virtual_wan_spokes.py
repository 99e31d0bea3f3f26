"""The whole report of a spoke of Virtual WAN, in both profiles: clean where the hub is allowed, paths behind it found.

What Azure makes of a hub connection: github.com/MicrosoftDocs/azure-docs/issues/107338 and
github.com/Azure/arm-template-whatif/issues/219 (a peering with HV_HUB_..., in a subscription of Microsoft). Types of
next hops: learn.microsoft.com/azure/virtual-wan/effective-routes-virtual-hub.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermetic.audit.model.findings import Finding, Verdict
from testbed.azure.baseline import estate_of
from testbed.azure.baseline.layout import LOCATION
from testbed.azure.baseline.network import add_machine, peering
from testbed.azure.estate import Estate
from testbed.azure.plants.declared_firewall import allow_in_declared_firewall
from testbed.azure.plants.pieces import first_configuration, network, public_address
from tests.decision_cases import IN_MICROSOFT
from tests.stand_in_answers import judged

SPOKES = "Virtual Network Connection"
OTHER_SPOKE = "10.77.0.0/16"
PROFILES = ("sealed", "filtered")


def spoke(layout: str, *more: dict[str, Any]) -> Estate:
    """An estate whose network is connected to a hub, beside a second spoke; `more` are further routes of the hub."""
    estate = estate_of(layout)
    hub, second = network(estate, "virtualHubs", "hub"), network(estate, "virtualNetworks", "vnet-second")
    remote = f"{IN_MICROSOFT}/Microsoft.Network/virtualNetworks/HV_hub_7c1e"
    peering_fields = {**peering(remote, "10.88.0.0/24"), "useRemoteGateways": True, "allowForwardedTraffic": True}
    estate.add(f"{estate.site.vnet}/virtualNetworkPeerings/RemoteVnetToHubPeering_1", peering_fields)
    estate.add(hub, {"addressPrefix": "10.88.0.0/24"}, location=LOCATION)
    estate.add(second, {"addressSpace": {"addressPrefixes": [OTHER_SPOKE]}, "subnets": []}, location=LOCATION)
    estate.add(f"{second}/subnets/snet", {"addressPrefix": "10.77.0.0/24", "defaultOutboundAccess": False})
    for name, target in (("inference", estate.site.vnet), ("second", second)):
        peering_fields = {"remoteVirtualNetwork": {"id": target}, "enableInternetSecurity": False}
        estate.add(f"{hub}/hubVirtualNetworkConnections/{name}", peering_fields)
    known_routes = [route(SPOKES, "10.40.0.0/16"), route(SPOKES, OTHER_SPOKE)]
    estate.answer(hub, "effectiveRoutes", {"value": [*known_routes, *more]})
    estate.policy["allowedPeerings"] = [*estate.policy.get("allowedPeerings", []), hub]
    return estate


def route(hop: str, *prefixes: str) -> dict[str, Any]:
    return {"addressPrefixes": list(prefixes), "nextHopType": hop, "nextHops": [], "asPath": ""}


def machine_in_the_second_spoke(estate: Estate) -> str:
    nic = network(estate, "networkInterfaces", "nic-second")
    subnet = f"{network(estate, 'virtualNetworks', 'vnet-second')}/subnets/snet"
    add_machine(estate, "vm-second", nic, subnet, "10.77.0.4")
    address = public_address(estate, network(estate, "publicIPAddresses", "pip-second"))
    first_configuration(estate, nic)["publicIPAddress"] = {"id": address}
    return nic


def deciding(estate: Estate) -> list[Finding]:
    """Findings that decide the verdict and are no Pass."""
    fine = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    return [finding for finding in judged(estate) if finding.severity.decides and finding.verdict not in fine]


@pytest.mark.parametrize("layout", PROFILES)
def test_a_spoke_of_an_allowed_hub_is_clean(layout: str) -> None:
    assert [(finding.check, finding.resource, finding.message) for finding in deciding(spoke(layout))] == []


@pytest.mark.parametrize("layout", PROFILES)
def test_a_machine_with_an_egress_path_in_another_spoke_is_found(layout: str) -> None:
    estate = spoke(layout)
    nic = machine_in_the_second_spoke(estate)
    estate.properties(estate.site.node_rules)["securityRules"].insert(
        0,
        {
            "name": "AllowSpokes",
            "properties": {
                "priority": 100,
                "direction": "Outbound",
                "access": "Allow",
                "protocol": "*",
                "sourceAddressPrefix": "*",
                "sourcePortRange": "*",
                "destinationAddressPrefix": "10.0.0.0/8",
                "destinationPortRange": "*",
            },
        },
    )
    failed = {
        (finding.check, finding.resource.lower()) for finding in deciding(estate) if finding.verdict is Verdict.FAIL
    }
    assert ("vm-pivot", nic.lower()) in failed


@pytest.mark.parametrize("layout", PROFILES)
@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        (route("VPN_S2S_Gateway", "0.0.0.0/0"), Verdict.FAIL),
        (route("ExpressRouteGateway", "192.168.0.0/16"), Verdict.FAIL),
        (route(SPOKES, "0.0.0.0/1"), Verdict.FAIL),
        (route("Azure Firewall", "0.0.0.0/0"), Verdict.FAIL),
        (route(SPOKES, "10.99.0.0/16"), Verdict.UNKNOWN),
        (route("Remote Hub", "10.99.0.0/16"), Verdict.UNKNOWN),
    ],
)
def test_a_route_of_the_hub_that_leads_on_is_the_one_finding(
    layout: str, more: dict[str, Any], verdict: Verdict
) -> None:
    findings = deciding(spoke(layout, more))
    assert {(finding.check, finding.verdict) for finding in findings} == {("vwan-connection", verdict)}


SECURED = "10.88.0.132"
BY_FIREWALL = route("Azure Firewall", "0.0.0.0/0", "10.0.0.0/8")


def secured_spoke(*more: dict[str, Any]) -> Estate:
    """The spoke's declared firewall is that of the hub, which announces the default route to it.

    learn.microsoft.com/azure/firewall-manager/secured-virtual-hub: a firewall of a hub has an address of the hub.
    """
    estate = spoke("filtered", BY_FIREWALL, *more)
    firewall = estate.properties(estate.site.firewall)
    hub = network(estate, "virtualHubs", "hub")
    firewall |= {"ipConfigurations": [], "virtualHub": {"id": hub}, "hubIPAddresses": {"privateIPAddress": SECURED}}
    for route_fields in estate.properties(estate.site.route_table)["routes"]:
        if route_fields["properties"]["addressPrefix"] == "0.0.0.0/0":
            route_fields["properties"]["nextHopIpAddress"] = SECURED
    return estate


def test_a_spoke_whose_declared_firewall_is_the_one_of_its_secured_hub_is_clean() -> None:
    assert [(finding.check, finding.resource, finding.message) for finding in deciding(secured_spoke())] == []


def _another_firewall_in_the_hub(estate: Estate) -> None:
    hub = network(estate, "virtualHubs", "hub")
    hub_fields = {
        "virtualHub": {"id": hub},
        "hubIPAddresses": {"privateIPAddress": "10.88.0.140"},
        "ipConfigurations": [],
    }
    estate.add(network(estate, "azureFirewalls", "afw-other"), hub_fields, location=LOCATION)


def _any_destination(estate: Estate) -> None:
    allow_in_declared_firewall(estate, {"ruleType": "NetworkRule", "name": "any", "destinationAddresses": ["*"]})


def _a_site(estate: Estate) -> None:
    rule = {"ruleType": "NetworkRule", "name": "site", "destinationAddresses": ["192.168.10.10"]}
    allow_in_declared_firewall(estate, rule)


def _hub_routes_denied(estate: Estate) -> None:
    estate.deny(network(estate, "virtualHubs", "hub"), "*/effectiveRoutes/action")


@pytest.mark.parametrize(
    ("change", "more", "verdict", "check"),
    [
        (_another_firewall_in_the_hub, (), Verdict.FAIL, "firewall-in-path"),
        (_any_destination, (), Verdict.FAIL, "firewall-in-path"),
        (_a_site, (), Verdict.UNKNOWN, "firewall-in-path"),
        (_hub_routes_denied, (), Verdict.UNKNOWN, "vwan-connection"),
        (lambda _: None, (route("ExpressRouteGateway", "0.0.0.0/0"),), Verdict.FAIL, "vwan-connection"),
        (lambda _: None, (route("VPN_S2S_Gateway", "192.168.0.0/16"),), Verdict.FAIL, "vwan-connection"),
        (lambda _: None, (route("Remote Hub", "10.99.0.0/16"),), Verdict.UNKNOWN, "vwan-connection"),
    ],
)
def test_what_leads_past_the_secured_hub_or_through_it_is_the_one_finding(
    change: Callable[[Estate], object], more: tuple[dict[str, Any], ...], verdict: Verdict, check: str
) -> None:
    estate = secured_spoke(*more)
    change(estate)
    assert {(finding.check, finding.verdict) for finding in deciding(estate)} == {(check, verdict)}
