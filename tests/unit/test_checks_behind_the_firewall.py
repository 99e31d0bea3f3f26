"""What rules of the declared firewall lead to: private networks, hosts of many tenants; and rules of other sources."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.audit.estate.azure.private_link_types import RELAYS
from hermetic.audit.policy.allowed_destinations import AllowedHost, AllowedPrivateDestination
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.behind_firewall import unused_entries
from hermetic.audit.rules.destinations import OwnHosts, Recipient, of_host
from hermetic.audit.rules.own_hosts import SERVICES, Service
from tests.audit_estates import GROUP, NETWORK, SUBSCRIPTION, VNET, route
from tests.audit_services import FakeServices, verdicts
from tests.firewall_estates import FILTERED, FIREWALL, IP_GROUP, POLICY_ID, UNACCEPTED, collection_of, filtered

SPOKE = f"{SUBSCRIPTION}/resourceGroups/spoke/providers/Microsoft.Network/virtualNetworks/spoke"
SPOKE_SUBNET = f"{SPOKE}/subnets/proxies"
HUB = f"{NETWORK}/virtualNetworks/hub"
WALL = f"{HUB}/subnets/AzureFirewallSubnet"
PROXY = f"{SUBSCRIPTION}/resourceGroups/spoke/providers/Microsoft.Network/networkInterfaces/proxy"
VAULT, HSM = (f"{GROUP}/providers/Microsoft.KeyVault/{name}" for name in ("vaults/aivault", "managedHSMs/aihsm"))
TABLE = tomllib.loads(files("hermetic.audit.rules").joinpath("tenant_hosts.toml").read_text("utf-8"))


def to(address: str, **fields: Any) -> FakeServices:
    """A hub with the declared firewall, whose one rule names this address, and a second spoke with a proxy."""
    azure = filtered({"destinationAddresses": [address], "sourceAddresses": ["10.0.0.0/16"], **fields})
    azure.change(
        FIREWALL,
        ipConfigurations=[
            {"name": "a", "properties": {"subnet": {"id": WALL}, "privateIPAddress": "10.9.0.4"}},
        ],
    )
    azure.put(HUB, {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}, "subnets": [{"id": WALL, "properties": {}}]})
    azure.put(WALL, {"addressPrefix": "10.9.0.0/26"})
    _peer(azure, VNET, HUB, "10.9.0.0/16")
    _peer(azure, HUB, SPOKE, "10.77.0.0/16")
    azure.put(
        SPOKE,
        {"addressSpace": {"addressPrefixes": ["10.77.0.0/16"]}, "subnets": [{"id": SPOKE_SUBNET, "properties": {}}]},
    )
    azure.put(SPOKE_SUBNET, {"addressPrefix": "10.77.4.0/24", "defaultOutboundAccess": False})
    return azure


def _peer(azure: FakeServices, near: str, far: str, prefix: str, state: str = "Connected") -> None:
    azure.put(
        f"{near}/virtualNetworkPeerings/to-{far.rpartition('/')[2]}",
        {
            "peeringState": state,
            "remoteVirtualNetwork": {"id": far},
            "remoteAddressSpace": {"addressPrefixes": [prefix]},
            "allowVirtualNetworkAccess": True,
        },
    )


def with_proxy(azure: FakeServices, address: str = "10.77.4.4") -> FakeServices:
    configuration = {
        "name": "a",
        "properties": {
            "subnet": {"id": SPOKE_SUBNET},
            "privateIPAddress": address,
            "publicIPAddress": {"id": f"{NETWORK}/publicIPAddresses/p"},
        },
    }
    machine = {"id": f"{SUBSCRIPTION}/resourceGroups/spoke/providers/Microsoft.Compute/virtualMachines/proxy"}
    azure.put(PROXY, {"virtualMachine": machine, "ipConfigurations": [configuration]})
    return azure


class TestPrivateDestinations:
    def test_a_proxy_two_hops_away_fails_where_a_rule_leads_to_it(self) -> None:
        assert verdicts(with_proxy(to("10.77.4.4")), "vm-pivot", FILTERED)[PROXY.lower()] == "Fail"

    @pytest.mark.parametrize("address", ["10.77.4.0-10.77.4.9", "10.77.0.0/16", "10.0.0.0/8"])
    def test_a_wider_destination_leads_to_it_too(self, address: str) -> None:
        assert verdicts(with_proxy(to(address)), "vm-pivot", FILTERED)[PROXY.lower()] == "Fail"

    def test_a_translation_leads_to_it_too(self) -> None:
        azure = to("10.9.0.4", translatedAddress="10.77.4.4")
        group = f"{NETWORK}/firewallPolicies/p/ruleCollectionGroups/one"
        (collection,) = azure.bodies[group.lower()]["properties"]["ruleCollections"]
        collection |= {"ruleCollectionType": "FirewallPolicyNatRuleCollection", "action": {"type": "Dnat"}}
        assert verdicts(with_proxy(azure), "vm-pivot", FILTERED)[PROXY.lower()] == "Fail"

    def test_a_machine_that_no_rule_names_is_not_reached(self) -> None:
        assert PROXY.lower() not in verdicts(with_proxy(to("10.77.9.0/24")), "vm-pivot", FILTERED)

    def test_a_rule_of_other_sources_leads_nodes_nowhere(self) -> None:
        azure = with_proxy(to("10.77.4.4", sourceAddresses=["10.88.0.0/16"]))
        assert PROXY.lower() not in verdicts(azure, "vm-pivot", FILTERED)

    @pytest.mark.parametrize(
        ("address", "verdict"),
        [
            ("10.77.4.4", "Pass"),
            ("10.0.1.4", "Pass"),
            ("192.168.10.10", "Unknown"),
            ("192.168.10.1-192.168.10.9", "Unknown"),
            ("10.0.0.0/8", "Unknown"),
            ("100.64.0.0/16", "Unknown"),
            ("fd00:77::/64", "Unknown"),
        ],
    )
    def test_a_destination_in_no_network_that_was_read_is_unknown(self, address: str, verdict: str) -> None:
        finding = to(address).findings("firewall-in-path", FILTERED)[FIREWALL.lower()]
        assert finding.verdict.value == verdict
        assert finding.severity == ("critical" if verdict == "Pass" else "high")

    def test_an_ip_group_of_destinations_is_read(self) -> None:
        azure = to("10.0.1.4", destinationIpGroups=[IP_GROUP]).put(IP_GROUP, {"ipAddresses": ["192.168.10.10"]})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Unknown"

    def test_the_policy_file_accepts_a_prefix_with_its_reason(self) -> None:
        entry = AllowedPrivateDestination(prefix="192.168.10.0/24", reason="printers without another route")
        policy = FILTERED.model_copy(update={"allowed_private_destinations": (entry,)})
        finding = to("192.168.10.10").findings("firewall-in-path", policy)[FIREWALL.lower()]
        assert finding.verdict.value == "Pass"
        assert "printers without another route" in finding.message
        assert verdicts(to("192.168.0.0/16"), "firewall-in-path", policy)[FIREWALL.lower()] == "Unknown"

    def test_a_disconnected_peering_leads_nowhere_and_the_destination_is_unknown(self) -> None:
        azure = to("10.77.4.4")
        azure.change(f"{HUB}/virtualNetworkPeerings/to-spoke", peeringState="Disconnected")
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Unknown"

    def test_a_network_that_cannot_be_read_is_unknown(self) -> None:
        azure = to("10.77.4.4")
        del azure.bodies[SPOKE.lower()]
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Unknown"

    @pytest.mark.parametrize(("address", "verdict"), [("192.168.10.10", "Unknown"), ("10.77.4.4", "Pass")])
    def test_a_route_to_the_firewall_is_evaluated_as_its_rules_are(self, address: str, verdict: str) -> None:
        azure, table = to(address), f"{NETWORK}/routeTables/sealed"
        azure.change(table, routes=[route("x", f"{address}/32", "VirtualAppliance", "10.9.0.4")])
        assert verdicts(azure, "route-split-default", FILTERED)[table.lower()] == verdict


def _type(service: Service) -> str:
    return service.kind.TYPE


class TestHosts:
    def test_every_listed_host_of_many_tenants_fails(self, record_property: Callable[[str, object], None]) -> None:
        for entry in TABLE["of_many_tenants"]:
            assert entry["source"]
            for host in entry["hosts"]:
                assert of_host(host, OwnHosts()) is Recipient.OF_MANY_TENANTS, host
                assert of_host(f"HTTPS://{host.upper()}./path", OwnHosts()) is Recipient.OF_MANY_TENANTS, host
                record_property("hosts of many tenants that fail as a rule's host", 1)

    def test_every_listed_host_of_one_owner_is_named_and_names_below_it_are_not(
        self, record_property: Callable[[str, object], None]
    ) -> None:
        for entry in TABLE["of_one_owner"]:
            assert entry["source"]
            for host in entry["hosts"]:
                assert of_host(host, OwnHosts()) is Recipient.NAMED, host
                is_below_a_domain = host.endswith(".windowsupdate.com")  # all names below it are Microsoft's
                assert is_below_a_domain or of_host(f"x.{host}", OwnHosts()) is not Recipient.NAMED, host
                record_property("hosts of one owner that pass as a rule's host, each from a document of Azure", 1)

    @pytest.mark.parametrize(
        "host",
        ["archive.ubuntu.com", "motd.ubuntu.com", "www.microsoft.com", "download.microsoft.com", "time.windows.com"],
    )
    def test_a_host_that_no_document_of_azure_names_is_unknown(self, host: str) -> None:
        assert of_host(host, OwnHosts()) is Recipient.UNKNOWN

    @pytest.mark.parametrize(
        ("host", "recipient"),
        [
            ("gist.github.com", Recipient.OF_MANY_TENANTS),
            ("westeurope.management.azure.com", Recipient.OF_MANY_TENANTS),
            ("notgithub.com", Recipient.UNKNOWN),
            ("contoso.azurecr.io", Recipient.UNKNOWN),
            ("bucket.s3.eu-west-1.amazonaws.com", Recipient.UNKNOWN),
            ("vault.contoso.example", Recipient.UNKNOWN),
            ("evil.acs-mirror.azureedge.net", Recipient.UNKNOWN),
            ("westeurope.data.mcr.microsoft.com", Recipient.NAMED),
        ],
    )
    def test_the_owner_of_a_host_decides(self, host: str, recipient: Recipient) -> None:
        assert of_host(host, OwnHosts()) is recipient

    @pytest.mark.parametrize(
        ("host", "verdict"),
        [
            ("aistore.blob.core.windows.net", "Pass"),
            ("AISTORE.dfs.core.windows.net.", "Pass"),
            ("aistore.evil.blob.core.windows.net", "Unknown"),
            ("other.blob.core.windows.net", "Unknown"),
            ("aireg.azurecr.io", "Pass"),
            ("aireg.westeurope.data.azurecr.io", "Pass"),
            ("airegx.azurecr.io", "Unknown"),
            ("aireg.westeurope.evil.azurecr.io", "Unknown"),
            ("aivault.vault.azure.net", "Pass"),
            ("AIVAULT.Vault.Azure.Net.", "Pass"),
            ("aivault.x.vault.azure.net", "Unknown"),
            ("other.vault.azure.net", "Unknown"),
            ("aivault.managedhsm.azure.net", "Unknown"),
            ("aihsm.managedhsm.azure.net", "Pass"),
        ],
    )
    @pytest.mark.parametrize("field", ["targetFqdns", "destinationFqdns", "targetUrls"])
    def test_an_instance_passes_where_a_list_of_ours_has_it(self, field: str, host: str, verdict: str) -> None:
        kind = "NetworkRule" if field == "destinationFqdns" else "ApplicationRule"
        azure = filtered({"ruleType": kind, field: [host]})
        azure.put(VAULT, {"publicNetworkAccess": "Disabled"})
        azure.put(HSM, {"publicNetworkAccess": "Disabled"})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == verdict

    @pytest.mark.parametrize("service", [relay for relay in SERVICES if relay.kind.TYPE.lower() in RELAYS], ids=_type)
    def test_an_instance_of_ours_that_passes_data_on_is_told_from_one_of_others(self, service: Service) -> None:
        for domain in service.domains:
            azure = filtered({"ruleType": "ApplicationRule", "targetFqdns": [f"ours{domain}", f"theirs{domain}"]})
            resource = f"{GROUP}/providers/{service.kind.TYPE}/ours"
            azure.put(resource, {"defaultHostName": f"ours{domain}", "customSubDomainName": "ours"})
            message = azure.findings("firewall-in-path", FILTERED)[FIREWALL.lower()].message
            assert f"host ours{domain} is of {resource}: {RELAYS[service.kind.TYPE.lower()]}" in message
            assert (
                f"host theirs{domain} is an instance of a service, and no list of our subscriptions has it" in message
            )
            assert "`allowedHosts`" in message

    @pytest.mark.parametrize("service", SERVICES, ids=_type)
    def test_a_list_that_cannot_be_read_leaves_the_host_unknown(self, service: Service) -> None:
        azure = filtered({"ruleType": "ApplicationRule", "targetFqdns": [f"ours{service.domains[0]}"]})
        for scope in (SUBSCRIPTION, GROUP):
            azure.refuse(scope, kind=service.kind.TYPE)
        finding = azure.findings("firewall-in-path", FILTERED)[FIREWALL.lower()]
        assert finding.verdict == "Unknown"
        assert "`allowedHosts`" in finding.message
        assert f"{SUBSCRIPTION}: Forbidden" in finding.message

    @pytest.mark.parametrize(
        ("host", "verdict"),
        [
            ("ours-a1b2.westeurope-01.azurewebsites.net", "Pass"),
            ("ours-a1b2.scm.westeurope-01.azurewebsites.net", "Pass"),
            ("ours.azurewebsites.net", "Unknown"),
        ],
    )
    def test_an_app_is_known_by_its_hosts_and_not_by_its_name(self, host: str, verdict: str) -> None:
        site = f"{GROUP}/providers/Microsoft.Web/sites/ours"
        azure = filtered({"ruleType": "ApplicationRule", "targetFqdns": [host]})
        azure.put(site, {"defaultHostName": "ours-a1b2.westeurope-01.azurewebsites.net"})
        policy = FILTERED.model_copy(update={"allowed_private_link_services": (site,)})
        assert verdicts(azure, "firewall-in-path", policy)[FIREWALL.lower()] == verdict

    def test_what_a_rule_names_of_ours_is_evaluated_as_what_a_private_endpoint_leads_to(self) -> None:
        hosts = ["second.blob.core.windows.net", "second.azurecr.io", "aivault.vault.azure.net"]
        azure = filtered({"ruleType": "ApplicationRule", "targetFqdns": hosts})
        account = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/second"
        registry = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/second"
        azure.put(account, {"publicNetworkAccess": "Enabled", "allowBlobPublicAccess": True})
        azure.put(registry, {"publicNetworkAccess": "Enabled", "loginServer": "second.azurecr.io"})
        azure.put(VAULT, {})
        for check, resource in (("storage-public", account), ("acr-public", registry), ("vault-public", VAULT)):
            assert verdicts(azure, check, FILTERED)[resource.lower()] == "Fail"
        for source in (account, registry, VAULT):
            azure.put(
                f"{source}/providers/Microsoft.EventGrid/eventSubscriptions/x",
                {"destination": {"endpointType": "WebHook", "endpointBaseUrl": "https://collect.example/"}},
            )
        assert list(verdicts(azure, "event-foreign-sink", FILTERED).values()).count("Fail") == 3

    def test_the_policy_file_accepts_one_host_with_its_reason(self) -> None:
        entry = AllowedHost(host="Management.Azure.com.", reason="the cluster's identity has no right elsewhere")
        policy = FILTERED.model_copy(update={"allowed_hosts": (entry,)})
        for host, verdict in (("management.azure.com", "Pass"), ("x.management.azure.com", "Fail")):
            azure = filtered({"ruleType": "ApplicationRule", "targetFqdns": [host]})
            assert verdicts(azure, "firewall-in-path", policy)[FIREWALL.lower()] == verdict


def test_an_accepted_entry_that_no_rule_names_is_reported() -> None:
    policy = Policy.model_validate(
        {
            "profile": "filtered",
            "firewall": FIREWALL,
            "allowedHosts": [{"host": "old.example", "reason": "x"}],
            "allowedPrivateDestinations": [{"prefix": "10.90.0.0/16", "reason": "x"}],
        }
    )
    estate = to("10.0.1.4").settled(lambda candidate_estate: list(unused_entries(candidate_estate, policy)))
    first, second = unused_entries(estate, policy)
    assert "old.example" in first
    assert "10.90.0.0/16" in second


class TestSources:
    @pytest.mark.parametrize(
        ("sources", "verdict"),
        [
            (["10.88.0.0/16"], "Pass"),
            (["10.88.0.1-10.88.0.9"], "Pass"),
            (["10.88.0.0/16", "10.0.1.4"], "Fail"),
            (["10.0.0.0/8"], "Fail"),
            (["*"], "Fail"),
            (["0.0.0.0/0"], "Fail"),
            ([], "Fail"),
            (["VirtualNetwork"], "Fail"),
            (["64:ff9b::/96"], "Fail"),
        ],
    )
    def test_a_rule_counts_unless_all_sources_are_prefixes_of_others(self, sources: list[str], verdict: str) -> None:
        azure = filtered({"destinationAddresses": ["*"], "sourceAddresses": sources})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == verdict

    @pytest.mark.parametrize(
        ("addresses", "verdict"), [(["10.88.0.0/16"], "Pass"), (["10.0.1.0/24"], "Fail"), ([], "Fail"), (None, "Fail")]
    )
    def test_an_ip_group_of_sources_is_read(self, addresses: list[str] | None, verdict: str) -> None:
        azure = filtered({"destinationAddresses": ["*"], "sourceIpGroups": [IP_GROUP]})
        if addresses is not None:
            azure.put(IP_GROUP, {"ipAddresses": addresses})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == verdict

    def test_an_appliance_on_the_way_may_replace_the_source(self) -> None:
        azure = filtered({"destinationAddresses": ["*"], "sourceAddresses": ["10.88.0.0/16"]})
        hop = route("x", "10.99.0.0/16", "VirtualAppliance", "10.0.1.9")
        azure.change(f"{NETWORK}/routeTables/sealed", routes=[hop])
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Fail"

    def test_the_remedy_keeps_a_rule_that_others_need(self) -> None:
        azure = filtered({"destinationAddresses": ["*"], "sourceAddresses": ["10.0.1.0/24", "10.88.0.0/16"]})
        remedy = azure.findings("firewall-in-path", FILTERED)[FIREWALL.lower()].remedy
        assert "rule remove" not in remedy
        assert "keep the others" in " ".join(remedy.split())


@pytest.mark.parametrize(
    "entry",
    [
        {"allowedHosts": [{"host": "*.contoso.example", "reason": "x"}]},
        {"allowedHosts": [{"host": "10.1.2.3", "reason": "x"}]},
        {"allowedHosts": [{"host": "a.example", "reason": " "}]},
        {"allowedHosts": [{"host": "a.example"}]},
        {"allowedPrivateDestinations": [{"prefix": "20.1.2.0/24", "reason": "x"}]},
        {"allowedPrivateDestinations": [{"prefix": "0.0.0.0/0", "reason": "x"}]},
        {"allowedPrivateDestinations": [{"prefix": "10.0.0.1/8", "reason": "x"}]},
    ],
)
def test_an_entry_of_the_policy_file_that_accepts_too_much_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate(entry)


class TestOddRules:
    """A value that cannot be read must not hide what other rules show."""

    @pytest.mark.parametrize(
        "damaged",
        [
            {"destinationAddresses": 5},
            {"destinationAddresses": [None]},
            {"sourceAddresses": {"a": 1}, "destinationAddresses": ["10.0.1.4"]},
            {"name": 7, "destinationAddresses": ["10.0.1.4"]},
            {"targetFqdns": [["x"]]},
        ],
    )
    def test_a_damaged_rule_hides_no_wide_one(self, damaged: dict[str, Any]) -> None:
        azure = filtered({"destinationAddresses": ["10.0.1.4"]})
        wide = collection_of(damaged, {"destinationAddresses": ["*"]})
        azure.put(f"{POLICY_ID}/ruleCollectionGroups/two", {"ruleCollections": [wide]})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Fail"
        named = collection_of(damaged, {"destinationAddresses": ["10.0.1.5"]})
        azure.put(f"{POLICY_ID}/ruleCollectionGroups/two", {"ruleCollections": [named]})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Unknown"

    @pytest.mark.parametrize("odd", [{"action": 5}, {"action": {"type": 5}}, {"rules": "x"}, {"ruleCollectionType": 1}])
    def test_a_damaged_collection_hides_no_wide_rule_of_another(self, odd: dict[str, Any]) -> None:
        azure = filtered({"destinationAddresses": ["*"]})
        damaged = collection_of({"destinationAddresses": ["10.0.1.4"]}, **odd)
        azure.put(f"{POLICY_ID}/ruleCollectionGroups/two", {"ruleCollections": [damaged]})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Fail"
        azure = filtered({"destinationAddresses": ["10.0.1.4"]})
        azure.put(f"{POLICY_ID}/ruleCollectionGroups/two", {"ruleCollections": [damaged]})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Unknown"

    @pytest.mark.parametrize("field", ["destinationIpGroups", "sourceIpGroups"])
    def test_a_damaged_ip_group_hides_no_wide_rule(self, field: str) -> None:
        azure = filtered({"destinationAddresses": ["10.0.1.4"], field: [IP_GROUP]})
        azure.put(IP_GROUP, {"ipAddresses": 5})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Unknown"
        wide = collection_of({"destinationAddresses": ["*"]})
        azure.put(f"{POLICY_ID}/ruleCollectionGroups/two", {"ruleCollections": [wide]})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Fail"

    def test_a_group_whose_collections_cannot_be_read_hides_no_wide_rule(self) -> None:
        azure = filtered({"destinationAddresses": ["*"]})
        azure.put(f"{POLICY_ID}/ruleCollectionGroups/two", {"ruleCollections": "x"})
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Fail"

    def test_what_a_rule_leads_to_is_followed_beside_a_damaged_rule(self) -> None:
        azure = with_proxy(to("10.77.4.4"))
        damaged = collection_of({"destinationAddresses": 5})
        azure.put(f"{POLICY_ID}/ruleCollectionGroups/two", {"ruleCollections": [damaged]})
        assert verdicts(azure, "vm-pivot", FILTERED)[PROXY.lower()] == "Fail"


class TestPublicAddresses:
    """An address has no owner in it: 140.82.121.4 is a host that serves any tenant, as its name is."""

    @pytest.mark.parametrize("field", ["destinationAddresses", "destinationIpGroups"])
    @pytest.mark.parametrize(
        ("address", "verdict"),
        [
            ("140.82.121.4", "Unknown"),
            ("140.82.121.0/24", "Unknown"),
            ("140.82.121.4-140.82.121.9", "Unknown"),
            ("64:ff9b::8c52:7904", "Unknown"),
            ("2606:50c0:8000::153", "Unknown"),
            ("20.1.2.3", "Pass"),
            ("20.255.255.255-21.0.0.0", "Unknown"),
            ("10.0.1.4", "Pass"),
        ],
    )
    def test_an_address_whose_owner_is_not_stated_is_unknown(self, field: str, address: str, verdict: str) -> None:
        named = [IP_GROUP] if field == "destinationIpGroups" else [address]
        azure = filtered({field: named}).put(IP_GROUP, {"ipAddresses": [address]})
        finding = azure.findings("firewall-in-path", FILTERED)[FIREWALL.lower()]
        assert finding.verdict.value == verdict
        if verdict == "Unknown":
            assert finding.severity.value == "high"
            assert "`allowedPublicDestinations`" in finding.message
        else:
            assert verdict == "Pass"

    def test_classic_rules_are_read_as_well(self) -> None:
        azure = filtered({"destinationAddresses": ["10.0.1.4"]})
        rule = {"name": "r", "destinationAddresses": ["140.82.121.4"]}
        azure.change(FIREWALL, networkRuleCollections=[{"name": "c", "action": {"type": "Allow"}, "rules": [rule]}])
        assert verdicts(azure, "firewall-in-path", FILTERED)[FIREWALL.lower()] == "Unknown"

    def test_a_public_address_of_a_network_that_was_read_is_inside(self) -> None:
        azure = to("33.0.4.4")
        azure.change(SPOKE, addressSpace={"addressPrefixes": ["33.0.0.0/16"]})
        _peer(azure, HUB, SPOKE, "33.0.0.0/16")
        assert verdicts(azure, "firewall-in-path", UNACCEPTED)[FIREWALL.lower()] == "Pass"
        azure.refuse(SPOKE)
        assert verdicts(azure, "firewall-in-path", UNACCEPTED)[FIREWALL.lower()] == "Unknown"
        near = filtered({"destinationAddresses": ["33.0.4.4"]})
        near.change(VNET, addressSpace={"addressPrefixes": ["10.0.0.0/16", "33.0.0.0/16"]})
        assert verdicts(near, "firewall-in-path", UNACCEPTED)[FIREWALL.lower()] == "Pass"

    def test_a_name_server_that_the_policy_lists_needs_no_second_entry(self) -> None:
        rule = {"destinationAddresses": ["9.9.9.9"], "destinationPorts": ["53"]}
        policy = UNACCEPTED.model_copy(update={"allowed_dns_servers": ("9.9.9.9",)})
        assert verdicts(filtered(rule), "firewall-in-path", policy)[FIREWALL.lower()] == "Pass"
        assert verdicts(filtered(rule), "firewall-in-path", UNACCEPTED)[FIREWALL.lower()] == "Unknown"

    def test_the_finding_repeats_the_reason(self) -> None:
        findings = filtered({"destinationAddresses": ["20.1.2.3"]}).findings("firewall-in-path", FILTERED)
        assert "prefix 20.0.0.0/8: ours" in findings[FIREWALL.lower()].message

    @pytest.mark.parametrize(
        "prefix", ["10.0.0.0/8", "0.0.0.0/0", "20.0.0.0/7", "20.0.0.1/8", "2600::/31", "fd00::/48"]
    )
    def test_an_entry_that_accepts_too_much_is_refused(self, prefix: str) -> None:
        with pytest.raises(ValidationError):
            Policy.model_validate({"allowedPublicDestinations": [{"prefix": prefix, "reason": "x"}]})
