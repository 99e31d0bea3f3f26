"""Firewalls in reach, and the one that the profile `filtered` declares."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, NETWORK, SUBSCRIPTION, VNET, route
from tests.audit_services import (
    HUB,
    add_hub,
    peer,
    served_cluster,
    verdicts,
)
from tests.firewall_estates import (
    BASE,
    FILTERED,
    FIREWALL,
    IP_GROUP,
    POLICY_ID,
    collection_of,
    filtered,
    put_firewall,
)

ALLOWED = Policy(allowed_peerings=(HUB,))


class TestFirewalls:
    @pytest.mark.parametrize(
        ("home", "verdict"),
        [
            (f"{VNET}/subnets/wall", "Fail"),
            (f"{HUB}/subnets/wall", "Fail"),
            (f"{NETWORK}/virtualNetworks/x/subnets/w", "Pass"),
        ],
    )
    def test_a_firewall_fails_when_packets_can_come_to_it(self, home: str, verdict: str) -> None:
        azure = peer(served_cluster())
        put_firewall(azure, home)
        assert verdicts(azure, "firewall-in-path", ALLOWED) == {FIREWALL.lower(): verdict}

    def test_a_route_leads_to_a_firewall_anywhere(self) -> None:
        azure = served_cluster()
        put_firewall(azure, f"{NETWORK}/virtualNetworks/x/subnets/w")
        azure.change(
            f"{NETWORK}/routeTables/sealed", routes=[route("x", "10.99.0.0/16", "VirtualAppliance", "10.9.0.4")]
        )
        assert verdicts(azure, "firewall-in-path") == {FIREWALL.lower(): "Fail"}

    def test_a_firewall_in_a_connected_hub_fails(self) -> None:
        azure = served_cluster()
        add_hub(azure)
        azure.put(FIREWALL, {"virtualHub": {"id": f"{NETWORK}/virtualHubs/wan"}})
        assert verdicts(azure, "firewall-in-path") == {FIREWALL.lower(): "Fail"}

    def test_an_unread_subscription_is_unknown(self) -> None:
        azure = served_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/azureFirewalls")
        assert verdicts(azure, "firewall-in-path") == {CLUSTER.lower(): "Unknown"}


# mspnp/aks-baseline, network-team/hub-regionA.bicep and the pages that it names: what its rules let the nodes reach.
BASELINE: dict[str, dict[str, Any]] = {
    "time": {"destinationFqdns": ["ntp.ubuntu.com"], "destinationPorts": ["123"]},
    "dns": {"destinationAddresses": ["*"], "destinationPorts": ["53"]},
    "region": {"destinationAddresses": ["AzureCloud.swedencentral"], "destinationPorts": ["9000", "1194"]},
    "aks": {"ruleType": "ApplicationRule", "fqdnTags": ["AzureKubernetesService"]},
    "blobs": {"ruleType": "ApplicationRule", "targetFqdns": ["*.blob.core.windows.net"]},
    "flux": {"ruleType": "ApplicationRule", "targetFqdns": ["github.com", "api.github.com"]},
    "management": {"ruleType": "ApplicationRule", "targetFqdns": ["management.azure.com"]},
    "sign-in": {"ruleType": "ApplicationRule", "targetFqdns": ["login.microsoftonline.com"]},
    "images": {"ruleType": "ApplicationRule", "targetFqdns": ["mcr.microsoft.com", "*.data.mcr.microsoft.com"]},
}
NAMED_ONES = {"time", "images"}


def test_the_rules_of_the_published_baseline_fail_and_the_message_names_each_that_serves_others() -> None:
    rules = [{**rule, "name": name} for name, rule in BASELINE.items()]
    azure = filtered({})
    azure.put(f"{POLICY_ID}/ruleCollectionGroups/one", {"ruleCollections": [collection_of(*rules)]})
    finding = azure.findings("firewall-in-path", FILTERED)[FIREWALL.lower()]
    assert (finding.verdict, finding.severity, finding.reason) == (Verdict.FAIL, Severity.CRITICAL, "AllowsAnything")
    assert {name for name in BASELINE if name in finding.message} >= BASELINE.keys() - NAMED_ONES


class TestTheDeclaredFirewall:
    @pytest.mark.parametrize(
        ("fields", "verdict"),
        [
            ({"destinationAddresses": ["20.1.2.3"]}, "Pass"),
            ({"destinationAddresses": ["20.0.0.0/8"]}, "Pass"),
            ({"destinationAddresses": ["MicrosoftContainerRegistry"]}, "Pass"),
            ({"destinationAddresses": ["AzureMonitor"]}, "Fail"),
            ({"destinationAddresses": ["AzureActiveDirectory"]}, "Unknown"),
            ({"destinationAddresses": ["*"]}, "Fail"),
            ({"destinationAddresses": ["0.0.0.0/0"]}, "Fail"),
            ({"destinationAddresses": ["::/0"]}, "Fail"),
            ({"destinationAddresses": ["Internet"]}, "Fail"),
            ({"destinationAddresses": ["0.0.0.0/1"]}, "Fail"),
            ({"destinationAddresses": ["1.0.0.0-9.255.255.255"]}, "Fail"),
            ({"destinationFqdns": ["*"]}, "Fail"),
            ({"ruleType": "ApplicationRule", "targetFqdns": ["*"]}, "Fail"),
            ({"ruleType": "ApplicationRule", "targetFqdns": ["mirror.example"]}, "Pass"),
            ({"ruleType": "ApplicationRule", "webCategories": ["News"]}, "Fail"),
            ({"ruleType": "ApplicationRule", "fqdnTags": ["WindowsUpdate"]}, "Pass"),
            ({"ruleType": "OddRule", "destinationAddresses": ["20.1.2.3"]}, "Unknown"),
            ({}, "Unknown"),
        ],
    )
    def test_fails_for_a_rule_that_allows_anything(self, fields: dict[str, Any], verdict: str) -> None:
        finding = filtered(fields).findings("firewall-in-path", FILTERED)[FIREWALL.lower()]
        assert (finding.verdict, finding.severity) == (verdict, Severity.CRITICAL)

    @pytest.mark.parametrize(
        ("prefix", "verdict"), [("20.0.0.0/6", "Fail"), ("20.0.0.0/8", "Pass"), ("10.0.0.0/7", "Fail")]
    )
    def test_looks_into_ip_groups(self, prefix: str, verdict: str) -> None:
        azure = filtered({"destinationIpGroups": [IP_GROUP]}).put(IP_GROUP, {"ipAddresses": [prefix]})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == verdict

    def test_an_ip_group_that_cannot_be_read_is_unknown(self) -> None:
        azure = filtered({"destinationIpGroups": [IP_GROUP]})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Unknown"

    def test_the_remedy_names_the_rule_where_it_stands(self) -> None:
        azure = filtered({"destinationAddresses": ["*"]}, policy=BASE)
        remedy = " ".join(azure.findings("firewall-in-path", FILTERED)[FIREWALL.lower()].remedy.split())
        options = "--policy-name base --rule-collection-group-name one --collection-name c --name r"
        assert f"--resource-group {BASE.split('/')[4]} {options}" in remedy

    def test_base_policies_and_classic_rules_count(self) -> None:
        azure = filtered({"destinationAddresses": ["*"]}, policy=BASE)
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Fail"
        azure = filtered({"destinationAddresses": ["20.1.2.3"]})
        classic = {
            "name": "old",
            "properties": {"action": {"type": "Allow"}, "rules": [{"destinationAddresses": ["*"]}]},
        }
        azure.change(FIREWALL, networkRuleCollections=[classic])
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Fail"

    @pytest.mark.parametrize(
        ("collection", "verdict"),
        [
            ({"action": {"type": "Deny"}}, "Pass"),
            ({"ruleCollectionType": "FirewallPolicyNatRuleCollection", "action": {"type": "Dnat"}}, "Pass"),
            ({"action": {"type": "Maybe"}}, "Unknown"),
            ({"ruleCollectionType": "Odd"}, "Unknown"),
        ],
    )
    def test_denies_and_translation_inside_let_nothing_out(self, collection: dict[str, Any], verdict: str) -> None:
        azure = filtered({"destinationAddresses": ["*"], "translatedAddress": "10.0.2.3"}, **collection)
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == verdict

    @pytest.mark.parametrize("classic", [False, True])
    @pytest.mark.parametrize(
        ("fields", "verdict"),
        [
            ({"translatedAddress": "10.0.2.3"}, "Pass"),
            ({"translatedFqdn": "app.corp.internal"}, "Unknown"),
            ({"translatedAddress": "20.1.2.3"}, "Unknown"),
            ({"translatedFqdn": "collect.example.com"}, "Unknown"),
            ({}, "Unknown"),
            ({"translatedTo": {"id": "something new"}}, "Unknown"),
        ],
    )
    def test_a_translation_to_what_is_outside_is_unknown(
        self, fields: dict[str, Any], verdict: str, *, classic: bool
    ) -> None:
        kind = {"ruleCollectionType": "FirewallPolicyNatRuleCollection", "action": {"type": "Dnat"}}
        rule = {"destinationAddresses": ["10.20.30.40"], "translatedPort": "443", **fields}
        azure = filtered(rule, **kind) if not classic else filtered({"destinationAddresses": ["20.1.2.3"]})
        if classic:
            old = {"name": "old", "properties": {"action": {"type": "Dnat"}, "rules": [rule]}}
            azure.change(FIREWALL, natRuleCollections=[old])
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == verdict

    @pytest.mark.parametrize("classic", [False, True])
    @pytest.mark.parametrize("action", ["Allow", "Deny", "Dnat"])
    def test_a_collection_without_a_list_of_rules_is_unknown_unless_it_denies(
        self, action: str, *, classic: bool
    ) -> None:
        azure = filtered({"destinationAddresses": ["20.1.2.3"]})
        if classic:
            part = "natRuleCollections" if action == "Dnat" else "networkRuleCollections"
            azure.change(FIREWALL, **{part: [{"name": "new", "properties": {"action": {"type": action}}}]})
        else:
            kind = f"FirewallPolicy{'Nat' if action == 'Dnat' else 'Filter'}RuleCollection"
            new = {"name": "new", "ruleCollectionType": kind, "action": {"type": action}}
            azure.put(f"{POLICY_ID}/ruleCollectionGroups/two", {"ruleCollections": [new]})
        finding = azure.findings("firewall-in-path", FILTERED)[FIREWALL.lower()]
        assert finding.verdict is (Verdict.PASS if action == "Deny" else Verdict.UNKNOWN)
        assert ("new: the answer has no rules" in finding.message) is (action != "Deny")

    @pytest.mark.parametrize("target", [FIREWALL, POLICY_ID, BASE])
    def test_what_cannot_be_read_of_it_is_unknown_and_critical(self, target: str) -> None:
        azure = filtered({"destinationAddresses": ["20.1.2.3"]}).refuse(target)
        finding = azure.findings("firewall-in-path", FILTERED)[FIREWALL.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, Severity.CRITICAL)

    def test_any_other_firewall_still_fails(self) -> None:
        azure = filtered({"destinationAddresses": ["20.1.2.3"]})
        other = put_firewall(azure, f"{VNET}/subnets/wall", f"{NETWORK}/azureFirewalls/other")
        assert verdicts(azure, "firewall-in-path", FILTERED)[other.lower()] == "Fail"
