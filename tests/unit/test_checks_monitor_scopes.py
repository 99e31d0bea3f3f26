"""Azure Monitor by private link: the members of its scopes, and the link of each monitoring feature."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, GROUP, NETWORK, NODE_GROUP, SUBSCRIPTION
from tests.audit_services import (
    OTHER_SUBSCRIPTION,
    FakeServices,
    add_endpoint,
    only,
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


def _measured(*members: Any) -> FakeServices:
    azure = served_cluster()
    add_endpoint(azure, f"{NETWORK}/privateEndpoints/monitor", SCOPE)
    private = {"ingestionAccessMode": "PrivateOnly", "queryAccessMode": "PrivateOnly"}
    azure.put(SCOPE, {"accessModeSettings": private})
    for number, member in enumerate(members):
        azure.put(f"{SCOPE}/scopedResources/{number}", {"linkedResourceId": member})
    return azure


ENDPOINT = f"{GROUP}/providers/Microsoft.Insights/dataCollectionEndpoints/dce"
COMPONENT = f"{GROUP}/providers/Microsoft.Insights/components/app"


class TestMembersOfMonitorScopes:
    @pytest.mark.parametrize(
        ("member", "verdict"),
        [
            (FOREIGN_WORKSPACE, "Fail"),
            (f"{FOREIGN}/Microsoft.Insights/components/app", "Fail"),
            (f"{FOREIGN}/Microsoft.Insights/dataCollectionEndpoints/dce", "Fail"),
            (None, "Unknown"),
            ("workspace", "Unknown"),
            (7, "Unknown"),
        ],
    )
    def test_a_member_that_is_not_known_to_be_ours_does_not_pass(self, member: Any, verdict: str) -> None:
        finding = _measured(WORKSPACE, member).findings("ampls-members")[f"{SCOPE}/scopedResources/1".lower()]
        assert (finding.verdict.value, finding.severity) == (verdict, Severity.HIGH)

    def test_members_of_ours_pass(self) -> None:
        assert verdicts(_measured(WORKSPACE, ENDPOINT), "ampls-members") == {SCOPE.lower(): "Pass"}
        member = f"{SCOPE}/scopedResources/0".lower()
        assert member not in verdicts(_measured(FOREIGN_WORKSPACE), "ampls-members", OURS)

    @pytest.mark.parametrize("reason", [UnreadReason.FORBIDDEN, UnreadReason.TRUNCATED])
    def test_a_list_that_is_not_whole_is_unknown(self, reason: UnreadReason) -> None:
        azure = _measured(WORKSPACE).refuse(SCOPE, reason, kind="Microsoft.Insights/privateLinkScopes/scopedResources")
        assert verdicts(azure, "ampls-members")[SCOPE.lower()] == "Unknown"


PROMETHEUS = {"azureMonitorProfile": {"metrics": {"enabled": True}}}
INSIGHTS = {"addonProfiles": {"omsagent": {"enabled": True, "config": {
    "useAADAuth": "true", "logAnalyticsWorkspaceResourceID": WORKSPACE}}}}  # fmt: skip
BY_KEY = {"addonProfiles": {"omsagent": {"enabled": True, "config": {"logAnalyticsWorkspaceResourceID": WORKSPACE}}}}
DEFENDER = {"securityProfile": {"defender": {"securityMonitoring": {"enabled": True}}}}
APPLICATIONS = {"azureMonitorProfile": {"appMonitoring": {"autoInstrumentation": {"enabled": True}}}}


class TestPrivateLinksOfFeatures:
    @pytest.mark.parametrize(
        ("check", "properties", "members", "verdict"),
        [
            ("aks-monitoring", PROMETHEUS, (ENDPOINT,), "Pass"),
            ("aks-monitoring", PROMETHEUS, (WORKSPACE,), "Fail"),
            ("aks-monitoring", PROMETHEUS, (), "Fail"),
            ("aks-addons", INSIGHTS, (WORKSPACE, ENDPOINT), "Pass"),
            ("aks-addons", INSIGHTS, (WORKSPACE,), "Fail"),
            ("aks-addons", INSIGHTS, (ENDPOINT,), "Fail"),
            ("aks-monitoring", APPLICATIONS, (COMPONENT,), "Pass"),
            ("aks-monitoring", APPLICATIONS, (WORKSPACE, ENDPOINT), "Fail"),
            ("aks-monitoring", DEFENDER, (WORKSPACE, ENDPOINT), "Fail"),
            ("aks-monitoring", {"metricsProfile": {"costAnalysis": {"enabled": True}}}, (WORKSPACE, ENDPOINT), "Fail"),
            ("aks-monitoring", {"azureMonitorProfile": {"novel": {"enabled": True}}}, (WORKSPACE, ENDPOINT), "Fail"),
        ],
    )
    def test_each_feature_needs_the_members_that_it_uses(
        self, check: str, properties: dict[str, Any], members: tuple[str, ...], verdict: str
    ) -> None:
        azure = _measured(*members).change(CLUSTER, **properties)
        association = (
            f"{CLUSTER}/providers/Microsoft.Insights/dataCollectionRuleAssociations/configurationAccessEndpoint"
        )
        azure.put(association, {"dataCollectionEndpointId": ENDPOINT})
        assert verdicts(azure, check)[CLUSTER.lower()] == verdict

    def test_container_insights_with_the_key_of_its_workspace_needs_no_endpoint(self) -> None:
        assert verdicts(_measured(WORKSPACE).change(CLUSTER, **BY_KEY), "aks-addons")[CLUSTER.lower()] == "Pass"
        assert verdicts(_measured(WORKSPACE).change(CLUSTER, **INSIGHTS), "aks-addons")[CLUSTER.lower()] == "Fail"

    def test_defender_passes_with_its_own_private_link(self) -> None:
        azure = served_cluster().change(CLUSTER, **DEFENDER)
        add_endpoint(azure, f"{NETWORK}/privateEndpoints/d", f"{GROUP}/providers/Microsoft.Security/privateLinks/d")
        assert only(azure, "aks-monitoring").verdict is Verdict.PASS

    def test_members_that_cannot_be_listed_are_unknown(self) -> None:
        azure = _measured(ENDPOINT).change(CLUSTER, **PROMETHEUS)
        azure.refuse(SCOPE, kind="Microsoft.Insights/privateLinkScopes/scopedResources")
        assert only(azure, "aks-monitoring").verdict is Verdict.UNKNOWN
