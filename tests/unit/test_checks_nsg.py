"""Table E: security groups by combination, holes by group, and the declared firewall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermetic.audit.checks import nsg
from hermetic.audit.model.findings import Verdict
from tests.audit_estates import (
    CLUSTER,
    DELEGATED_TO_AKS,
    NETWORK,
    NIC,
    NODES,
    PODS,
    ROUTES,
    RULES,
    SCALE_SET,
    SENTINEL,
    SUBSCRIPTION,
    VNET,
    FakeAzure,
    deny_internet,
    ip_configuration,
    model_nics,
    route,
    rule,
    small_cluster,
)
from tests.nsg_estates import (
    NODE_RULES,
    WITHOUT_A_LIST,
    blocked_by_default,
    group,
    with_node_rules,
    with_rules,
)
from tests.outbound_methods import the
from tests.routes_and_sentinels import (
    FILTERED,
    FIREWALL_ADDRESS,
    sentinel,
    verdict_and_severity,
    with_a_firewall,
    with_routes,
)

Change = Callable[[FakeAzure], object]


def without_subnet_rules(azure: FakeAzure) -> FakeAzure:
    """The node subnet has no group; the model's interface gets the node's own, where there is one."""
    azure.drop(NODES, "networkSecurityGroup")
    own = azure.properties(NIC).get("networkSecurityGroup")
    model = model_nics(NODES)
    if own:
        model["networkInterfaceConfigurations"][0]["properties"]["networkSecurityGroup"] = own
    return azure.change(SCALE_SET, virtualMachineProfile={"networkProfile": model})


def test_a_sealed_cluster_passes() -> None:
    for check in nsg.CHECKS:
        findings = blocked_by_default(small_cluster()).findings(check.page.id)
        assert {finding.verdict for finding in findings.values()} <= {Verdict.PASS, Verdict.NOT_APPLICABLE}, (
            check.page.id
        )


# ---------------------------------------------------------------- nsg-missing


def test_no_group_at_either_layer_is_missing() -> None:
    azure = without_subnet_rules(small_cluster())
    assert verdict_and_severity(azure.findings("nsg-missing"), NODES) == ("Fail", "high")
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES) == ("Fail", "high")


def test_one_group_at_either_layer_is_enough() -> None:
    azure = without_subnet_rules(with_node_rules(small_cluster(), deny_internet(100)))
    assert verdict_and_severity(azure.findings("nsg-missing"), NODES)[0] == "Pass"
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Pass"


def test_one_interface_without_a_group_decides() -> None:
    azure = without_subnet_rules(with_node_rules(small_cluster(), deny_internet(100)))
    bare = {"ipConfigurations": [ip_configuration("10.0.1.5", NODES)], "virtualMachine": {"id": "/subscriptions/x"}}
    azure.put(f"{SCALE_SET}/virtualMachines/1/networkInterfaces/gpu", bare)
    assert verdict_and_severity(azure.findings("nsg-missing"), NODES)[0] == "Fail"


def with_pod_subnet(azure: FakeAzure) -> FakeAzure:
    """A subnet of pods, delegated to AKS, in which no interface is."""
    guards = {name: azure.properties(NODES)[name] for name in ("routeTable", "networkSecurityGroup")}
    azure.put(PODS, {"addressPrefix": "10.0.3.0/24", "delegations": DELEGATED_TO_AKS, **guards})
    azure.properties(CLUSTER)["agentPoolProfiles"][0]["podSubnetID"] = PODS
    return azure


def test_a_subnet_without_interfaces_is_judged_by_its_own_group() -> None:
    findings = with_pod_subnet(small_cluster()).drop(PODS, "networkSecurityGroup").findings("nsg-missing")
    assert verdict_and_severity(findings, PODS) == ("Fail", "high")


# ---------------------------------------------------------------- nsg-internet-deny, nsg-broad-allow


def test_a_route_of_an_ip_version_that_the_subnet_does_not_have_widens_no_tag() -> None:
    azure = with_rules(rule("vnet", 100, "Allow", "VirtualNetwork"), deny_internet(4000))
    with_routes(route("v6", "::/0", "None"), azure=azure)
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Pass"
    azure.change(NODES, addressPrefixes=["10.0.1.0/24", "fd00::/64"])
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Fail"


def test_default_rules_alone_do_not_deny() -> None:
    findings = with_rules().findings("nsg-internet-deny")
    assert verdict_and_severity(findings, NODES) == ("Fail", "high")
    assert verdict_and_severity(with_rules().findings("nsg-broad-allow"), RULES)[0] == "Pass"


def test_a_sealed_layer_under_an_open_one_is_enough() -> None:
    azure = with_pod_subnet(with_node_rules(with_rules(), deny_internet(100)))
    azure.properties(SCALE_SET)["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0][
        "properties"
    ]["networkSecurityGroup"] = {"id": NODE_RULES}
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Pass"
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), PODS)[0] == "Fail"


def test_a_hole_above_the_deny_is_critical_on_its_group() -> None:
    azure = with_rules(rule("web", 100, "Allow", "20.0.0.0/8", destinationPortRange="443"), deny_internet(4000))
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES) == ("Fail", "critical")
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES) == ("Fail", "high")
    assert "rule web (100) allows 20.0.0.0/8" in the(azure.findings("nsg-broad-allow"), RULES).message


def test_a_hole_under_a_layer_that_seals_is_medium() -> None:
    azure = with_node_rules(small_cluster(), rule("azure", 100, "Allow", "AzureCloud"), deny_internet(4000))
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), NODE_RULES) == ("Fail", "medium")
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Pass"


def test_a_hole_that_one_combination_lets_out_is_critical() -> None:
    azure = with_rules(rule("web", 100, "Allow", "Internet"), deny_internet(4000))
    with_node_rules(azure, deny_internet(100))
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES) == (
        "Fail",
        "critical",
    )  # the scale set's model


def test_the_networks_tag_is_told_on_the_subnet_only() -> None:
    azure = with_rules(rule("vnet", 100, "Allow", "VirtualNetwork"), deny_internet(4000))
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES) == ("Fail", "high")
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == "Pass"
    assert "widens the tag" in the(azure.findings("nsg-internet-deny"), NODES).message
    azure.change(ROUTES, routes=[])
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Pass"


@pytest.mark.parametrize("change", [lambda w: w.refuse(ROUTES), lambda w: w.drop(ROUTES, "routes")])
def test_a_table_that_was_not_seen_may_widen_the_tag(change: Change) -> None:
    azure = with_rules(rule("vnet", 100, "Allow", "VirtualNetwork"), deny_internet(4000))
    change(azure)
    finding = the(azure.findings("nsg-internet-deny"), NODES)
    assert (finding.verdict, ROUTES in finding.message) == (Verdict.UNKNOWN, True)
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == "Pass"
    assert (
        verdict_and_severity(with_rules(deny_internet(100)).refuse(ROUTES).findings("nsg-internet-deny"), NODES)[0]
        == "Pass"
    )
    group(azure, RULES, rule("web", 90, "Allow", "Internet"), rule("vnet", 100, "Allow", "VirtualNetwork"))
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Fail"


@pytest.mark.parametrize("default", [{}, {"defaultSecurityRules": None}, {"defaultSecurityRules": []}])
def test_a_group_without_its_default_rules_seals_only_by_a_rule_of_its_own(default: dict[str, Any]) -> None:
    azure = small_cluster().put(RULES, {"securityRules": [], **default})
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Unknown"
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == "Pass"
    azure.put(RULES, {"securityRules": [rule("web", 100, "Allow", "20.0.0.0/8")], **default})
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Fail"
    azure.put(RULES, {"securityRules": [deny_internet(4000)], **default})
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Pass"


def test_whether_a_group_without_its_end_seals_a_hole_of_another_is_unknown() -> None:
    azure = with_node_rules(with_rules(rule("web", 100, "Allow", "20.0.0.0/8"), deny_internet(4000)))
    azure.put(NODE_RULES, {"securityRules": []})
    azure.properties(SCALE_SET)["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0][
        "properties"
    ]["networkSecurityGroup"] = {"id": NODE_RULES}
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES) == ("Unknown", "critical")
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Unknown"


@pytest.mark.parametrize("answered", WITHOUT_A_LIST)
@pytest.mark.parametrize(
    ("check", "resource"),
    [("nsg-broad-allow", RULES), ("nsg-internet-deny", NODES), ("nsg-platform-dns", NODES)],
)
def test_a_group_without_a_list_of_rules_is_not_known_to_have_none(
    answered: dict[str, Any], check: str, resource: str
) -> None:
    azure = small_cluster().put(RULES, answered).act(VNET, "listDnsResolverPolicies", {"value": []})
    findings = azure.findings(check)
    assert verdict_and_severity(findings, resource)[0] == "Unknown"
    assert "no list of rules" in the(findings, resource).message


@pytest.mark.parametrize("answered", WITHOUT_A_LIST)
def test_a_group_without_a_list_of_rules_opens_nothing_that_another_seals(answered: dict[str, Any]) -> None:
    azure = with_node_rules(small_cluster(), deny_internet(100)).put(RULES, answered)
    model = model_nics(NODES)
    model["networkInterfaceConfigurations"][0]["properties"]["networkSecurityGroup"] = {"id": NODE_RULES}
    azure.change(SCALE_SET, virtualMachineProfile={"networkProfile": model})
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Pass"


EXPOSED = f"{NETWORK}/applicationSecurityGroups/jump"


def to_group(name: str, number: int) -> dict[str, Any]:
    return rule(name, number, "Allow", "", destinationApplicationSecurityGroups=[{"id": EXPOSED.upper()}])


def exposed_machine(azure: FakeAzure) -> FakeAzure:
    interface_fields = {"publicIPAddress": {"id": "/subscriptions/p"}, "applicationSecurityGroups": [{"id": EXPOSED}]}
    return azure.put(
        SENTINEL, {"ipConfigurations": [ip_configuration("10.0.9.4", f"{VNET}/subnets/j", **interface_fields)]}
    )


@pytest.mark.parametrize(
    ("narrowed", "verdict"),
    [
        ({}, "Pass"),
        ({"destinationAddressPrefix": "VirtualNetwork"}, "Pass"),
        ({"destinationPortRange": "22"}, "Fail"),
        ({"protocol": "Udp"}, "Fail"),
        ({"sourceAddressPrefix": "10.0.1.0/25"}, "Fail"),
        ({"sourcePortRange": "1024-65535"}, "Fail"),
        ({"destinationAddressPrefix": "10.0.0.0/16"}, "Fail"),
    ],
)
def test_only_a_whole_deny_stands_before_machines_with_public_addresses(narrowed: dict[str, Any], verdict: str) -> None:
    azure = exposed_machine(with_rules(rule("no", 90, "Deny", **narrowed), to_group("jump", 100), deny_internet(4000)))
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == verdict


def test_an_allow_to_machines_with_public_addresses_is_a_hole() -> None:
    azure = exposed_machine(with_rules(to_group("jump", 100), deny_internet(4000)))
    finding = the(azure.findings("nsg-broad-allow"), RULES)
    assert (finding.verdict.value, finding.severity.value) == ("Fail", "critical")
    assert "subnet nodes -> machine of jump -> public ip -> internet" in finding.path_texts


def test_it_is_none_without_the_address_or_after_a_deny_of_everything() -> None:
    azure = with_rules(to_group("jump", 100), deny_internet(4000))
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == "Pass"
    azure = exposed_machine(with_rules(rule("all", 50, "Deny"), to_group("jump", 100)))
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == "Pass"


def test_members_of_a_group_that_could_not_be_listed_leave_it_open() -> None:
    azure = with_rules(to_group("jump", 100), deny_internet(4000))
    azure.refuse(SUBSCRIPTION, kind="Microsoft.Network/networkInterfaces")
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == "Unknown"


def test_groups_that_were_not_seen_are_unknown_where_they_decide() -> None:
    azure = small_cluster().refuse(RULES)
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Unknown"
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == "Unknown"
    assert verdict_and_severity(azure.findings("nsg-missing"), NODES)[0] == "Pass"


def test_a_group_that_was_not_seen_cannot_open_what_another_seals() -> None:
    azure = with_node_rules(small_cluster()).refuse(NODE_RULES)
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Pass"


def test_rules_that_are_damaged_are_unknown() -> None:
    azure = small_cluster().change(RULES, securityRules=[rule("x", "soon", "Deny", "Internet")])  # type: ignore[arg-type]
    assert verdict_and_severity(azure.findings("nsg-internet-deny"), NODES)[0] == "Unknown"
    assert verdict_and_severity(azure.findings("nsg-broad-allow"), RULES)[0] == "Unknown"


# ---------------------------------------------------------------- behind the declared firewall


def behind_the_firewall(azure: FakeAzure) -> FakeAzure:
    default = route("v4", "0.0.0.0/0", "VirtualAppliance", FIREWALL_ADDRESS)
    return with_a_firewall(with_routes(default, route("v6", "::/0", "None"), azure=azure))


@pytest.mark.parametrize(
    ("check", "resource"), [("nsg-internet-deny", NODES), ("nsg-broad-allow", RULES), ("nsg-effective", NODES)]
)
def test_the_declared_firewall_decides_instead_of_rules(check: str, resource: str) -> None:
    web = rule("web", 100, "Allow", "Internet", protocol="Tcp", destinationPortRange="443")
    azure = behind_the_firewall(sentinel(with_rules(web, deny_internet(4000))))
    azure.act(SENTINEL, "effectiveNetworkSecurityGroups", {"value": []})
    assert verdict_and_severity(azure.findings(check, FILTERED), resource)[0] == "NotApplicable"


@pytest.mark.parametrize(("check", "resource"), [("nsg-internet-deny", NODES), ("nsg-broad-allow", RULES)])
@pytest.mark.parametrize(
    "other",
    [route("v6", "::/0", "VirtualAppliance", "fd00::9"), route("v4", "0.0.0.0/0", "VirtualAppliance", "10.0.9.9")],
)
def test_it_does_not_where_any_default_route_leads_elsewhere(check: str, resource: str, other: dict[str, Any]) -> None:
    azure = behind_the_firewall(with_rules(rule("web", 100, "Allow", "Internet"), deny_internet(4000)))
    azure.properties(ROUTES)["routes"].append(other)
    assert verdict_and_severity(azure.findings(check, FILTERED), resource)[0] == "Fail"


def test_a_firewall_that_was_not_seen_decides_nothing() -> None:
    azure = behind_the_firewall(with_rules(rule("web", 100, "Allow", "Internet"), deny_internet(4000)))
    azure.refuse(f"{NETWORK}/azureFirewalls/wall")
    assert verdict_and_severity(azure.findings("nsg-internet-deny", FILTERED), NODES)[0] == "Unknown"
