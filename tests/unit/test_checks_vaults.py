"""Key vaults, perimeters of accounts, kinds behind private endpoints, and link services: who else is let in."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Severity
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import GROUP, NETWORK, NODE_GROUP, SUBSCRIPTION, VNET
from tests.audit_services import (
    ACCOUNT,
    OTHER_SUBSCRIPTION,
    FakeServices,
    add_endpoint,
    consumer,
    served_cluster,
    verdicts,
)

FOREIGN = f"{OTHER_SUBSCRIPTION}/resourceGroups/soc/providers"
FOREIGN_ACCOUNT = f"{FOREIGN}/Microsoft.Storage/storageAccounts/drop"
FOREIGN_WORKSPACE = f"{FOREIGN}/Microsoft.OperationalInsights/workspaces/logs"
WORKSPACE = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"
SCOPE = f"{GROUP}/providers/Microsoft.Insights/privateLinkScopes/monitor"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/secrets"
DISK = f"{NODE_GROUP}/providers/Microsoft.Compute/disks/pvc-1"
OUTSIDE = f"{SUBSCRIPTION}/resourceGroups/other/providers/Microsoft.Compute/virtualMachines/reader"
NODE = f"{NODE_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/nodes/virtualMachines/1"
OURS = Policy(own_subscriptions=(OTHER_SUBSCRIPTION,))
EVENTS = "providers/Microsoft.EventGrid/eventSubscriptions"


class TestVaults:
    def _vault(self, **properties: Any) -> FakeServices:
        azure = served_cluster()
        endpoint = add_endpoint(azure, f"{NETWORK}/privateEndpoints/vault", VAULT)
        return azure.put(VAULT, {"privateEndpointConnections": [consumer(endpoint)], **properties})  # type: ignore[return-value]

    @pytest.mark.parametrize(
        ("properties", "verdict", "severity"),
        [
            ({"publicNetworkAccess": "Disabled"}, "Pass", "high"),
            ({"publicNetworkAccess": "Enabled"}, "Fail", "high"),
            ({}, "Fail", "high"),
            ({"networkAcls": {"defaultAction": "Allow"}}, "Fail", "high"),
            ({"networkAcls": {"ipRules": []}}, "Fail", "high"),
            ({"networkAcls": {"defaultAction": "Deny", "ipRules": [{"value": "20.1.2.3"}]}}, "Fail", "medium"),
            ({"networkAcls": {"defaultAction": "Deny", "virtualNetworkRules": [{"id": VNET}]}}, "Fail", "medium"),
            ({"networkAcls": {"defaultAction": "Deny", "bypass": "AzureServices"}}, "Pass", "high"),
            ({"publicNetworkAccess": "SecuredByPerimeter"}, "Unknown", "high"),
            ({"publicNetworkAccess": 1}, "Unknown", "high"),
        ],
    )
    def test_who_is_let_in_decides(self, properties: dict[str, Any], verdict: str, severity: str) -> None:
        finding = self._vault(**properties).findings("vault-public")[VAULT.lower()]
        assert (finding.verdict.value, finding.severity) == (verdict, severity)

    def test_an_endpoint_of_others_at_the_vault_is_a_stranger(self) -> None:
        azure = self._vault(publicNetworkAccess="Disabled")
        assert verdicts(azure, "pe-stranger")[VAULT.lower()] == "Pass"
        theirs = consumer(f"{FOREIGN}/Microsoft.Network/privateEndpoints/p")
        azure.change(VAULT, privateEndpointConnections=[theirs])
        assert azure.findings("pe-stranger")[VAULT.lower()].severity is Severity.CRITICAL

    def test_a_vault_that_was_deleted_is_no_doubt(self) -> None:
        azure = self._vault().refuse(VAULT, UnreadReason.NOT_FOUND)
        assert verdicts(azure, "vault-public")[VAULT.lower()] == "NotApplicable"
        for check in ("pe-stranger", "diag-foreign-sink", "event-foreign-sink"):
            assert VAULT.lower() not in verdicts(azure, check)

    def test_a_vault_that_cannot_be_read_is_unknown(self) -> None:
        azure = self._vault(publicNetworkAccess="Disabled").refuse(VAULT, verb="get")
        assert verdicts(azure, "vault-public")[VAULT.lower()] == "Unknown"


OWN_SUBSCRIPTION = {"direction": "Inbound", "subscriptions": [{"id": SUBSCRIPTION}]}


FOREIGN_PERIMETER = f"{OTHER_SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Network/networkSecurityPerimeters/p"


class TestPerimeters:
    """Shape: Microsoft.Storage, NetworkSecurityPerimeterConfigurations_List."""

    PERIMETER = f"{NETWORK}/networkSecurityPerimeters/p"

    def _perimeter(self, *rules: Any, mode: str | None = "Enforced", member: Any = ACCOUNT) -> FakeServices:
        azure = served_cluster()
        azure.change(ACCOUNT, publicNetworkAccess="SecuredByPerimeter")
        perimeter = {
            "networkSecurityPerimeter": {"id": self.PERIMETER},
            "resourceAssociation": {"name": "a", "accessMode": mode},
            "profile": {"name": "p", "accessRules": [{"name": "r", "properties": rule} for rule in rules]},
        }
        azure.put(f"{ACCOUNT}/networkSecurityPerimeterConfigurations/p.a", perimeter)
        azure.put(f"{self.PERIMETER}/resourceAssociations/a", {"privateLinkResource": {"id": member}})
        return azure

    @pytest.mark.parametrize(
        ("rules", "verdict"),
        [
            ((), "Pass"),
            ((OWN_SUBSCRIPTION,), "Pass"),
            ((OWN_SUBSCRIPTION, {"direction": "Inbound", "addressPrefixes": ["0.0.0.0/0"]}), "Fail"),
            (({"direction": "Inbound", "subscriptions": [{"id": OTHER_SUBSCRIPTION}]},), "Fail"),
            (({"direction": "Outbound", "fullyQualifiedDomainNames": ["drop.example"]},), "Fail"),
            (({"direction": "Outbound", "subscriptions": [{"id": SUBSCRIPTION}]},), "Fail"),
            (({"direction": "Inbound", "novel": ["x"]},), "Fail"),
            (({"direction": "Inbound", "addressPrefixes": 7},), "Unknown"),
        ],
    )
    def test_the_rules_decide(self, rules: tuple[Any, ...], verdict: str) -> None:
        assert verdicts(self._perimeter(*rules), "storage-public")[ACCOUNT.lower()] == verdict

    @pytest.mark.parametrize("mode", ["Learning", "Audit", None])
    def test_a_perimeter_that_does_not_enforce_is_unknown(self, mode: str | None) -> None:
        assert verdicts(self._perimeter(mode=mode), "storage-public")[ACCOUNT.lower()] == "Unknown"

    @pytest.mark.parametrize("mode", ["Learning", None])
    def test_a_mode_that_is_not_known_hides_no_rule_that_admits_others(self, mode: str | None) -> None:
        admitting = {"direction": "Inbound", "addressPrefixes": ["0.0.0.0/0"]}
        assert verdicts(self._perimeter(admitting, mode=mode), "storage-public")[ACCOUNT.lower()] == "Fail"

    @pytest.mark.parametrize("member", [FOREIGN_ACCOUNT, "", None])
    def test_a_member_that_is_not_known_to_be_ours_does_not_pass(self, member: str | None) -> None:
        assert verdicts(self._perimeter(member=member), "storage-public")[ACCOUNT.lower()] in {"Fail", "Unknown"}

    @pytest.mark.parametrize(
        ("child", "remote"),
        [("links", "autoApprovedRemotePerimeterResourceId"), ("linkReferences", "remotePerimeterResourceId")],
    )
    @pytest.mark.parametrize(
        ("perimeter", "status", "verdict"),
        [
            (FOREIGN_PERIMETER, "Approved", "Fail"),
            (FOREIGN_PERIMETER, "Pending", "Fail"),
            (FOREIGN_PERIMETER, None, "Fail"),
            (FOREIGN_PERIMETER, "Rejected", "Pass"),
            (FOREIGN_PERIMETER, "Disconnected", "Pass"),
            (f"{NETWORK}/networkSecurityPerimeters/second", "Approved", "Pass"),
            (None, "Approved", "Fail"),
            (7, "Approved", "Unknown"),
        ],
    )
    def test_a_link_with_a_perimeter_that_is_not_known_to_be_ours_fails(
        self, child: str, remote: str, perimeter: Any, status: str | None, verdict: str
    ) -> None:
        """Shapes: Microsoft.Network, NspLinkProperties and NspLinkReferenceProperties."""
        azure = self._perimeter()
        azure.put(f"{self.PERIMETER}/{child}/l", {remote: perimeter, "status": status, "localInboundProfiles": ["*"]})
        assert verdicts(azure, "storage-public")[ACCOUNT.lower()] == verdict

    @pytest.mark.parametrize("reason", [UnreadReason.FORBIDDEN, UnreadReason.TRUNCATED])
    @pytest.mark.parametrize("child", ["resourceAssociations", "links", "linkReferences"])
    def test_lists_that_are_not_whole_are_unknown(self, reason: UnreadReason, child: str) -> None:
        kinds = f"Microsoft.Network/networkSecurityPerimeters/{child}"
        assert (
            verdicts(self._perimeter().refuse(self.PERIMETER, reason, kind=kinds), "storage-public")[ACCOUNT.lower()]
            == "Unknown"
        )
        kinds = "Microsoft.Storage/storageAccounts/networkSecurityPerimeterConfigurations"
        assert (
            verdicts(self._perimeter().refuse(ACCOUNT, reason, kind=kinds), "storage-public")[ACCOUNT.lower()]
            == "Unknown"
        )


KINDS = [
    ("Microsoft.Compute/diskAccesses", "Pass", "high"),
    ("Microsoft.Security/privateLinks", "Pass", "high"),
    ("Microsoft.KeyVault/managedHSMs", "Pass", "high"),
    ("Microsoft.Attestation/attestationProviders", "Pass", "high"),
    ("Microsoft.Monitor/accounts", "Fail", "medium"),
    ("Microsoft.Dashboard/grafana", "Fail", "high"),
    ("Microsoft.StorageSync/storageSyncServices", "Fail", "high"),
    ("Microsoft.HDInsight/clusters", "Fail", "high"),
    ("Microsoft.Novel/things", "Unknown", "high"),
]


@pytest.mark.parametrize(("kind", "verdict", "severity"), KINDS)
def test_each_kind_behind_a_private_endpoint_has_a_decision(kind: str, verdict: str, severity: str) -> None:
    azure, endpoint = served_cluster(), f"{NETWORK}/privateEndpoints/kind"
    add_endpoint(azure, endpoint, f"{GROUP}/providers/{kind}/one")
    finding = azure.findings("pe-relay-target")[endpoint.lower()]
    assert (finding.verdict.value, finding.severity) == (verdict, severity)


@pytest.mark.parametrize(
    ("audience", "verdict", "severity"),
    [([SUBSCRIPTION.rpartition("/")[2]], "Fail", "medium"), (["*"], "Fail", "high"), ([], "Pass", "high")],
)
def test_a_private_link_service_that_approves_unasked(audience: list[str], verdict: str, severity: str) -> None:
    azure, service = served_cluster(), f"{NODE_GROUP}/providers/Microsoft.Network/privateLinkServices/one"
    azure.put(service, {"autoApproval": {"subscriptions": audience}})
    finding = azure.findings("pls-exposed")[service.lower()]
    assert (finding.verdict.value, finding.severity) == (verdict, severity)
