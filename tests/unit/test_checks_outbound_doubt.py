"""Table A where it is not plain: masks, scope, interfaces that do not tell, answers that never came, damage."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import (
    API_SERVER,
    CLUSTER,
    GROUP,
    NIC,
    NODE_GROUP,
    NODES,
    PODS,
    ROUTES,
    RULES,
    SCALE_SET,
    SENTINEL,
    SUBSCRIPTION,
    VNET,
    FakeAzure,
    ip_configuration,
    model_nics,
    route,
    rule,
    small_cluster,
)
from tests.outbound_methods import (
    BALANCER,
    FAR_BALANCER,
    FIREWALL,
    NAT,
    PUBLIC,
    Change,
    balancer,
    machine,
    node_in_pool,
    pool_with,
    set_to,
    the,
    together,
)

# ---------------------------------------------------------------- masks


def test_a_mask_is_told_and_changes_nothing() -> None:
    azure = small_cluster().change(NODES, natGateway={"id": NAT})
    finding = the(azure.findings("subnet-nat-gateway"), NODES)
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.CRITICAL)
    assert "0.0.0.0/0 -> None in sealed" in finding.message
    assert "the outbound rules of sealed" in finding.message


def test_without_a_mask_the_message_says_so() -> None:
    azure = small_cluster().change(NODES, natGateway={"id": NAT}).drop(NODES, "routeTable", "networkSecurityGroup")
    assert "nothing masks it" in the(azure.findings("subnet-nat-gateway"), NODES).message


def test_an_internal_balancer_masks_a_stale_address_and_is_not_credited() -> None:
    azure = small_cluster().drop(NODES, "routeTable", "networkSecurityGroup")
    balancer(BALANCER, public=False)(azure)
    node_in_pool(f"{BALANCER}/backendAddressPools/n")(azure)
    azure.change(NIC, defaultOutboundConnectivityEnabled=True)
    finding = the(azure.findings("nic-default-outbound"), NIC)
    assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.CRITICAL)
    assert "internal load balancer" in finding.message


def test_a_path_is_drawn_hop_by_hop() -> None:
    azure = small_cluster().change(NODES, natGateway={"id": NAT})
    assert the(azure.findings("subnet-nat-gateway"), NODES).path_texts == (
        "subnet nodes -> nat gateway out -> internet",
    )


# ---------------------------------------------------------------- scope


def test_a_delegated_pod_subnet_is_judged_and_the_api_servers_own_is_not() -> None:
    delegated = [{"properties": {"serviceName": "Microsoft.ContainerService/managedClusters"}}]
    azure = small_cluster().put(PODS, {"addressPrefix": "10.0.3.0/24", "delegations": delegated})
    azure.change(API_SERVER, defaultOutboundAccess=None, delegations=delegated)
    pool_with(podSubnetID=PODS)(azure)
    findings = azure.findings("subnet-default-outbound")
    assert the(findings, PODS).verdict is Verdict.FAIL
    assert the(findings, API_SERVER).verdict is Verdict.NOT_APPLICABLE


def test_a_second_interface_on_a_subnet_that_no_pool_names_counts() -> None:
    side = f"{VNET}/subnets/side"
    azure = small_cluster().put(side, {"addressPrefix": "10.0.7.0/24"})
    azure.properties(SCALE_SET)["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"] += (
        model_nics(side)["networkInterfaceConfigurations"]
    )
    assert the(azure.findings("subnet-default-outbound"), side).verdict is Verdict.FAIL


def test_the_declared_firewall_is_judged_elsewhere() -> None:
    azure = small_cluster()
    frontend = {"subnet": {"id": f"{VNET}/subnets/fw"}, "privateIPAddress": "10.0.5.4", **PUBLIC}
    azure.put(FIREWALL, {"ipConfigurations": [{"name": "i", "properties": frontend}]})
    policy = Policy(profile="filtered", firewall=FIREWALL)
    assert the(azure.findings("appgw-bastion-other-pip", policy), FIREWALL).verdict is Verdict.NOT_APPLICABLE


# ---------------------------------------------------------------- the interface that does not tell


GRAPH = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"


def without_the_field() -> FakeAzure:
    return small_cluster().drop(NIC, "defaultOutboundConnectivityEnabled")


def in_graph(azure: FakeAzure, is_reported: bool) -> FakeAzure:
    """Resource Graph has the row with the field, ARM's list has it not."""
    inner = azure.answer

    def answer(question: Any) -> Any:
        answer = inner(question)
        if question.kind == GRAPH:
            for body in answer.bodies:
                body.value["properties"]["defaultOutboundConnectivityEnabled"] = is_reported
        return answer

    azure.answer = answer  # type: ignore[method-assign]
    return azure


@pytest.mark.parametrize(("is_reported", "verdict"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_resource_graph_tells_what_arm_does_not(is_reported: bool, verdict: Verdict) -> None:
    assert the(in_graph(without_the_field(), is_reported).findings("nic-default-outbound"), NIC).verdict is verdict


def test_an_interface_without_a_reported_value_is_unknown_at_high() -> None:
    finding = the(without_the_field().findings("nic-default-outbound"), NIC)
    assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, Severity.HIGH)
    assert "0.0.0.0/0 -> None" in finding.message
    assert "0.0.0.0/0 -> None" not in finding.remedy
    finding = the(without_the_field().change(ROUTES, routes=[]).findings("nic-default-outbound"), NIC)
    assert "0.0.0.0/0 -> None" not in finding.message
    assert "0.0.0.0/0 -> None" in finding.remedy


def test_without_resource_graph_it_stays_unknown() -> None:
    azure = without_the_field().refuse(SCALE_SET, UnreadReason.NOT_ASKED, kind=GRAPH)
    assert the(azure.findings("nic-default-outbound"), NIC).verdict is Verdict.UNKNOWN


def test_arm_is_believed_before_resource_graph() -> None:
    azure = in_graph(small_cluster().change(NIC, defaultOutboundConnectivityEnabled=True), is_reported=False)
    assert the(azure.findings("nic-default-outbound"), NIC).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("is_reported", "machine_id", "verdict"),
    [
        (True, "", Verdict.FAIL),
        (True, "vm", Verdict.FAIL),
        (False, "vm", Verdict.PASS),
        (None, "vm", Verdict.UNKNOWN),
        (None, "", Verdict.NOT_APPLICABLE),
    ],
)
def test_an_interface_that_stands_alone_is_judged_by_what_it_tells(
    is_reported: bool | None, machine_id: str, verdict: Verdict
) -> None:
    azure = small_cluster().put(SENTINEL, {"ipConfigurations": [ip_configuration("10.0.1.9", NODES)]})
    azure.change(SENTINEL, defaultOutboundConnectivityEnabled=is_reported)
    if machine_id:
        azure.change(SENTINEL, virtualMachine={"id": machine_id})
    assert the(azure.findings("nic-default-outbound"), SENTINEL).verdict is verdict


# ---------------------------------------------------------------- what was not seen


INTERFACES = "Microsoft.Network/networkInterfaces"
ADDRESSES = "Microsoft.Compute/virtualMachineScaleSets/publicipaddresses"

UNSEEN: list[tuple[str, str, Change]] = [
    ("vmss-instance-pip", "addresses", lambda w: w.refuse(SCALE_SET, kind=ADDRESSES)),
    ("subnet-default-outbound", "subnet", lambda w: w.refuse(NODES)),
    ("natgw-inventory", "list", lambda w: w.refuse(SUBSCRIPTION, kind="Microsoft.Network/natGateways")),
    ("vnet-nat-gateway", "list", lambda w: w.refuse(GROUP, kind="Microsoft.Network/natGateways")),
    ("vnet-nat-gateway", "network", lambda w: w.refuse(VNET)),
    ("subnet-service-gateway", "list", lambda w: w.refuse(SUBSCRIPTION, kind="Microsoft.Network/serviceGateways")),
    ("lb-rule-snat", "list", lambda w: w.refuse(NODE_GROUP, kind="Microsoft.Network/loadBalancers")),
    ("nic-public-ip", "truncated", lambda w: w.refuse(SUBSCRIPTION, UnreadReason.TRUNCATED, kind=INTERFACES)),
    ("pip-and-prefix-inventory", "prefixes", lambda w: w.refuse(NODE_GROUP, kind="Microsoft.Network/publicIPPrefixes")),
    ("bastion-copy-out", "list", lambda w: w.refuse(SUBSCRIPTION, kind="Microsoft.Network/bastionHosts")),
    ("nodepool-node-public-ip", "no pools", set_to(CLUSTER, agentPoolProfiles=[])),
    ("vmss-public-ip-config", "no scale sets", lambda w: w.drop(SCALE_SET)),
    ("vmss-public-ip-config", "no interfaces in the model", set_to(SCALE_SET, virtualMachineProfile={})),
    ("nic-default-outbound", "no interfaces", lambda w: w.drop(NIC)),
    ("subnet-default-outbound", "no interfaces", lambda w: w.drop(NIC)),
    (
        "lb-outbound-rule",
        "a balancer that only the node names",
        together(node_in_pool(f"{FAR_BALANCER}/backendAddressPools/n"), lambda w: w.refuse(FAR_BALANCER)),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "change"), [pytest.param(check, change, id=f"{check}: {title}") for check, title, change in UNSEEN]
)
def test_what_was_not_seen_is_unknown(check: str, change: Change) -> None:
    azure = small_cluster()
    change(azure)
    assert Verdict.UNKNOWN in {finding.verdict for finding in azure.findings(check).values()}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda w: w.bodies[BALANCER.lower()]["sku"].update(name="Premium"), Verdict.UNKNOWN),
        (lambda w: w.bodies[BALANCER.lower()].pop("sku"), Verdict.UNKNOWN),
    ],
)
def test_an_unknown_sku_never_passes(change: Change, verdict: Verdict) -> None:
    azure = small_cluster()
    balancer(BALANCER, public=False)(azure)
    change(azure)
    assert the(azure.findings("lb-basic-sku"), BALANCER).verdict is verdict


def test_an_unknown_pool_type_never_passes() -> None:
    azure = small_cluster()
    azure.properties(CLUSTER)["networkProfile"]["loadBalancerProfile"] = {"backendPoolType": "nodeName"}
    assert the(azure.findings("lb-ip-based-pool"), CLUSTER).verdict is Verdict.UNKNOWN


def test_a_frontend_that_shows_no_address_counts_as_public() -> None:
    azure = small_cluster()
    balancer(BALANCER, public=False)(azure)
    azure.properties(BALANCER)["frontendIPConfigurations"][0]["properties"] = {}
    assert the(azure.findings("lb-public-frontend"), BALANCER).verdict is Verdict.FAIL


# ---------------------------------------------------------------- damage


def test_damage_in_one_subnet_hides_no_method_of_another() -> None:
    azure = small_cluster().change(API_SERVER, natGateway="yes").change(NODES, natGateway={"id": NAT})
    findings = azure.findings("subnet-nat-gateway")
    assert the(findings, API_SERVER).verdict is Verdict.UNKNOWN
    assert the(findings, NODES).verdict is Verdict.FAIL


def test_damage_in_one_interface_hides_no_address_of_another() -> None:
    azure = small_cluster()
    machine(SENTINEL, NODES, ip=PUBLIC)(azure)
    azure.change(NIC, ipConfigurations="many")
    assert the(azure.findings("nic-public-ip"), SENTINEL).verdict is Verdict.FAIL


def test_routes_and_rules_that_are_damaged_leave_the_method_found() -> None:
    azure = small_cluster().change(NODES, natGateway={"id": NAT})
    azure.change(ROUTES, routes=[route("v4", "0.0.0.0/0", "None"), 7]).change(RULES, securityRules=rule("x", 1, "Deny"))
    finding = the(azure.findings("subnet-nat-gateway"), NODES)
    assert finding.verdict is Verdict.FAIL
    assert "could not read" in finding.message


@pytest.mark.parametrize("check", ["nic-public-ip", "subnet-default-outbound"])
def test_an_interface_answered_without_its_addresses_is_unknown(check: str) -> None:
    findings = small_cluster().drop(NIC, "ipConfigurations").findings(check)
    assert Verdict.UNKNOWN in {finding.verdict for finding in findings.values()}
    findings = small_cluster().change(NIC, ipConfigurations=[]).findings(check)
    assert {finding.verdict for finding in findings.values()} <= {Verdict.PASS, Verdict.NOT_APPLICABLE}


@pytest.mark.parametrize(
    ("held", "is_scoped"),
    [
        ({"privateLinkService": {"id": f"{NODE_GROUP}/providers/Microsoft.Network/privateLinkServices/s"}}, False),
        ({"privateEndpoint": {"id": f"{NODE_GROUP}/providers/Microsoft.Network/privateEndpoints/e"}}, False),
        ({"privateLinkService": "odd"}, True),
        ({"privateLinkService": {"id": "/s"}, "virtualMachine": {"id": "/vm"}}, True),
        ({}, True),
    ],
)
def test_only_interfaces_that_may_be_of_a_machine_make_a_subnet_one_of_the_cluster(
    held: dict[str, Any], is_scoped: bool
) -> None:
    services = f"{VNET}/subnets/services"
    azure = small_cluster().put(services, {"addressPrefix": "10.0.9.0/24"})
    nic = f"{NODE_GROUP}/providers/Microsoft.Network/networkInterfaces/service"
    azure.put(nic, {"ipConfigurations": [ip_configuration("10.0.9.4", services)], **held})
    assert (services.lower() in azure.findings("subnet-default-outbound")) is is_scoped
