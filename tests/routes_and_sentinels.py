"""Routes, the declared firewall, and a sentinel whose routes Azure shows: pieces for estates made by hand."""

from __future__ import annotations

from typing import Any

from hermetic.audit.model.findings import Finding
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import (
    GROUP,
    NETWORK,
    NODES,
    ROUTES,
    SENTINEL,
    VNET,
    FakeAzure,
    ip_configuration,
    small_cluster,
)
from tests.outbound_methods import the

NAT = f"{NETWORK}/natGateways/out"
FIREWALL = f"{NETWORK}/azureFirewalls/wall"
FIREWALL_ADDRESS = "10.0.5.4"
FILTERED = Policy(profile="filtered", firewall=FIREWALL)
WATCHER = f"{NETWORK}/networkWatchers/w"
MACHINE = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/sentinel"


def with_routes(*found: dict[str, Any], azure: FakeAzure | None = None) -> FakeAzure:
    return (azure or small_cluster()).change(ROUTES, routes=list(found))


def with_a_method(azure: FakeAzure) -> FakeAzure:
    return azure.change(NODES, natGateway={"id": NAT})


def with_a_firewall(azure: FakeAzure) -> FakeAzure:
    frontend = {"subnet": {"id": f"{VNET}/subnets/AzureFirewallSubnet"}, "privateIPAddress": FIREWALL_ADDRESS}
    return azure.put(FIREWALL, {"ipConfigurations": [{"name": "i", "properties": frontend}]})


def verdict_and_severity(findings: dict[str, Finding], resource: str) -> tuple[str, str]:
    finding = the(findings, resource)
    return finding.verdict.value, finding.severity.value


def sentinel(azure: FakeAzure, subnet: str = NODES) -> FakeAzure:
    interface_fields = {"virtualMachine": {"id": MACHINE}, "ipConfigurations": [ip_configuration("10.0.1.200", subnet)]}
    azure.put(SENTINEL, interface_fields, location="West Europe")
    return azure.put(WATCHER, {}, location="westeurope")


def line(prefix: str, hop: str, source: str = "Default", state: str = "Active", address: str = "") -> dict[str, Any]:
    addresses = [address] if address else []
    return {
        "source": source,
        "state": state,
        "addressPrefix": [prefix],
        "nextHopType": hop,
        "nextHopIpAddress": addresses,
    }


LOCAL = line("10.0.0.0/16", "VnetLocal")


def effective(*lines: dict[str, Any], azure: FakeAzure | None = None) -> FakeAzure:
    return sentinel(azure or small_cluster()).act(SENTINEL, "effectiveRouteTable", {"value": [LOCAL, *lines]})
