"""Served estates whose declared firewall has rules of a policy."""

from __future__ import annotations

from typing import Any

from hermetic.audit.policy.allowed_destinations import AllowedHost, AllowedPublicDestination
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import NETWORK, VNET
from tests.audit_services import FakeServices, served_cluster

FIREWALL = f"{NETWORK}/azureFirewalls/wall"
UNACCEPTED = Policy(
    profile="filtered", firewall=FIREWALL, allowed_hosts=(AllowedHost(host="mirror.example", reason="our own mirror"),)
)
ACCEPTED = ("20.0.0.0/8", "40.0.0.0/8", "60.0.0.0/8", "2600::/32", "2600:1::/32", "2600:2::/32")
"""Public prefixes whose owner the policy file states: what remains is how wide a rule is."""
FILTERED = UNACCEPTED.model_copy(
    update={
        "allowed_public_destinations": tuple(
            AllowedPublicDestination(prefix=prefix, reason="ours") for prefix in ACCEPTED
        )
    }
)
POLICY_ID, BASE, IP_GROUP = (
    f"{NETWORK}/{resource}" for resource in ("firewallPolicies/p", "firewallPolicies/base", "ipGroups/g")
)


def put_firewall(azure: FakeServices, subnet: str, firewall: str = FIREWALL, **fields: Any) -> str:
    address = {"name": "a", "properties": {"subnet": {"id": subnet}, "privateIPAddress": "10.9.0.4"}}
    azure.put(firewall, {"ipConfigurations": [address], **fields})
    return firewall


def collection_of(*rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A collection that allows these rules, as a rule collection group lists it."""
    return {
        "ruleCollectionType": "FirewallPolicyFilterRuleCollection",
        "name": "c",
        "action": {"type": "Allow"},
        "rules": [{"ruleType": "NetworkRule", "name": "r", **rule_fields} for rule_fields in rules],
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
