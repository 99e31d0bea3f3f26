"""Outbound methods as pieces to put into an estate made by hand, and tables A's resources by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hermetic.audit.model.findings import Finding
from tests.audit_estates import (
    CLUSTER,
    GROUP,
    NETWORK,
    NIC,
    NODE_NETWORK,
    NODES,
    SCALE_SET,
    SUBSCRIPTION,
    VNET,
    FakeAzure,
    ip_configuration,
    model_nics,
)

Change = Callable[[FakeAzure], object]

NAT = f"{NETWORK}/natGateways/out"
SERVICE_GATEWAY = f"{NETWORK}/serviceGateways/pods"
POOL = f"{CLUSTER}/agentPools/gpu"
BALANCER = f"{NODE_NETWORK}/loadBalancers/kubernetes"
FAR_BALANCER = f"{NETWORK}/loadBalancers/far"
MEMBERS = {"backendIPConfigurations": [{"id": f"{NIC}/ipConfigurations/ipconfig1"}]}
FIREWALL = f"{NETWORK}/azureFirewalls/wall"
ELSEWHERE = f"{SUBSCRIPTION}/resourceGroups/staging/providers/Microsoft.Network"


def the(findings: dict[str, Finding], resource: str) -> Finding:
    return findings[resource.lower()]


def balancer(
    arm_id: str, *, public: bool, rules: list[Any] | None = None, outbound_rules: list[Any] | None = None
) -> Change:
    """A standard balancer with the node in its pool."""
    frontend = (
        {"publicIPAddress": {"id": f"{NODE_NETWORK}/publicIPAddresses/p"}} if public else {"subnet": {"id": NODES}}
    )
    properties = {
        "frontendIPConfigurations": [
            {"id": f"{arm_id}/frontendIPConfigurations/f", "name": "f", "properties": frontend}
        ],
        "backendAddressPools": [{"id": f"{arm_id}/backendAddressPools/n", "name": "n", "properties": MEMBERS}],
        "loadBalancingRules": rules or [],
        "outboundRules": outbound_rules or [],
    }
    return lambda azure: azure.put(arm_id, properties, sku={"name": "Standard"})


def balancing(arm_id: str, **properties: Any) -> dict[str, Any]:
    web_fields = {
        "frontendIPConfiguration": {"id": f"{arm_id}/frontendIPConfigurations/f"},
        "backendAddressPool": {"id": f"{arm_id}/backendAddressPools/n"},
    }
    return {"name": "web", "properties": {**web_fields, **properties}}


def outbound_rule(arm_id: str) -> dict[str, Any]:
    rule_fields = {
        "frontendIPConfigurations": [{"id": f"{arm_id}/frontendIPConfigurations/f"}],
        "backendAddressPool": {"id": f"{arm_id}/backendAddressPools/n"},
    }
    return {"name": "out", "properties": rule_fields}


def machine(arm_id: str, subnet: str, *, ip: dict[str, Any] | None = None, **properties: Any) -> Change:
    """A virtual machine's interface; `ip` goes into its address configuration."""

    def change(azure: FakeAzure) -> None:
        configuration = ip_configuration("10.0.9.4", subnet, **(ip or {}))
        interface_fields = {
            "virtualMachine": {"id": f"{GROUP}/providers/Microsoft.Compute/virtualMachines/vm"},
            **properties,
        }
        azure.put(
            arm_id,
            {"ipConfigurations": [configuration], "defaultOutboundConnectivityEnabled": False, **interface_fields},
        )

    return change


def model_with_a_public_address(azure: FakeAzure) -> None:
    nics = model_nics(NODES, publicIPAddressConfiguration={"name": "pip"})
    azure.change(SCALE_SET, virtualMachineProfile={"networkProfile": nics})


def instance_address(azure: FakeAzure) -> None:
    azure.put(f"{NIC}/ipConfigurations/ipconfig1/publicIPAddresses/p", {"ipAddress": "20.0.0.1"})


def node_in_pool(pool: str) -> Change:
    reference = {"loadBalancerBackendAddressPools": [{"id": pool}]}
    return lambda azure: azure.change(NIC, ipConfigurations=[ip_configuration("10.0.1.4", NODES, **reference)])


def together(*changes: Change) -> Change:
    def change(azure: FakeAzure) -> None:
        for change in changes:
            change(azure)

    return change


def set_to(arm_id: str, **properties: Any) -> Change:
    return lambda azure: azure.change(arm_id, **properties)


def put(arm_id: str, properties: dict[str, Any] | None = None, **fields: Any) -> Change:
    return lambda azure: azure.put(arm_id, properties, **fields)


def pool_with(**properties: Any) -> Change:
    return lambda azure: azure.properties(CLUSTER)["agentPoolProfiles"][0].update(properties)


PUBLIC = {"publicIPAddress": {"id": f"{NETWORK}/publicIPAddresses/p"}}
OPEN_BALANCER = balancer(BALANCER, public=True, rules=[balancing(BALANCER)])
BASTION = f"{NETWORK}/bastionHosts/b"
IN_VNET = {"ipConfigurations": [{"name": "i", "properties": {"subnet": {"id": f"{VNET}/subnets/AzureBastionSubnet"}}}]}
BY_ADDRESS = {"loadBalancerBackendAddresses": [{"name": "n", "properties": {"ipAddress": "10.0.1.4"}}]}
