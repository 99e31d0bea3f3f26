"""Effective rules, the platform's tags, private endpoints and the outbound type block, by the groups' rules."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from tests.audit_estates import (
    CLUSTER,
    NETWORK,
    NODE_NETWORK,
    NODES,
    RULES,
    SENTINEL,
    SUBSCRIPTION,
    VNET,
    FakeAzure,
    deny_internet,
    rule,
    small_cluster,
)
from tests.nsg_estates import (
    DOMAINS,
    NODE_RULES,
    WITHOUT_A_LIST,
    blocked_by_default,
    with_node_rules,
    with_rules,
)
from tests.routes_and_sentinels import (
    sentinel,
    verdict_and_severity,
)

# ---------------------------------------------------------------- nsg-effective


def effective_rule(name: str, number: int, access: str, to: str) -> dict[str, Any]:
    """As Azure spells effective rules: no wildcard but 0.0.0.0/0, All, and 0-65535."""
    return {
        "name": f"securityRules/{name}",
        "protocol": "All",
        "sourcePortRange": "0-65535",
        "destinationPortRange": "0-65535",
        "sourceAddressPrefix": "0.0.0.0/0",
        "destinationAddressPrefix": to,
        "access": access,
        "priority": number,
        "direction": "Outbound",
    }


DENIES = effective_rule("deny", 4000, "Deny", "Internet")
DEFAULTS = [effective_rule("vnet", 65000, "Allow", "VirtualNetwork"), effective_rule("net", 65001, "Allow", "Internet")]


def effective(*layers: list[dict[str, Any]]) -> FakeAzure:
    entries = [{"effectiveSecurityRules": layer, "networkSecurityGroup": {"id": RULES}} for layer in layers]
    return sentinel(small_cluster()).act(SENTINEL, "effectiveNetworkSecurityGroups", {"value": entries})


@pytest.mark.parametrize(
    ("layers", "verdict"),
    [
        ([[DENIES, *DEFAULTS]], "Pass"),
        ([DEFAULTS], "Fail"),
        ([DEFAULTS, [DENIES, *DEFAULTS]], "Pass"),
        ([[effective_rule("hole", 100, "Allow", "20.0.0.0/8"), DENIES, *DEFAULTS]], "Fail"),
        ([[effective_rule("odd", 100, "Permit", "Internet"), DENIES, *DEFAULTS]], "Fail"),
        ([[effective_rule("far", 100, "Deny", "20.0.0.0/8")], DEFAULTS], "Unknown"),
        ([[]], "Unknown"),
        ([], "Unknown"),
    ],
)
def test_effective_rules_are_judged_together(layers: list[list[dict[str, Any]]], verdict: str) -> None:
    assert verdict_and_severity(effective(*layers).findings("nsg-effective"), NODES) == (verdict, "high")


def test_no_group_at_all_lets_everything_out() -> None:
    azure = effective().drop(NODES, "networkSecurityGroup")
    assert verdict_and_severity(azure.findings("nsg-effective"), NODES) == ("Fail", "high")


# ---------------------------------------------------------------- platform tags


def answered_dns(azure: FakeAzure) -> FakeAzure:
    return azure.act(VNET, "listDnsResolverPolicies", {"value": []})


def test_the_platforms_resolver_is_open_without_a_deny_or_a_policy() -> None:
    assert verdict_and_severity(answered_dns(small_cluster()).findings("nsg-platform-dns"), NODES) == ("Fail", "medium")


def test_a_deny_to_its_tag_or_a_policy_that_blocks_passes() -> None:
    denied = with_rules(rule("dns", 100, "Deny", "AzurePlatformDNS"), deny_internet(4000))
    assert verdict_and_severity(answered_dns(denied).findings("nsg-platform-dns"), NODES)[0] == "Pass"
    assert verdict_and_severity(blocked_by_default(small_cluster()).findings("nsg-platform-dns"), NODES)[0] == "Pass"


def test_a_policy_with_a_wildcard_or_unseen_is_unknown_at_medium() -> None:
    azure = blocked_by_default(small_cluster()).put(DOMAINS, {"domains": ["*."]})
    assert verdict_and_severity(azure.findings("nsg-platform-dns"), NODES) == ("Unknown", "medium")
    azure = small_cluster().refuse(VNET, verb="post")
    assert verdict_and_severity(azure.findings("nsg-platform-dns"), NODES) == ("Unknown", "medium")


def test_a_group_that_may_deny_it_and_was_not_seen_is_unknown() -> None:
    assert (
        verdict_and_severity(answered_dns(small_cluster()).refuse(RULES).findings("nsg-platform-dns"), NODES)[0]
        == "Unknown"
    )


def test_the_metadata_service_is_information() -> None:
    assert verdict_and_severity(small_cluster().findings("nsg-platform-imds"), NODES) == ("NotApplicable", "low")
    denied = with_rules(rule("imds", 100, "Deny", "AzurePlatformIMDS"), deny_internet(4000))
    assert verdict_and_severity(denied.findings("nsg-platform-imds"), NODES)[0] == "Pass"


# ---------------------------------------------------------------- private endpoints, block


ENDPOINTS = f"{VNET}/subnets/endpoints"


def private_endpoint(
    azure: FakeAzure, group_id: str = "blob", *, home: str = NETWORK, subnet: str = ENDPOINTS
) -> FakeAzure:
    connection = {"name": "c", "properties": {"groupIds": [group_id], "privateLinkServiceId": "/subscriptions/x"}}
    return azure.put(
        f"{home}/privateEndpoints/e", {"subnet": {"id": subnet}, "privateLinkServiceConnections": [connection]}
    )


@pytest.mark.parametrize(
    ("expected", "verdict"),
    [
        ("Enabled", "Pass"),
        ("NetworkSecurityGroupEnabled", "Pass"),
        ("Disabled", "Fail"),
        ("RouteTableEnabled", "Fail"),
        (None, "Fail"),
        ("Sometimes", "Unknown"),
    ],
)
def test_rules_apply_to_private_endpoints_only_when_told(expected: str | None, verdict: str) -> None:
    azure = private_endpoint(small_cluster()).put(ENDPOINTS, {"privateEndpointNetworkPolicies": expected})
    assert verdict_and_severity(azure.findings("nsg-pe-bypass"), ENDPOINTS) == (verdict, "low")


def test_the_endpoint_that_aks_makes_for_its_api_server_is_left_out() -> None:
    azure = private_endpoint(small_cluster(), "management", home=NODE_NETWORK, subnet=NODES)
    assert verdict_and_severity(azure.findings("nsg-pe-bypass"), CLUSTER)[0] == "Pass"
    ours = private_endpoint(small_cluster(), "blob", home=NODE_NETWORK, subnet=NODES)
    assert verdict_and_severity(ours.findings("nsg-pe-bypass"), NODES)[0] == "Fail"


def test_endpoints_that_cannot_be_listed_are_unknown() -> None:
    azure = small_cluster().refuse(SUBSCRIPTION, UnreadReason.TRUNCATED, kind="Microsoft.Network/privateEndpoints")
    assert verdict_and_severity(azure.findings("nsg-pe-bypass"), CLUSTER)[0] == "Unknown"


def block(azure: FakeAzure) -> FakeAzure:
    azure.properties(CLUSTER)["networkProfile"]["outboundType"] = "block"
    return azure


def test_block_is_judged_by_its_rules() -> None:
    assert verdict_and_severity(small_cluster().findings("nsg-block-type"), CLUSTER)[0] == "NotApplicable"
    sealed = block(with_node_rules(small_cluster(), deny_internet(100)))
    assert verdict_and_severity(sealed.findings("nsg-block-type"), NODE_RULES)[0] == "Pass"
    edited = block(with_node_rules(small_cluster()))
    assert verdict_and_severity(edited.findings("nsg-block-type"), NODE_RULES) == ("Fail", "medium")
    assert verdict_and_severity(block(small_cluster()).findings("nsg-block-type"), CLUSTER) == ("Fail", "medium")


def test_block_is_not_known_to_hold_by_a_group_without_its_default_rules() -> None:
    azure = block(with_node_rules(small_cluster())).put(NODE_RULES, {"securityRules": []})
    assert verdict_and_severity(azure.findings("nsg-block-type"), NODE_RULES) == ("Unknown", "medium")


@pytest.mark.parametrize("answered", WITHOUT_A_LIST)
def test_block_is_not_known_to_be_edited_by_a_group_without_a_list_of_rules(answered: dict[str, Any]) -> None:
    azure = block(with_node_rules(small_cluster())).put(NODE_RULES, answered)
    assert verdict_and_severity(azure.findings("nsg-block-type"), NODE_RULES) == ("Unknown", "medium")


def test_block_whose_groups_cannot_be_listed_is_unknown() -> None:
    azure = block(small_cluster())
    azure.refuse(NODE_NETWORK.rpartition("/providers/")[0], kind="Microsoft.Network/networkSecurityGroups")
    assert verdict_and_severity(azure.findings("nsg-block-type"), CLUSTER)[0] == "Unknown"
