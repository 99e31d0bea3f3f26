"""Estates of security groups: rules at both layers, and the groups that lack something."""

from __future__ import annotations

from typing import Any

from tests.audit_estates import (
    NETWORK,
    NIC,
    NODE_NETWORK,
    RULES,
    VNET,
    FakeAzure,
    default_rules,
    small_cluster,
)

NODE_RULES = f"{NODE_NETWORK}/networkSecurityGroups/aks"
POLICY = f"{NETWORK}/dnsResolverPolicies/p"
DOMAINS = f"{NETWORK}/dnsResolverDomainLists/everything"


def group(azure: FakeAzure, arm_id: str, *rules: dict[str, Any]) -> FakeAzure:
    return azure.put(arm_id, {"securityRules": list(rules), "defaultSecurityRules": default_rules()})


def with_rules(*rules: dict[str, Any]) -> FakeAzure:
    """The group of the subnets holds these rules and the default ones."""
    return group(small_cluster(), RULES, *rules)


def with_node_rules(azure: FakeAzure, *rules: dict[str, Any]) -> FakeAzure:
    """The node's own interface has a group as well, as AKS makes one."""
    return group(azure, NODE_RULES, *rules).change(NIC, networkSecurityGroup={"id": NODE_RULES})


def blocked_by_default(azure: FakeAzure) -> FakeAzure:
    """A DNS security policy that blocks every name."""
    azure.act(VNET, "listDnsResolverPolicies", {"value": [{"id": POLICY}]})
    azure.put(DOMAINS, {"domains": ["."]})
    rule_properties = {"priority": 100, "action": {"actionType": "Block"}, "dnsSecurityRuleState": "Enabled"}
    return azure.put(f"{POLICY}/dnsSecurityRules/b", {**rule_properties, "dnsResolverDomainLists": [{"id": DOMAINS}]})


# The rules that every group ends in are no list of its own: they neither deny what an allow of ours opens, nor open
# what a deny of ours stops (learn.microsoft.com/azure/virtual-network/network-security-groups-overview, default rules).
WITHOUT_A_LIST: list[dict[str, Any]] = [
    {"defaultSecurityRules": default_rules()},
    {"securityRules": None, "defaultSecurityRules": default_rules()},
    {},
]
