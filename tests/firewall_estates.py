"""Served estates whose declared firewall has rules of a policy."""

from __future__ import annotations

from typing import Any

from hermetic.audit.policy import Policy
from tests.audit_estates import NETWORK, VNET
from tests.audit_services import FakeServices, served_cluster

FIREWALL = f"{NETWORK}/azureFirewalls/wall"
FILTERED = Policy(profile="filtered", firewall=FIREWALL)
POLICY_ID, BASE, IP_GROUP = (
    f"{NETWORK}/{one}" for one in ("firewallPolicies/p", "firewallPolicies/base", "ipGroups/g")
)


def put_firewall(azure: FakeServices, subnet: str, firewall: str = FIREWALL, **rest: Any) -> str:
    address = {"name": "a", "properties": {"subnet": {"id": subnet}, "privateIPAddress": "10.9.0.4"}}
    azure.put(firewall, {"ipConfigurations": [address], **rest})
    return firewall


def collection_of(*rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A collection that allows these rules, as a rule collection group lists it."""
    return {
        "ruleCollectionType": "FirewallPolicyFilterRuleCollection",
        "name": "c",
        "action": {"type": "Allow"},
        "rules": [{"ruleType": "NetworkRule", "name": "r", **one} for one in rules],
        **fields,
    }


def filtered(rule_fields: dict[str, Any], policy: str = POLICY_ID, **collection: Any) -> FakeServices:
    """A cluster behind a declared firewall with one rule, of its policy or of the base policy."""
    azure = served_cluster()
    put_firewall(azure, f"{VNET}/subnets/wall", firewallPolicy={"id": POLICY_ID})
    azure.put(POLICY_ID, {"basePolicy": {"id": BASE}})
    azure.put(BASE, {})
    azure.put(f"{policy}/ruleCollectionGroups/one", {"ruleCollections": [collection_of(rule_fields, **collection)]})
    return azure
