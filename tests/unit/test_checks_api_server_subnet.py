"""The subnet delegated to the API server: no node and no pod sends from it; where one may, it is judged."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.model.findings import Verdict
from tests.audit_estates import (
    API_SERVER,
    CLUSTER,
    DELEGATED_TO_AKS,
    NIC,
    NODE_GROUP,
    PODS,
    SCALE_SET,
    FakeAzure,
    ip_configuration,
    model_nics,
    small_cluster,
)

GUARDED = ("subnet-default-outbound", "nsg-missing", "nsg-internet-deny", "nsg-platform-dns", "nsg-platform-imds")
LISTS = ("Microsoft.Compute/virtualMachineScaleSets", "Microsoft.Network/networkInterfaces")
OPEN = ("subnet-default-outbound", "nsg-missing", "nsg-internet-deny")
BARE = {"defaultOutboundAccess": None, "networkSecurityGroup": None}


def _bare() -> FakeAzure:
    """As api-server-vnet-integration.md of azure-aks-docs makes it: no security group, nothing said of outbound."""
    return small_cluster().change(API_SERVER, **BARE)


def _verdict(azure: FakeAzure, check: str, subnet: str = API_SERVER) -> Verdict:
    return azure.findings(check)[subnet.lower()].verdict


@pytest.mark.parametrize("check", GUARDED)
def test_outbound_and_rules_do_not_apply(check: str) -> None:
    finding = _bare().findings(check)[API_SERVER.lower()]
    assert (finding.verdict, finding.reason) == (Verdict.NOT_APPLICABLE, "ApiServerSubnet")
    assert any("virtualMachineScaleSets" in evidence.request for evidence in finding.evidence)


def test_its_own_group_is_not_judged_as_the_nodes() -> None:
    azure = _bare()
    group = f"{NODE_GROUP}/providers/Microsoft.Network/networkSecurityGroups/api"
    azure.put(group, {"securityRules": [], "defaultSecurityRules": []}).change(
        API_SERVER, networkSecurityGroup={"id": group}
    )
    assert group.lower() not in azure.findings("nsg-broad-allow")


@pytest.mark.parametrize("check", OPEN)
@pytest.mark.parametrize(
    "refused", ["Microsoft.Compute/virtualMachineScaleSets", "Microsoft.Network/networkInterfaces"]
)
def test_where_a_node_may_be_hidden_it_is_unknown(check: str, refused: str) -> None:
    assert _verdict(_bare().refuse(NODE_GROUP, kind=refused), check) is Verdict.UNKNOWN


def _node_in_it(azure: FakeAzure) -> FakeAzure:
    configurations = [ip_configuration("10.0.1.4", API_SERVER)]
    return azure.change(NIC, ipConfigurations=configurations)


def _model_in_it(azure: FakeAzure) -> FakeAzure:
    return azure.change(SCALE_SET, virtualMachineProfile={"networkProfile": model_nics(API_SERVER)})


def _machine_in_it(azure: FakeAzure) -> FakeAzure:
    nic = f"{NODE_GROUP}/providers/Microsoft.Network/networkInterfaces/alone"
    machine = {"id": f"{NODE_GROUP}/providers/Microsoft.Compute/virtualMachines/alone"}
    return azure.put(nic, {"ipConfigurations": [ip_configuration("10.0.2.9", API_SERVER)], "virtualMachine": machine})


def _pods_in_it(azure: FakeAzure) -> FakeAzure:
    azure.properties(CLUSTER)["agentPoolProfiles"][0]["podSubnetID"] = API_SERVER
    return azure


def _pool_in_it(azure: FakeAzure) -> FakeAzure:
    azure.properties(CLUSTER)["agentPoolProfiles"].append({"name": "b", "count": 0, "vnetSubnetID": API_SERVER.upper()})
    return azure


@pytest.mark.parametrize("check", OPEN)
@pytest.mark.parametrize("put", [_node_in_it, _model_in_it, _machine_in_it, _pods_in_it, _pool_in_it])
def test_with_a_node_or_a_pod_in_it_it_is_judged(check: str, put: Any) -> None:
    assert _verdict(put(_bare()), check) is Verdict.FAIL


@pytest.mark.parametrize("check", OPEN)
@pytest.mark.parametrize(
    "delegations",
    [
        [],
        None,
        [{"name": "other", "properties": {"serviceName": "Microsoft.Web/serverFarms"}}],
        [{"name": "none", "properties": {}}],
    ],
)
def test_without_the_delegation_it_is_judged(check: str, delegations: Any) -> None:
    azure = small_cluster().change(API_SERVER, **BARE, delegations=delegations)
    assert _verdict(azure, check) in {Verdict.FAIL, Verdict.UNKNOWN}


@pytest.mark.parametrize("check", OPEN)
def test_a_subnet_of_pods_with_the_same_delegation_is_judged(check: str) -> None:
    azure = _bare().put(PODS, {"addressPrefix": "10.0.3.0/24", "delegations": DELEGATED_TO_AKS})
    azure.properties(CLUSTER)["agentPoolProfiles"][0]["podSubnetID"] = PODS
    assert _verdict(azure, check, PODS) is Verdict.FAIL


def test_its_routes_are_judged_as_any_subnets() -> None:
    azure = _bare().drop(API_SERVER, "routeTable")
    assert _verdict(azure, "route-table-missing") is Verdict.FAIL


def test_a_nat_gateway_on_it_is_an_egress_path() -> None:
    azure = _bare().change(API_SERVER, natGateway={"id": f"{NODE_GROUP}/providers/Microsoft.Network/natGateways/out"})
    assert _verdict(azure, "subnet-nat-gateway") is Verdict.FAIL
