"""Table A: each outbound method both ways, what masks it, what is not seen, and whose finding it is."""

from __future__ import annotations

import pytest

from hermetic.audit.checks import outbound
from hermetic.audit.model.findings import Verdict
from tests.audit_estates import (
    API_SERVER,
    CLUSTER,
    NETWORK,
    NIC,
    NODE_NETWORK,
    NODES,
    ROUTES,
    RULES,
    SCALE_SET,
    SENTINEL,
    VNET,
    ip_configuration,
    small_cluster,
)
from tests.outbound_methods import (
    BALANCER,
    BASTION,
    BY_ADDRESS,
    ELSEWHERE,
    FAR_BALANCER,
    FIREWALL,
    IN_VNET,
    NAT,
    OPEN_BALANCER,
    POOL,
    PUBLIC,
    SERVICE_GATEWAY,
    Change,
    balancer,
    balancing,
    instance_address,
    machine,
    model_with_a_public_address,
    outbound_rule,
    pool_with,
    put,
    set_to,
    the,
    together,
)

FAILS: list[tuple[str, str, str, Change, str]] = [
    # check, what is told, severity, change, resource
    ("subnet-default-outbound", "true", "critical", set_to(NODES, defaultOutboundAccess=True), NODES),
    ("subnet-default-outbound", "null", "critical", set_to(NODES, defaultOutboundAccess=None), NODES),
    ("subnet-default-outbound", "absent", "critical", lambda w: w.drop(NODES, "defaultOutboundAccess"), NODES),
    ("nic-default-outbound", "stale", "critical", set_to(NIC, defaultOutboundConnectivityEnabled=True), NIC),
    (
        "nic-default-outbound",
        "stale machine",
        "critical",
        machine(SENTINEL, NODES, defaultOutboundConnectivityEnabled=True),
        SENTINEL,
    ),
    ("subnet-nat-gateway", "attached", "critical", set_to(NODES, natGateway={"id": NAT}), NODES),
    ("subnet-nat-gateway", "API server's", "critical", set_to(API_SERVER, natGateway={"id": NAT}), API_SERVER),
    ("vnet-nat-gateway", "default", "critical", set_to(VNET, defaultPublicNatGateway={"id": NAT}), VNET),
    ("vnet-nat-gateway", "by source", "critical", put(NAT, {"sourceVirtualNetwork": {"id": VNET.upper()}}), VNET),
    ("natgw-inventory", "serves", "critical", put(NAT, {"subnets": [{"id": NODES.lower()}]}), NAT),
    ("natgw-inventory", "serves the network", "critical", put(NAT, {"sourceVirtualNetwork": {"id": VNET}}), NAT),
    ("natgw-inventory", "idle", "info", put(NAT, {}), NAT),
    ("subnet-service-gateway", "attached", "critical", set_to(NODES, serviceGateway={"id": SERVICE_GATEWAY}), NODES),
    (
        "subnet-service-gateway",
        "of the network",
        "critical",
        put(SERVICE_GATEWAY, {"virtualNetwork": {"id": VNET}}),
        SERVICE_GATEWAY,
    ),
    ("nodepool-node-public-ip", "enabled", "critical", pool_with(enableNodePublicIP=True), POOL),
    ("nodepool-node-public-ip", "prefix", "critical", pool_with(nodePublicIPPrefixID="/subscriptions/x"), POOL),
    ("vmss-public-ip-config", "model", "critical", model_with_a_public_address, SCALE_SET),
    ("vmss-instance-pip", "instance", "critical", instance_address, SCALE_SET),
    (
        "nic-public-ip",
        "node",
        "critical",
        set_to(NIC, ipConfigurations=[ip_configuration("10.0.1.4", NODES, **PUBLIC)]),
        NIC,
    ),
    ("nic-public-ip", "beside", "critical", machine(SENTINEL, NODES, ip=PUBLIC), SENTINEL),
    ("nic-public-ip", "elsewhere", "high", machine(SENTINEL, f"{VNET}/subnets/jump", ip=PUBLIC), SENTINEL),
    (
        "pip-and-prefix-inventory",
        "node group",
        "medium",
        put(f"{NODE_NETWORK}/publicIPAddresses/p", {"ipConfiguration": {"id": "/subscriptions/x"}}),
        f"{NODE_NETWORK}/publicIPAddresses/p",
    ),
    (
        "pip-and-prefix-inventory",
        "idle",
        "medium",
        put(f"{NETWORK}/publicIPAddresses/p", {}),
        f"{NETWORK}/publicIPAddresses/p",
    ),
    (
        "pip-and-prefix-inventory",
        "prefix in use",
        "medium",
        put(f"{NETWORK}/publicIPPrefixes/p", {"natGateway": {"id": NAT}}),
        f"{NETWORK}/publicIPPrefixes/p",
    ),
    (
        "lb-outbound-rule",
        "node group",
        "critical",
        balancer(BALANCER, public=True, outbound_rules=[outbound_rule(BALANCER)]),
        BALANCER,
    ),
    (
        "lb-outbound-rule",
        "another group",
        "critical",
        balancer(FAR_BALANCER, public=True, outbound_rules=[outbound_rule(FAR_BALANCER)]),
        FAR_BALANCER,
    ),
    ("lb-rule-snat", "absent", "critical", OPEN_BALANCER, BALANCER),
    (
        "lb-rule-snat",
        "false",
        "critical",
        balancer(BALANCER, public=True, rules=[balancing(BALANCER, disableOutboundSnat=False)]),
        BALANCER,
    ),
    (
        "lb-rule-snat",
        "plural pools",
        "critical",
        balancer(
            BALANCER,
            public=True,
            rules=[
                balancing(
                    BALANCER,
                    backendAddressPool=None,
                    backendAddressPools=[{"id": f"{BALANCER}/backendAddressPools/N"}],
                )
            ],
        ),
        BALANCER,
    ),
    ("lb-public-frontend", "public", "high", balancer(BALANCER, public=True), BALANCER),
    (
        "lb-basic-sku",
        "basic",
        "high",
        together(balancer(BALANCER, public=False), lambda w: w.bodies[BALANCER.lower()]["sku"].update(name="Basic")),
        BALANCER,
    ),
    (
        "lb-gateway-chain",
        "frontend",
        "high",
        together(
            balancer(BALANCER, public=False),
            lambda w: w.properties(BALANCER)["frontendIPConfigurations"][0]["properties"].update(
                gatewayLoadBalancer={"id": FAR_BALANCER}
            ),
        ),
        BALANCER,
    ),
    (
        "lb-gateway-chain",
        "interface",
        "high",
        set_to(NIC, ipConfigurations=[ip_configuration("10.0.1.4", NODES, gatewayLoadBalancer={"id": FAR_BALANCER})]),
        NIC,
    ),
    (
        "lb-ip-based-pool",
        "cluster",
        "high",
        together(
            set_to(NODES, defaultOutboundAccess=None),
            lambda w: w.properties(CLUSTER)["networkProfile"].update(loadBalancerProfile={"backendPoolType": "nodeIP"}),
        ),
        CLUSTER,
    ),
    (
        "lb-ip-based-pool",
        "balancer",
        "high",
        together(
            set_to(NODES, defaultOutboundAccess=None),
            put(
                FAR_BALANCER,
                {"backendAddressPools": [{"name": "n", "properties": BY_ADDRESS}]},
                sku={"name": "Standard"},
            ),
        ),
        FAR_BALANCER,
    ),
    ("nic-ip-forwarding", "router", "medium", machine(SENTINEL, NODES, enableIPForwarding=True), SENTINEL),
    (
        "appgw-bastion-other-pip",
        "application gateway",
        "medium",
        put(
            f"{NETWORK}/applicationGateways/g",
            {
                "gatewayIPConfigurations": [{"name": "g", "properties": {"subnet": {"id": f"{VNET}/subnets/agw"}}}],
                "frontendIPConfigurations": [{"name": "f", "properties": PUBLIC}],
            },
        ),
        f"{NETWORK}/applicationGateways/g",
    ),
    (
        "appgw-bastion-other-pip",
        "bastion of the developer kind",
        "medium",
        put(BASTION, {"virtualNetwork": {"id": VNET}}, sku={"name": "Developer"}),
        BASTION,
    ),
    (
        "appgw-bastion-other-pip",
        "firewall",
        "medium",
        put(
            FIREWALL,
            {"ipConfigurations": [{"name": "i", "properties": {"subnet": {"id": f"{VNET}/subnets/fw"}, **PUBLIC}}]},
        ),
        FIREWALL,
    ),
    ("bastion-copy-out", "by default", "medium", put(BASTION, {**IN_VNET, "enablePrivateOnlyBastion": True}), BASTION),
    (
        "bastion-copy-out",
        "files",
        "medium",
        put(BASTION, {**IN_VNET, "disableCopyPaste": True, "enableFileCopy": True}),
        BASTION,
    ),
]


@pytest.mark.parametrize(
    ("check", "severity", "change", "resource"),
    [
        pytest.param(check, severity, change, resource, id=f"{check}: {title}")
        for check, title, severity, change, resource in FAILS
    ],
)
def test_a_method_is_found_on_the_resource_that_mends_it(
    check: str, severity: str, change: Change, resource: str
) -> None:
    azure = small_cluster()
    change(azure)
    finding = the(azure.findings(check), resource)
    assert (finding.verdict, finding.severity.value) == (Verdict.FAIL, severity)
    assert finding.message
    assert finding.remedy
    assert finding.evidence


@pytest.mark.parametrize("check", [check.page.id for check in outbound.CHECKS])
def test_a_sealed_cluster_has_no_method(check: str) -> None:
    findings = small_cluster().findings(check)
    assert findings
    assert {finding.verdict for finding in findings.values()} <= {Verdict.PASS, Verdict.NOT_APPLICABLE}
    assert all(finding.evidence for finding in findings.values())


@pytest.mark.parametrize(
    ("check", "change", "resource"),
    [
        ("subnet-default-outbound", set_to(NODES, defaultOutboundAccess=True), NODES),
        ("subnet-nat-gateway", set_to(NODES, natGateway={"id": NAT}), NODES),
        ("subnet-service-gateway", set_to(NODES, serviceGateway={"id": SERVICE_GATEWAY}), NODES),
        ("nic-default-outbound", set_to(NIC, defaultOutboundConnectivityEnabled=True), NIC),
    ],
)
def test_a_method_says_in_a_field_whether_something_masks_it(check: str, change: Change, resource: str) -> None:
    masked, bare = small_cluster(), small_cluster().change(ROUTES, routes=[]).change(RULES, securityRules=[])
    for azure in (masked, bare):
        change(azure)
    for azure, expected in ((masked, True), (bare, False)):
        finding = the(azure.findings(check), resource)
        assert (finding.verdict, finding.masked) == (Verdict.FAIL, expected)
        assert ("masked today" in finding.message) == expected


# a public address of another machine, an inbound listener, a relay: no route or rule of the nodes stops these
BEYOND_MASKS = frozenset(
    {
        "pip-and-prefix-inventory",
        "lb-public-frontend",
        "lb-gateway-chain",
        "nic-ip-forwarding",
        "appgw-bastion-other-pip",
        "bastion-copy-out",
    }
)
METHODS = [failure for failure in FAILS if failure[0] not in BEYOND_MASKS and failure[1] not in {"idle", "elsewhere"}]


@pytest.mark.parametrize(
    ("check", "change", "resource"),
    [pytest.param(check, change, at, id=f"{check}: {title}") for check, title, _, change, at in METHODS],
)
def test_every_method_of_nodes_is_masked_where_something_stops_all_of_them(
    check: str, change: Change, resource: str
) -> None:
    for spoil, expected in (
        (lambda _: None, True),
        (lambda azure: azure.change(ROUTES, routes=[]).change(RULES, securityRules=[]), False),
    ):
        azure = small_cluster()
        spoil(azure)
        change(azure)
        finding = the(azure.findings(check), resource)
        assert (finding.verdict, finding.masked) == (Verdict.FAIL, expected)
        assert ("masked today by the route 0.0.0.0/0 -> None" in finding.message) == expected


@pytest.mark.parametrize(
    ("check", "field"),
    [
        ("lb-outbound-rule", "outboundRules"),
        ("lb-rule-snat", "loadBalancingRules"),
        ("lb-public-frontend", "frontendIPConfigurations"),
        ("lb-gateway-chain", "frontendIPConfigurations"),
        *((name, "backendAddressPools") for name in ("lb-outbound-rule", "lb-rule-snat", "lb-public-frontend")),
    ],
)
def test_balancer_whose_answer_has_no_list_is_unknown(check: str, field: str) -> None:
    azure = small_cluster()
    balancer(BALANCER, public=False)(azure)
    assert the(azure.findings(check), BALANCER).verdict is Verdict.PASS
    del azure.properties(BALANCER)[field]
    finding = the(azure.findings(check), BALANCER)
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "Unreadable")


def test_a_subnet_that_was_not_seen_is_taken_for_open() -> None:
    azure = small_cluster()
    pool_with(enableNodePublicIP=True)(azure)
    assert the(azure.findings("nodepool-node-public-ip"), POOL).masked
    azure.refuse(NODES)
    assert not the(azure.findings("nodepool-node-public-ip"), POOL).masked


@pytest.mark.parametrize("check", [check.page.id for check in outbound.CHECKS])
def test_a_cluster_that_cannot_be_read_passes_nothing(check: str) -> None:
    findings = small_cluster().refuse(CLUSTER).findings(check)
    assert {finding.verdict for finding in findings.values()} == {Verdict.UNKNOWN}


PASSES: list[tuple[str, str, Change, str]] = [
    (
        "natgw-inventory",
        "serves another network",
        put(f"{ELSEWHERE}/natGateways/n", {"subnets": [{"id": f"{ELSEWHERE}/virtualNetworks/v/subnets/s"}]}),
        f"{ELSEWHERE}/natGateways/n",
    ),
    (
        "lb-rule-snat",
        "switched off",
        balancer(BALANCER, public=True, rules=[balancing(BALANCER, disableOutboundSnat=True)]),
        BALANCER,
    ),
    ("lb-rule-snat", "private", balancer(BALANCER, public=False, rules=[balancing(BALANCER)]), BALANCER),
    ("lb-public-frontend", "private", balancer(BALANCER, public=False), BALANCER),
    ("lb-basic-sku", "standard", balancer(BALANCER, public=False), BALANCER),
    (
        "lb-ip-based-pool",
        "private subnets",
        lambda w: w.properties(CLUSTER)["networkProfile"].update(loadBalancerProfile={"backendPoolType": "nodeIP"}),
        CLUSTER,
    ),
    (
        "lb-ip-based-pool",
        "addresses in private subnets",
        put(FAR_BALANCER, {"backendAddressPools": [{"name": "n", "properties": BY_ADDRESS}]}),
        FAR_BALANCER,
    ),
    (
        "pip-and-prefix-inventory",
        "of a gateway",
        put(f"{NETWORK}/publicIPAddresses/p", {"ipConfiguration": {"id": "/subscriptions/x"}}),
        f"{NETWORK}/publicIPAddresses/p",
    ),
    ("nic-ip-forwarding", "nodes may", set_to(NIC, enableIPForwarding=True), CLUSTER),
    (
        "appgw-bastion-other-pip",
        "private bastion",
        put(BASTION, {**IN_VNET, "enablePrivateOnlyBastion": True}),
        BASTION,
    ),
    ("bastion-copy-out", "closed", put(BASTION, {**IN_VNET, "disableCopyPaste": True}), BASTION),
]


@pytest.mark.parametrize(
    ("check", "change", "resource"),
    [pytest.param(check, change, resource, id=f"{check}: {title}") for check, title, change, resource in PASSES],
)
def test_what_looks_like_a_method_and_is_none_passes(check: str, change: Change, resource: str) -> None:
    azure = small_cluster()
    change(azure)
    assert the(azure.findings(check), resource).verdict is Verdict.PASS
