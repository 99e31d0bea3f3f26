"""Table G, as far as Azure shows it: servers, policies, rulesets, private zones."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, NETWORK, NIC, SCALE_SET, SUBSCRIPTION, VNET
from tests.audit_services import (
    DNS_POLICY,
    HUB,
    MACHINE,
    ZONE_LINK,
    FakeServices,
    add_machine,
    dns_rule,
    only,
    peer,
    served_cluster,
    verdicts,
)

IDS = (
    "vnet-dns-servers",
    "dns-security-policy",
    "dns-allowed-domains",
    "dns-forwarding-ruleset",
    "privdns-fallthrough",
)
LISTS = f"{NETWORK}/dnsResolverDomainLists"
BLOCK, ALLOW = f"{DNS_POLICY}/dnsSecurityRules/block", f"{DNS_POLICY}/dnsSecurityRules/allow"
RULESET = f"{NETWORK}/dnsForwardingRulesets/site"
RESOLVER = "10.0.7.4"
LARGE_LIST = "https://contoso.blob.core.windows.net/lists/allowed.csv"


@pytest.mark.parametrize("check", IDS)
def test_sealed_names_pass(check: str) -> None:
    finding = only(served_cluster(), check)
    assert finding.verdict is Verdict.PASS
    assert finding.evidence


@pytest.mark.parametrize("check", IDS)
def test_a_cluster_or_network_that_cannot_be_read_never_passes(check: str) -> None:
    for target in (CLUSTER, VNET):
        azure = served_cluster().refuse(target, verb="get")
        assert {finding.verdict for finding in azure.findings(check).values()} == {Verdict.UNKNOWN}


def _served_by(*servers: str) -> FakeServices:
    azure = served_cluster()
    azure.change(VNET, dhcpOptions={"dnsServers": list(servers)})
    return azure


class TestServers:
    def test_azures_own_address_is_azures_own_resolver(self) -> None:
        assert verdicts(_served_by("168.63.129.16"), "vnet-dns-servers") == {VNET.lower(): "Pass"}

    def test_a_server_has_to_be_on_the_list(self) -> None:
        azure = _served_by(RESOLVER)
        assert verdicts(azure, "vnet-dns-servers") == {VNET.lower(): "Fail"}
        assert verdicts(azure, "vnet-dns-servers", Policy(allowed_dns_servers=(RESOLVER,))) == {VNET.lower(): "Pass"}
        both = Policy(allowed_dns_servers=(RESOLVER, "10.0.7.5"))
        assert verdicts(_served_by(RESOLVER, "10.0.7.6"), "vnet-dns-servers", both) == {VNET.lower(): "Fail"}

    def test_a_listed_server_with_an_egress_path_fails_all_the_same(self) -> None:
        listed = Policy(allowed_dns_servers=(RESOLVER,))
        azure = _served_by(RESOLVER)
        add_machine(azure, address=RESOLVER)
        assert verdicts(azure, "vnet-dns-servers", listed) == {VNET.lower(): "Pass"}
        azure.change(f"{VNET}/subnets/tools", defaultOutboundAccess=None)
        assert verdicts(azure, "vnet-dns-servers", listed) == {VNET.lower(): "Fail"}

    def test_machines_behind_a_server_that_cannot_be_listed_are_unknown(self) -> None:
        azure = _served_by(RESOLVER).refuse(SUBSCRIPTION, kind="Microsoft.Network/networkInterfaces")
        findings = azure.findings("vnet-dns-servers", Policy(allowed_dns_servers=(RESOLVER,)))
        assert findings[VNET.lower()].verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize("nic", [NIC, MACHINE])
    def test_an_interface_may_have_servers_of_its_own(self, nic: str) -> None:
        azure = served_cluster()
        add_machine(azure)
        azure.change(nic, dnsSettings={"dnsServers": ["20.1.2.3"]})
        assert verdicts(azure, "vnet-dns-servers")[nic.lower()] == "Fail"

    @pytest.mark.parametrize(("server", "verdict"), [("20.1.2.3", "Fail"), ("168.63.129.16", "Pass")])
    def test_the_model_of_a_scale_set_may_give_servers_to_the_next_instances(self, server: str, verdict: str) -> None:
        azure = served_cluster()
        (nic,) = azure.properties(SCALE_SET)["virtualMachineProfile"]["networkProfile"][
            "networkInterfaceConfigurations"
        ]
        nic["properties"]["dnsSettings"] = {"dnsServers": [server]}
        assert verdicts(azure, "vnet-dns-servers")[SCALE_SET.lower()] == verdict

    def test_interfaces_that_cannot_be_listed_are_unknown(self) -> None:
        azure = served_cluster().refuse(SCALE_SET, verb="list")
        assert verdicts(azure, "vnet-dns-servers")[CLUSTER.lower()] == "Unknown"


class TestSecurityPolicy:
    def test_is_medium_and_names_the_network(self) -> None:
        finding = only(served_cluster().act(VNET, "listDnsResolverPolicies", {"value": []}), "dns-security-policy")
        assert (finding.verdict, finding.severity, finding.resource) == (Verdict.FAIL, Severity.MEDIUM, VNET)

    @pytest.mark.parametrize(
        ("properties", "verdict"),
        [
            ({"dnsSecurityRuleState": "Disabled"}, "Fail"),
            ({"dnsSecurityRuleState": "Odd"}, "Unknown"),
            ({"action": {"actionType": "Allow"}}, "Fail"),
            ({"action": {"actionType": "Alert"}}, "Fail"),
            ({"action": {"actionType": "Odd"}}, "Unknown"),
            ({"action": None}, "Unknown"),
            ({"priority": None}, "Unknown"),
            ({"dnsResolverDomainLists": [], "managedDomainLists": ["AzureDnsThreatIntel"]}, "Fail"),
        ],
    )
    def test_passes_only_with_an_enabled_rule_that_blocks_every_name(
        self, properties: dict[str, Any], verdict: str
    ) -> None:
        assert only(served_cluster().change(BLOCK, **properties), "dns-security-policy").verdict == verdict

    @pytest.mark.parametrize(
        ("domains", "verdict"),
        [
            (["."], "Fail"),
            (["com."], "Fail"),
            (["*.example.com."], "Unknown"),
            (["example.com.", "example.org."], "Pass"),
        ],
    )
    def test_what_is_allowed_above_must_be_narrow(self, domains: list[str], verdict: str) -> None:
        azure = served_cluster().change(f"{LISTS}/ours", domains=domains)
        assert only(azure, "dns-security-policy").verdict == verdict

    def test_a_catch_all_in_any_other_form_is_unknown(self) -> None:
        assert only(served_cluster().change(f"{LISTS}/all", domains=["*"]), "dns-security-policy").verdict == "Unknown"

    def test_a_catch_all_behind_a_url_is_unknown(self) -> None:
        azure = served_cluster().change(f"{LISTS}/all", domains=[], domainsUrl=LARGE_LIST)
        assert only(azure, "dns-security-policy").verdict == "Unknown"

    def test_an_allow_below_the_block_does_not_matter(self) -> None:
        azure = served_cluster().put(f"{DNS_POLICY}/dnsSecurityRules/late", dns_rule(65100, "Allow", f"{LISTS}/late"))
        azure.put(f"{LISTS}/late", {"domains": ["."]})
        assert only(azure, "dns-security-policy").verdict is Verdict.PASS

    def test_of_equal_meaning_whatever_the_order_of_the_list(self) -> None:
        azure = served_cluster()
        azure.bodies = dict(reversed(azure.bodies.items()))
        assert only(azure, "dns-security-policy").verdict is Verdict.PASS

    @pytest.mark.parametrize("target", [f"{LISTS}/all", f"{LISTS}/ours", DNS_POLICY])
    def test_what_cannot_be_read_of_it_is_unknown(self, target: str) -> None:
        assert only(served_cluster().refuse(target), "dns-security-policy").verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize(
        "answer",
        [
            {},
            {"value": [], "nextLink": "https://more"},
            {"value": [{"id": DNS_POLICY}, {"id": f"{NETWORK}/dnsResolverPolicies/second"}]},
        ],
    )
    def test_an_answer_that_is_not_whole_or_not_clear_is_unknown(self, answer: dict[str, Any]) -> None:
        azure = served_cluster().act(VNET, "listDnsResolverPolicies", answer)
        assert only(azure, "dns-security-policy").verdict is Verdict.UNKNOWN
        azure = served_cluster().refuse(VNET, verb="post")
        assert only(azure, "dns-security-policy").verdict is Verdict.UNKNOWN


ALLOWED = f"{LISTS}/ours"


class TestAllowedDomains:
    @pytest.mark.parametrize(
        ("domains", "verdict"),
        [
            (["privatelink.azurecr.io."], "Pass"),
            (["a.privatelink.azurecr.io"], "Pass"),
            (["AzureCR.io."], "Pass"),
            (["aireg.azurecr.io."], "Pass"),
            (["westeurope.azmk8s.io.", "privatelink.westeurope.azmk8s.io."], "Pass"),
            (["internal.cloudapp.net."], "Pass"),
            ([], "Pass"),
            (["attacker.example."], "Fail"),
            (["privatelink.azurecr.io.", "attacker.example."], "Fail"),
            (["evilazurecr.io."], "Fail"),
            (["azmk8s.io."], "Fail"),
            (["northeurope.azmk8s.io."], "Fail"),
            (["file.core.windows.net."], "Fail"),
            (["windows.net."], "Fail"),
            (["trafficmanager.net."], "Fail"),
            (["cloudapp.net."], "Fail"),
        ],
    )
    def test_only_the_clusters_own_names_and_those_below_may_be_allowed(self, domains: list[str], verdict: str) -> None:
        azure = _in_west_europe().change(ALLOWED, domains=domains)
        finding = only(azure, "dns-allowed-domains")
        assert (finding.verdict, finding.severity, finding.resource) == (verdict, Severity.HIGH, ALLOWED)

    @pytest.mark.parametrize("domains", [[], None, ["internal.cloudapp.net"]])
    def test_a_large_list_which_azure_keeps_behind_a_url_is_not_seen(self, domains: list[str] | None) -> None:
        azure = _in_west_europe().change(ALLOWED, domains=domains, domainsUrl=LARGE_LIST)
        assert only(azure, "dns-allowed-domains").verdict is Verdict.UNKNOWN

    def test_fails_with_the_way_drawn(self) -> None:
        finding = only(served_cluster().change(ALLOWED, domains=["attacker.example."]), "dns-allowed-domains")
        assert finding.path_texts == ("pod -> platform dns -> servers of attacker.example -> internet",)
        assert "every name below" in finding.message
        assert f"--resource-group {ALLOWED.split('/')[4]} --name ours" in " ".join(finding.remedy.split())
        assert finding.evidence

    def test_an_alert_lets_through_as_an_allow_does(self) -> None:
        azure = served_cluster().change(ALLOWED, domains=["attacker.example."])
        azure.change(ALLOW, action={"actionType": "Alert"})
        assert only(azure, "dns-allowed-domains").verdict is Verdict.FAIL

    @pytest.mark.parametrize(
        ("allowed", "verdict"),
        [("attacker.example", "Pass"), ("example", "Pass"), ("x.attacker.example", "Fail")],
    )
    def test_the_policy_file_may_name_a_domain(self, allowed: str, verdict: str) -> None:
        azure = served_cluster().change(ALLOWED, domains=["attacker.example."])
        assert only(azure, "dns-allowed-domains", Policy(allowed_dns_domains=(allowed,))).verdict == verdict

    def test_a_zone_that_is_linked_to_another_network_makes_no_name_our_own(self) -> None:
        azure = served_cluster().change(ZONE_LINK, virtualNetwork={"id": f"{NETWORK}/virtualNetworks/x"})
        assert only(azure, "dns-allowed-domains").verdict is Verdict.FAIL

    @pytest.mark.parametrize(
        ("zone", "policy", "verdict"),
        [
            ("privatelink.stranger.example", "NxDomainRedirect", "Fail"),
            ("privatelink.stranger.example", "OfTomorrow", "Fail"),
            ("privatelink.stranger.example", "Default", "Pass"),
            ("privatelink.stranger.example", None, "Pass"),
            ("privatelink.file.core.windows.net", "NxDomainRedirect", "Pass"),
        ],
    )
    def test_a_zone_whose_unknown_names_are_asked_in_public_is_our_own_only_where_azure_answers_them(
        self, zone: str, policy: str | None, verdict: str
    ) -> None:
        home = f"{NETWORK}/privateDnsZones/{zone}"
        azure = served_cluster().put(home, {"numberOfVirtualNetworkLinks": 1})
        azure.put(f"{home}/virtualNetworkLinks/one", {"virtualNetwork": {"id": VNET}, "resolutionPolicy": policy})
        azure.change(ALLOWED, domains=[f"{zone}."])
        assert only(azure, "dns-allowed-domains").verdict == verdict

    def test_zones_that_cannot_be_listed_leave_it_open(self) -> None:
        azure = served_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/privateDnsZones")
        assert only(azure, "dns-allowed-domains").verdict is Verdict.UNKNOWN
        azure.change(ALLOWED, domains=["internal.cloudapp.net"])
        assert only(azure, "dns-allowed-domains").verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize("target", [ALLOWED, DNS_POLICY, f"{LISTS}/all"])
    def test_what_cannot_be_read_of_the_policy_is_unknown(self, target: str) -> None:
        assert only(served_cluster().refuse(target), "dns-allowed-domains").verdict is Verdict.UNKNOWN

    def test_what_a_rule_below_the_block_allows_does_not_matter(self) -> None:
        azure = served_cluster().put(f"{DNS_POLICY}/dnsSecurityRules/late", dns_rule(65100, "Allow", f"{LISTS}/late"))
        azure.put(f"{LISTS}/late", {"domains": ["attacker.example."]})
        assert verdicts(azure, "dns-allowed-domains") == {ALLOWED.lower(): "Pass"}

    @pytest.mark.parametrize(("action", "verdict"), [("Allow", "Fail"), ("Alert", "Fail"), ("Block", "Pass")])
    def test_a_list_of_azures_is_no_name_of_ours(self, action: str, verdict: str) -> None:
        domain_lists = {"dnsResolverDomainLists": [], "managedDomainLists": ["AzureDnsThreatIntel"]}
        azure = served_cluster().change(ALLOW, action={"actionType": action}, **domain_lists)
        finding = only(azure, "dns-allowed-domains")
        assert (finding.verdict, finding.severity) == (verdict, Severity.HIGH)

    def test_without_a_policy_every_name_is_answered_in_any_case(self) -> None:
        azure = served_cluster()
        azure.act(VNET, "listDnsResolverPolicies", {"value": []})
        assert verdicts(azure, "dns-allowed-domains") == {VNET.lower(): "NotApplicable"}


def _in_west_europe() -> FakeServices:
    azure = served_cluster()
    azure.bodies[CLUSTER.lower()]["location"] = "West Europe"
    return azure


IN_HUB = "10.9.1.4"


class TestServersInTheHub:
    """What is linked to the network that holds the server decides too."""

    def _azure(self) -> FakeServices:
        azure = peer(_served_by(IN_HUB), remoteAddressSpace={"addressPrefixes": ["10.9.0.0/16"]})
        azure.act(HUB, "listDnsResolverPolicies", {"value": [{"id": DNS_POLICY}]})
        azure.act(HUB, "listDnsForwardingRulesets", {"value": []})
        return azure

    def test_a_hub_with_a_policy_and_no_ruleset_passes(self) -> None:
        for check in ("dns-security-policy", "dns-forwarding-ruleset"):
            assert verdicts(self._azure(), check) == {VNET.lower(): "Pass", HUB.lower(): "Pass"}

    def test_a_hub_without_a_policy_fails(self) -> None:
        azure = self._azure()
        azure.act(HUB, "listDnsResolverPolicies", {"value": []})
        assert verdicts(azure, "dns-security-policy") == {VNET.lower(): "Pass", HUB.lower(): "Fail"}

    def test_a_ruleset_of_the_hub_that_forwards_outside_fails(self) -> None:
        azure = self._azure()
        azure.act(HUB, "listDnsForwardingRulesets", {"value": [{"id": RULESET}]})
        rule_properties = {
            "domainName": ".",
            "targetDnsServers": [{"ipAddress": "9.9.9.9"}],
            "forwardingRuleState": "Enabled",
        }
        azure.put(f"{RULESET}/forwardingRules/one", rule_properties)
        assert verdicts(azure, "dns-forwarding-ruleset")[RULESET.lower()] == "Fail"

    def test_a_hub_that_cannot_be_asked_is_unknown_as_bad_as_the_check_is(self) -> None:
        azure = self._azure().refuse(HUB, verb="post")
        for check, severity in (("dns-security-policy", Severity.MEDIUM), ("dns-forwarding-ruleset", Severity.HIGH)):
            finding = azure.findings(check)[HUB.lower()]
            assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, severity)

    def test_a_server_in_no_network_in_reach_is_unknown_at_medium(self) -> None:
        finding = only(_served_by("192.168.7.7"), "dns-security-policy")
        assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, Severity.MEDIUM)
        assert "192.168.7.7" in finding.message

    def test_a_server_in_the_network_itself_adds_nothing(self) -> None:
        assert verdicts(_served_by("10.0.7.4"), "dns-security-policy") == {VNET.lower(): "Pass"}


def _forwarding(*addresses: str | None, **rest: Any) -> FakeServices:
    azure = served_cluster()
    azure.act(VNET, "listDnsForwardingRulesets", {"value": [{"id": RULESET}]})
    servers = [{"ipAddress": address, "port": 53} for address in addresses]
    fields = {"domainName": "site.", "targetDnsServers": servers, "forwardingRuleState": "Enabled"}
    azure.put(f"{RULESET}/forwardingRules/one", {**fields, **rest})
    return azure


class TestForwarding:
    @pytest.mark.parametrize(
        ("addresses", "fields", "verdict"),
        [
            (("10.1.2.3",), {}, "Unknown"),
            (("10.1.2.3", "9.9.9.9"), {}, "Fail"),
            (("9.9.9.9",), {"forwardingRuleState": "Disabled"}, "Pass"),
            (("9.9.9.9",), {"forwardingRuleState": "Odd"}, "Fail"),
            (("not an address",), {}, "Fail"),
            (("2620:fe::fe",), {}, "Fail"),
            ((), {}, "Unknown"),
        ],
    )
    def test_fails_when_names_go_to_a_public_server(
        self, addresses: tuple[str, ...], fields: dict[str, Any], verdict: str
    ) -> None:
        assert verdicts(_forwarding(*addresses, **fields), "dns-forwarding-ruleset") == {RULESET.lower(): verdict}

    def test_a_server_on_the_list_passes(self) -> None:
        listed = Policy(allowed_dns_servers=("10.1.2.3",))
        assert verdicts(_forwarding("10.1.2.3"), "dns-forwarding-ruleset", listed) == {RULESET.lower(): "Pass"}

    def test_what_cannot_be_read_is_unknown(self) -> None:
        azure = _forwarding("10.1.2.3").refuse(RULESET)
        assert verdicts(azure, "dns-forwarding-ruleset") == {RULESET.lower(): "Unknown"}
        for change in ({}, {"value": [], "nextLink": "https://more"}):
            azure = served_cluster()
            azure.act(VNET, "listDnsForwardingRulesets", change)
            assert verdicts(azure, "dns-forwarding-ruleset") == {VNET.lower(): "Unknown"}
        refused = served_cluster().refuse(VNET, verb="post")
        assert verdicts(refused, "dns-forwarding-ruleset") == {VNET.lower(): "Unknown"}


class TestPrivateZones:
    @pytest.mark.parametrize(
        ("policy", "verdict"),
        [("Default", "Pass"), (None, "Pass"), ("NxDomainRedirect", "Fail"), ("Odd", "Unknown")],
    )
    def test_fails_when_a_link_falls_through(self, policy: str | None, verdict: str) -> None:
        azure = served_cluster().change(ZONE_LINK, resolutionPolicy=policy)
        assert verdicts(azure, "privdns-fallthrough") == {ZONE_LINK.lower(): verdict}

    def test_links_of_other_networks_do_not_matter(self) -> None:
        azure = served_cluster()
        azure.change(
            ZONE_LINK, virtualNetwork={"id": f"{NETWORK}/virtualNetworks/x"}, resolutionPolicy="NxDomainRedirect"
        )
        assert verdicts(azure, "privdns-fallthrough") == {VNET.lower(): "Pass"}

    def test_a_zone_that_counts_more_links_than_the_list_shows_is_unknown(self) -> None:
        zone = ZONE_LINK.rpartition("/virtualNetworkLinks/")[0]
        azure = served_cluster().change(zone, numberOfVirtualNetworkLinks=2)
        assert verdicts(azure, "privdns-fallthrough")[VNET.lower()] == "Unknown"

    def test_what_cannot_be_read_is_unknown(self) -> None:
        zone = ZONE_LINK.rpartition("/virtualNetworkLinks/")[0]
        for target in (SUBSCRIPTION, zone):
            azure = served_cluster().refuse(target, verb="list")
            assert verdicts(azure, "privdns-fallthrough")[VNET.lower()] == "Unknown"
        assert verdicts(served_cluster().drop(ZONE_LINK, "virtualNetwork"), "privdns-fallthrough") == {
            ZONE_LINK.lower(): "Unknown"
        }
