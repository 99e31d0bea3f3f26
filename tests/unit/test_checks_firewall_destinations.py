"""What tags, hosts and addresses in the rules of the declared firewall let out, one by one and together."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.model.findings import Finding
from tests.audit_services import FakeServices
from tests.firewall_estates import BASE, FILTERED, FIREWALL, IP_GROUP, POLICY_ID, collection_of, filtered

APPLICATION = "ApplicationRule"
OWN = FILTERED.model_copy(update={"allowed_dns_domains": ("bank.example",)})


def _judged(azure: FakeServices, policy: Any = FILTERED) -> Finding:
    return azure.findings("firewall-in-path", policy)[FIREWALL.lower()]


def _of(fields: dict[str, Any], policy: Any = FILTERED) -> str:
    return _judged(filtered(fields), policy).verdict.value


class TestTags:
    @pytest.mark.parametrize(
        ("tag", "verdict"),
        [
            ("WindowsUpdate", "Pass"),
            ("windowsdiagnostics", "Pass"),
            ("MicrosoftActiveProtectionService", "Pass"),
            ("Office365.SharePoint.Optimize", "Fail"),
            ("Microsoft365.Exchange.Default.Required", "Fail"),
            ("WindowsVirtualDesktop", "Fail"),
            ("Windows365", "Fail"),
            ("AzureBackup", "Fail"),
            ("AzureHDInsight", "Fail"),
            ("HDInsight", "Fail"),
            ("AppServiceEnvironment", "Fail"),
            # It holds *.ods.opinsights.azure.com, which takes logs for any workspace.
            ("AzureKubernetesService", "Fail"),
            ("MicrosoftIntune", "Unknown"),
            ("citrixHdxPlusForWindows365", "Unknown"),
            ("ContosoTomorrow", "Unknown"),
            ("WindowsUpdate.Contoso", "Unknown"),
            ("", "Unknown"),
        ],
    )
    def test_fqdn_tags_are_judged_as_service_tags_are(self, tag: str, verdict: str) -> None:
        assert _of({"ruleType": APPLICATION, "fqdnTags": [tag]}) == verdict

    def test_one_unknown_tag_beside_a_known_one_counts(self) -> None:
        assert _of({"ruleType": APPLICATION, "fqdnTags": ["WindowsUpdate", "Contoso"]}) == "Unknown"

    @pytest.mark.parametrize(
        ("tag", "verdict"),
        [
            ("MicrosoftContainerRegistry.SwedenCentral", "Pass"),
            ("AzureFrontDoor.FirstParty", "Pass"),
            ("AzureFrontDoor.FirstParty.SwedenCentral", "Fail"),
            ("Storage.SwedenCentral", "Fail"),
            ("Microsoft365.Exchange.Optimize", "Fail"),
        ],
    )
    def test_service_tags_may_have_a_region(self, tag: str, verdict: str) -> None:
        assert _of({"destinationAddresses": [tag]}) == verdict


HOSTS = [
    ("mirror.example", "Pass"),
    ("MIRROR.Example.", "Pass"),
    ("weights.blob.core.windows.net", "Unknown"),
    ("*.data.mcr.microsoft.com", "Pass"),
    ("*.DATA.mcr.microsoft.com.", "Pass"),
    ("*.data.mcr.azure.cn", "Pass"),
    ("*.dl.delivery.mp.microsoft.com", "Pass"),
    ("*", "Fail"),
    ("*.", "Fail"),
    ("**", "Fail"),
    ("*.*", "Fail"),
    ("*.com", "Fail"),
    ("*.COM.", "Fail"),
    ("*com", "Fail"),
    ("*.contoso.*", "Fail"),
    ("*.microsoft.com", "Fail"),
    ("*.Blob.core.windows.net.", "Fail"),
    ("*indows.net", "Fail"),
    ("*b.core.windows.net", "Fail"),
    ("umsa*.blob.core.windows.net", "Fail"),
    ("md-*.blob.storage.azure.net", "Fail"),
    ("*.azuredatabricks.net", "Fail"),
    ("*.logic.azure.com", "Fail"),
    ("*.kusto.windows.net", "Fail"),
    ("*.azmk8s.io", "Fail"),
    ("*.sharepoint.com", "Fail"),
    ("*.s3.amazonaws.com", "Fail"),
    # Required by AKS, and the API servers of every tenant's clusters in that region.
    ("*.hcp.swedencentral.azmk8s.io", "Fail"),
    ("*.hcp.usgovvirginia.cx.aks.containerservice.azure.us", "Fail"),
    ("*.hcp.chinaeast2.cx.prod.service.azk8s.cn", "Fail"),
    ("*.azk8s.cn", "Fail"),
    ("*.ods.opinsights.azure.com", "Fail"),
    ("*.ingest.monitor.azure.com", "Fail"),
    ("*.monitoring.azure.com", "Fail"),
    ("*.in.applicationinsights.azure.com", "Fail"),
    ("*.bank.example", "Unknown"),
    ("*data.mcr.microsoft.com", "Unknown"),
    ("*.x*.data.mcr.microsoft.com", "Unknown"),
    ("www.contoso.*", "Unknown"),
    ("*.co.uk", "Unknown"),
    ("*.cloud.defender.microsoft.com", "Unknown"),
    ("com", "Unknown"),
    ("", "Unknown"),
    (".data.mcr.microsoft.com", "Unknown"),
    ("20.1.2.3", "Unknown"),
    ("0.0.0.0/0", "Unknown"),
    ("::", "Unknown"),
    ("mirror.example,evil.example", "Unknown"),
]


class TestHosts:
    @pytest.mark.parametrize(("host", "verdict"), HOSTS)
    @pytest.mark.parametrize("field", ["targetFqdns", "destinationFqdns", "targetUrls"])
    def test_a_wildcard_passes_where_one_owner_is_documented(self, field: str, host: str, verdict: str) -> None:
        kind = "NetworkRule" if field == "destinationFqdns" else APPLICATION
        assert _of({"ruleType": kind, field: [host]}) == verdict

    @pytest.mark.parametrize("terminates", [True, False])
    @pytest.mark.parametrize(
        ("url", "verdict"),
        [
            ("https://mirror.example/simple/*", "Pass"),
            ("mirror.example/*", "Pass"),
            ("HTTPS://*.Blob.core.windows.net/weights", "Fail"),
            ("*://*/x", "Fail"),
            ("*.contoso.example:443/x", "Unknown"),
            ("https://mirror.example@*.com/", "Fail"),
            ("https://mirror.example@evil.example/", "Unknown"),
        ],
    )
    def test_of_a_url_the_host_counts(self, url: str, verdict: str, terminates: bool) -> None:
        assert _of({"ruleType": APPLICATION, "targetUrls": [url], "terminateTLS": terminates}) == verdict

    @pytest.mark.parametrize(
        ("host", "verdict"),
        [
            ("*.bank.example", "Pass"),
            ("*.Mirror.bank.example.", "Pass"),
            ("*bank.example", "Unknown"),
            ("*.notbank.example", "Unknown"),
            ("*.example", "Fail"),
        ],
    )
    def test_the_policy_file_declares_domains_of_ones_own(self, host: str, verdict: str) -> None:
        assert _of({"ruleType": APPLICATION, "targetFqdns": [host]}, OWN) == verdict

    @pytest.mark.parametrize("domain", ["blob.core.windows.net", "windows.net", "z13.web.core.windows.net"])
    def test_a_shared_domain_cannot_be_declared(self, domain: str) -> None:
        declared = FILTERED.model_copy(update={"allowed_dns_domains": (domain,)})
        assert _of({"ruleType": APPLICATION, "targetFqdns": [f"*.{domain}"]}, declared) == "Fail"

    def test_the_message_names_the_key_of_the_policy_file(self) -> None:
        finding = _judged(filtered({"ruleType": APPLICATION, "targetFqdns": ["*.bank.example"]}))
        assert "c/r: host *.bank.example" in finding.message
        assert "`allowedDnsDomains`" in finding.message


EVERY_PREFIX = [f"{first}.0.0.0/8" for first in range(1, 224) if first not in (10, 127)]
HALF = ["20.0.0.0/9", "40.0.0.0/9"]
IPV6 = [f"2600:{second:x}::/33" for second in range(3)]


def _groups(*collections: dict[str, Any], base: tuple[dict[str, Any], ...] = ()) -> FakeServices:
    """One rule collection group per collection, in the policy and in its base policy."""
    azure = filtered({"destinationAddresses": ["10.0.0.0/16"]})
    for number, collection in enumerate(collections):
        azure.put(f"{POLICY_ID}/ruleCollectionGroups/g{number}", {"ruleCollections": [collection]})
    for number, collection in enumerate(base):
        azure.put(f"{BASE}/ruleCollectionGroups/b{number}", {"ruleCollections": [collection]})
    return azure


class TestAllAddressesTogether:
    def test_prefixes_of_a_rule_add_up(self) -> None:
        finding = _judged(filtered({"destinationAddresses": EVERY_PREFIX}))
        assert finding.verdict == "Fail"
        assert "c/r allow more public IPv4 addresses than a /8 together" in finding.message
        assert "--collection-name c --name r" in " ".join(finding.remedy.split())

    @pytest.mark.parametrize(
        ("addresses", "verdict"),
        [
            (HALF, "Pass"),
            ([*HALF, "20.1.2.3", "20.0.0.0/16"], "Pass"),
            ([*HALF, "10.0.0.0/8", "172.16.0.0/12", "fd00::/16"], "Unknown"),
            ([*HALF, "60.1.2.3"], "Fail"),
            (["20.0.0.0-20.255.255.255", "60.0.0.0-60.0.0.255"], "Fail"),
            (IPV6[:2], "Pass"),
            (IPV6, "Fail"),
            ([*IPV6, "20.1.2.3"], "Fail"),
            ([*HALF, "MicrosoftContainerRegistry", *IPV6[:2]], "Pass"),
            (["64:ff9b::/96"], "Fail"),
            (["64:ff9b::1400:0/104"], "Pass"),
            (["64:ff9b::1400:0/104", "60.1.2.3"], "Fail"),
        ],
    )
    def test_each_address_counts_once_and_each_version_for_itself(self, addresses: list[str], verdict: str) -> None:
        assert _of({"destinationAddresses": addresses}) == verdict

    def test_rules_of_a_collection_add_up(self) -> None:
        rules = [
            {"name": f"r{number}", "destinationAddresses": [prefix]} for number, prefix in enumerate(EVERY_PREFIX[:5])
        ]
        finding = _judged(_groups(collection_of(*rules)))
        assert finding.verdict == "Fail"
        assert "c/r0, c/r1, c/r2 and 2 more allow more" in finding.message

    def test_collections_groups_and_base_policies_add_up(self) -> None:
        first_half, other, small = ({"destinationAddresses": [prefix]} for prefix in (*HALF, "60.1.2.3"))
        assert _judged(_groups(collection_of(first_half), collection_of(other))).verdict == "Pass"
        assert _judged(_groups(collection_of(first_half), collection_of(other), collection_of(small))).verdict == "Fail"
        assert (
            _judged(_groups(collection_of(first_half), collection_of(other), base=(collection_of(small),))).verdict
            == "Fail"
        )

    def test_collections_that_deny_do_not_count(self) -> None:
        first_half, other, small = ({"destinationAddresses": [prefix]} for prefix in (*HALF, "60.1.2.3"))
        denied = collection_of(small, action={"type": "Deny"})
        assert _judged(_groups(collection_of(first_half), collection_of(other), denied)).verdict == "Pass"

    def test_ip_groups_count_with_the_addresses_of_the_rules(self) -> None:
        azure = filtered({"destinationAddresses": HALF, "destinationIpGroups": [IP_GROUP]})
        assert _judged(azure.put(IP_GROUP, {"ipAddresses": ["20.1.2.3"]})).verdict == "Pass"
        assert _judged(azure.put(IP_GROUP, {"ipAddresses": ["60.1.2.3"]})).verdict == "Fail"

    def test_classic_rules_count(self) -> None:
        azure = filtered({"destinationAddresses": HALF})
        rules = [{"name": "r", "destinationAddresses": ["60.1.2.3"]}]
        azure.change(
            FIREWALL,
            networkRuleCollections=[{"name": "old", "properties": {"action": {"type": "Allow"}, "rules": rules}}],
        )
        assert _judged(azure).verdict == "Fail"

    def test_declared_private_ranges_do_not_count(self) -> None:
        ours = FILTERED.model_copy(update={"additional_private_ranges": ("25.0.0.0/8", "26.0.0.0/8")})
        addresses = ["25.0.0.0/8", "26.0.0.0/8", "20.1.2.3"]
        assert _of({"destinationAddresses": addresses}) == "Fail"
        assert _of({"destinationAddresses": addresses}, ours) == "Unknown", "private, and in no network that was read"

    def test_an_entry_of_an_ip_group_that_is_no_address_is_unknown(self) -> None:
        azure = filtered({"destinationIpGroups": [IP_GROUP]}).put(IP_GROUP, {"ipAddresses": ["Storage"]})
        assert _judged(azure).verdict == "Unknown"
