"""What receives data of ours and passes it on: action groups, capture of event hubs, copies of accounts, backups.

Sources of the shapes are named in testbed/azure/plants/alerts.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.policy.declarations import Policy
from testbed.azure.plants.alerts import NO_RECEIVERS
from tests.audit_estates import CLUSTER, GROUP, NODE_GROUP, SUBSCRIPTION
from tests.audit_services import ACCOUNT, OTHER_SUBSCRIPTION, FakeServices, served_cluster, verdicts

MONITOR = f"{GROUP}/providers/Microsoft.Insights"
ACTIONS = f"{MONITOR}/actionGroups/ops"
FUNCTION = f"{GROUP}/providers/Microsoft.Web/sites/tell"
HUBS = f"{GROUP}/providers/Microsoft.EventHub/namespaces/logs"
LOGS = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/onlylogs"
FOREIGN_ACCOUNT = f"{OTHER_SUBSCRIPTION}/resourceGroups/soc/providers/Microsoft.Storage/storageAccounts/drop"
WEBHOOK = {"webhookReceivers": [{"name": "w", "serviceUri": "https://collect.example/in?code=secret"}]}
FUNCTIONS = {"azureFunctionReceivers": [{"name": "f", "functionAppResourceId": FUNCTION}]}
METRICS = f"{MONITOR}/metricAlerts/m"


def alerting(rule: str = METRICS, scope: str = CLUSTER, **receivers: Any) -> FakeServices:
    """A rule with an action group."""
    azure = served_cluster()
    azure.put(rule, {"scopes": [scope], "actions": [{"actionGroupId": ACTIONS}]})
    azure.put(ACTIONS, NO_RECEIVERS | receivers)
    return azure


def _hub(subscription: str) -> dict[str, Any]:
    return {"eventHubReceivers": [{"name": "h", "eventHubNameSpace": "n", "subscriptionId": subscription}]}


class TestAlerts:
    @pytest.mark.parametrize(
        ("receivers", "verdict"),
        [
            ({}, "Pass"),
            ({"webhookReceivers": None}, "Unknown"),
            ({"emailReceivers": None}, "Unknown"),
            ({"webhookReceivers": None, "eventHubReceivers": None} | FUNCTIONS, "Fail"),
            (WEBHOOK | {"azureFunctionReceivers": 5}, "Fail"),
            (WEBHOOK, "Fail"),
            ({"webhookReceivers": [{"name": "w"}]}, "Fail"),
            (FUNCTIONS, "Fail"),
            ({"azureFunctionReceivers": [{"name": "f"}]}, "Fail"),
            ({"automationRunbookReceivers": [{"automationAccountId": f"{GROUP}/x", "serviceUri": "u"}]}, "Fail"),
            ({"logicAppReceivers": [{"resourceId": f"{GROUP}/x", "callbackUrl": "u"}]}, "Fail"),
            ({"itsmReceivers": [{"name": "s"}]}, "Fail"),
            (_hub(OTHER_SUBSCRIPTION.rpartition("/")[2]), "Fail"),
            (_hub(SUBSCRIPTION.rpartition("/")[2]), "Pass"),
            (_hub(""), "Unknown"),
            ({"emailReceivers": [{"name": "a"}]}, "Fail"),
            ({"webhookReceivers": 5}, "Unknown"),
        ],
    )
    def test_the_receivers_decide(self, receivers: dict[str, Any], verdict: str) -> None:
        assert verdicts(alerting(**receivers), "alert-receivers")[ACTIONS.lower()] == verdict

    def test_people_are_medium_and_an_address_shows_no_secret(self) -> None:
        finding = alerting(emailReceivers=[{"name": "a"}]).findings("alert-receivers")[ACTIONS.lower()]
        assert (finding.severity.value, finding.reason) == ("medium", "SentToPeople")
        message = alerting(**WEBHOOK).findings("alert-receivers")[ACTIONS.lower()].message
        assert "https://collect.example/in" in message
        assert "secret" not in message

    def test_the_remedy_removes_what_the_message_names_and_the_last_of_a_list_first(self) -> None:
        duty = {"name": "duty", "serviceUri": "https://hooks.contoso.internal/"}
        other_receivers = {"webhookReceivers": [*WEBHOOK["webhookReceivers"], duty], "emailReceivers": [{"name": "a"}]}
        remedy = alerting(**other_receivers, **_hub(SUBSCRIPTION.rpartition("/")[2])).findings("alert-receivers")
        removed = [line for line in remedy[ACTIONS.lower()].remedy.splitlines() if "--remove" in line]
        assert [line.partition("--remove ")[2] for line in removed] == [
            "properties.webhookReceivers 1", "properties.webhookReceivers 0", "properties.emailReceivers 0",
        ]  # fmt: skip

    def test_the_remedy_for_a_group_of_others_names_the_rules_and_removes_nothing(self) -> None:
        azure = served_cluster()
        group = ACTIONS.replace(SUBSCRIPTION, OTHER_SUBSCRIPTION)
        azure.put(METRICS, {"scopes": [CLUSTER], "actions": [{"actionGroupId": group}]})
        remedy = azure.findings("alert-receivers")[group.lower()].remedy
        assert f"az resource show --ids {METRICS}" in remedy
        assert "--remove" not in remedy

    def test_code_that_the_policy_names_passes(self) -> None:
        policy = Policy(allowed_private_link_services=(FUNCTION,))
        assert verdicts(alerting(**FUNCTIONS), "alert-receivers", policy)[ACTIONS.lower()] == "Pass"

    @pytest.mark.parametrize(
        ("rule", "properties"),
        [
            ("Microsoft.Insights/scheduledQueryRules", {"actions": {"actionGroups": [ACTIONS]}}),
            ("Microsoft.Insights/metricAlerts", {"actions": [{"actionGroupId": ACTIONS}]}),
            (
                "Microsoft.AlertsManagement/prometheusRuleGroups",
                {"rules": [{"record": "r"}, {"actions": [{"actionGroupId": ACTIONS}]}]},
            ),
            ("Microsoft.AlertsManagement/actionRules", {"actions": [{"actionGroupIds": [ACTIONS]}]}),
        ],
    )
    @pytest.mark.parametrize(
        ("scope", "verdict"),
        [
            (CLUSTER, "Fail"),
            (CLUSTER.upper(), "Fail"),
            (ACCOUNT, "Fail"),
            (SUBSCRIPTION, "Fail"),
            (NODE_GROUP, "Fail"),
            (f"{NODE_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/nodes", "Fail"),
            (f"{SUBSCRIPTION}/resourceGroups/shop/providers/Microsoft.Web/sites/shop", None),
            (None, "Fail"),
        ],
    )
    def test_a_rule_of_each_kind_counts_where_it_is_about_what_is_in_scope(
        self, rule: str, properties: dict[str, Any], scope: str | None, verdict: str | None
    ) -> None:
        azure = served_cluster()
        azure.put(f"{GROUP}/providers/{rule}/r", {**properties, **({"scopes": [scope]} if scope else {})})
        azure.put(ACTIONS, NO_RECEIVERS | WEBHOOK)
        assert verdicts(azure, "alert-receivers").get(ACTIONS.lower()) == verdict

    def test_an_action_group_of_others_fails(self) -> None:
        group = ACTIONS.replace(SUBSCRIPTION, OTHER_SUBSCRIPTION)
        azure = served_cluster()
        azure.put(METRICS, {"scopes": [CLUSTER], "actions": [{"actionGroupId": group}]})
        assert verdicts(azure, "alert-receivers")[group.lower()] == "Fail"
        ours = Policy(own_subscriptions=(OTHER_SUBSCRIPTION.rpartition("/")[2],))
        assert verdicts(azure, "alert-receivers", ours)[group.lower()] == "Unknown"

    @pytest.mark.parametrize(
        "kind",
        [
            "Microsoft.Insights/scheduledQueryRules",
            "Microsoft.Insights/metricAlerts",
            "Microsoft.AlertsManagement/prometheusRuleGroups",
            "Microsoft.AlertsManagement/actionRules",
        ],
    )
    def test_rules_that_cannot_be_listed_are_unknown_and_hide_no_other(self, kind: str) -> None:
        azure = served_cluster().refuse(SUBSCRIPTION, UnreadReason.FORBIDDEN, kind=kind)
        assert verdicts(azure, "alert-receivers") == {CLUSTER.lower(): "Unknown"}
        azure = alerting(**WEBHOOK).refuse(SUBSCRIPTION, UnreadReason.TRUNCATED, kind=kind)  # type: ignore[assignment]
        verdict_of = verdicts(azure, "alert-receivers")
        assert (verdict_of[ACTIONS.lower()], verdict_of[CLUSTER.lower()]) == ("Fail", "Unknown")

    def test_a_rule_that_cannot_be_read_is_unknown(self) -> None:
        azure = served_cluster()
        azure.put(METRICS, {"scopes": [CLUSTER], "actions": 5})
        assert verdicts(azure, "alert-receivers")[CLUSTER.lower()] == "Unknown"

    @pytest.mark.parametrize("kind", ["prometheusRuleGroups", "actionRules"])
    @pytest.mark.parametrize("answer", [{}, {"rules": None, "actions": None}])
    def test_a_rule_without_its_required_list_is_unknown(self, kind: str, answer: dict[str, Any]) -> None:
        azure = served_cluster()
        azure.put(f"{GROUP}/providers/Microsoft.AlertsManagement/{kind}/r", {**answer, "scopes": [CLUSTER]})
        assert verdicts(azure, "alert-receivers")[CLUSTER.lower()] == "Unknown"


def _logged(**sink: str) -> FakeServices:
    azure = served_cluster()
    azure.put(f"{CLUSTER}/providers/Microsoft.Insights/diagnosticSettings/all", sink)
    return azure


class TestCapture:
    @pytest.mark.parametrize(
        ("capture", "verdict"),
        [
            (None, "Pass"),
            ({"enabled": False}, "Pass"),
            ({"enabled": True, "destination": {"properties": {"storageAccountResourceId": ACCOUNT}}}, "Pass"),
            ({"enabled": True, "destination": {"properties": {"storageAccountResourceId": FOREIGN_ACCOUNT}}}, "Fail"),
            ({"enabled": False, "destination": {"properties": {"storageAccountResourceId": FOREIGN_ACCOUNT}}}, "Fail"),
            ({"enabled": True, "destination": {"properties": {"dataLakeSubscriptionId": "f" * 8}}}, "Fail"),
            ({"enabled": True, "destination": {"properties": {}}}, "Unknown"),
            ({"enabled": True}, "Unknown"),
            ({"enabled": "yes"}, "Unknown"),
        ],
    )
    def test_the_account_decides(self, capture: Any, verdict: str) -> None:
        azure = _logged(eventHubAuthorizationRuleId=f"{HUBS}/authorizationRules/send")
        hub = f"{HUBS}/eventhubs/audit"
        azure.put(HUBS, {}).put(hub, {} if capture is None else {"captureDescription": capture})
        assert verdicts(azure, "event-hub-capture")[hub.lower()] == verdict

    @pytest.mark.parametrize("reason", [UnreadReason.FORBIDDEN, UnreadReason.TRUNCATED])
    def test_hubs_that_cannot_be_listed_are_unknown(self, reason: UnreadReason) -> None:
        azure = _logged(eventHubAuthorizationRuleId=f"{HUBS}/authorizationRules/send").refuse(HUBS, reason)
        assert verdicts(azure, "event-hub-capture")[HUBS.lower()] == "Unknown"

    def test_a_hub_that_receives_events_or_exports_is_read_too(self) -> None:
        workspace = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"
        azure = _logged(workspaceId=workspace)
        azure.put(f"{workspace}/dataExports/x", {"destination": {"resourceId": f"{HUBS}/eventhubs/audit"}})
        assert verdicts(azure, "event-hub-capture")[HUBS.lower()] == "Pass"
        azure = served_cluster()
        target = {"endpointType": "EventHub", "properties": {"resourceId": f"{HUBS}/eventhubs/audit"}}
        azure.put(f"{ACCOUNT}/providers/Microsoft.EventGrid/eventSubscriptions/x", {"destination": target})
        assert verdicts(azure, "event-hub-capture")[HUBS.lower()] == "Pass"

    def test_without_a_hub_it_does_not_apply(self) -> None:
        assert verdicts(served_cluster(), "event-hub-capture") == {CLUSTER.lower(): "NotApplicable"}


class TestAccountsOfLogs:
    @pytest.mark.parametrize(("destination", "verdict"), [(FOREIGN_ACCOUNT, "Fail"), (ACCOUNT, "Fail"), (None, "Pass")])
    def test_copies_of_an_account_that_only_receives_logs_are_read(self, destination: str | None, verdict: str) -> None:
        azure = _logged(storageAccountId=LOGS)
        azure.put(LOGS, {}, kind="StorageV2")
        if destination is not None:
            policy_fields = {"sourceAccount": LOGS, "destinationAccount": destination}
            azure.put(f"{LOGS}/objectReplicationPolicies/p", policy_fields)
        assert verdicts(azure, "storage-replication")[LOGS.lower()] == verdict

    def test_one_that_cannot_be_read_is_unknown(self) -> None:
        azure = _logged(storageAccountId=LOGS)
        azure.put(LOGS, {}, kind="StorageV2")
        azure.refuse(LOGS)
        assert verdicts(azure, "storage-replication")[LOGS.lower()] == "Unknown"


BACKUPS = f"{GROUP}/providers/Microsoft.DataProtection/backupVaults/b"
RECOVERY = f"{GROUP}/providers/Microsoft.RecoveryServices/vaults/r"
ELSEWHERE = f"{SUBSCRIPTION}/resourceGroups/shop/providers/Microsoft.Compute/disks/shop"


class TestBackups:
    @pytest.mark.parametrize(
        ("copy", "properties"),
        [
            (f"{BACKUPS}/backupInstances/x", lambda source: {"dataSourceInfo": {"resourceID": source}}),
            (f"{RECOVERY}/backupProtectedItems/x", lambda source: {"sourceResourceId": source}),
        ],
    )
    @pytest.mark.parametrize(
        ("source", "verdict"),
        [
            (CLUSTER, "Fail"),
            (ACCOUNT.upper(), "Fail"),
            (f"{NODE_GROUP}/providers/Microsoft.Compute/disks/pvc-1", "Fail"),
            (ELSEWHERE, None),
            (None, "Unknown"),
            (5, "Unknown"),
        ],
    )
    def test_what_is_copied_decides(self, copy: str, properties: Any, source: Any, verdict: str | None) -> None:
        azure = served_cluster()
        azure.put(BACKUPS, {}).put(RECOVERY, {}).put(copy, properties(source))
        verdict_of = verdicts(azure, "backup-copies")
        assert verdict_of.get(copy.lower()) == verdict
        assert (CLUSTER.lower() in verdict_of) == (verdict is None)

    @pytest.mark.parametrize(
        ("target", "kind"),
        [
            (SUBSCRIPTION, "Microsoft.DataProtection/backupVaults"),
            (SUBSCRIPTION, "Microsoft.RecoveryServices/vaults"),
            (BACKUPS, "Microsoft.DataProtection/backupVaults/backupInstances"),
            (RECOVERY, "Microsoft.RecoveryServices/vaults/backupProtectedItems"),
        ],
    )
    def test_lists_that_are_not_whole_are_unknown(self, target: str, kind: str) -> None:
        azure = served_cluster()
        azure.put(BACKUPS, {}).put(RECOVERY, {})
        azure.refuse(target, UnreadReason.TRUNCATED, kind=kind)
        assert verdicts(azure, "backup-copies") == {CLUSTER.lower(): "Unknown"}
