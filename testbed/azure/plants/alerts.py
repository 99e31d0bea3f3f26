"""What receives data of ours and passes it on: action groups, capture of event hubs, copies of accounts, backups.

How each list is answered: Azure/azure-rest-api-specs, Microsoft.Insights (ScheduledQueryRules_ListBySubscription,
MetricAlerts_ListBySubscription, ActionGroups_Get), Microsoft.AlertsManagement (PrometheusRuleGroups_ListBySubscription,
AlertProcessingRules_ListBySubscription), Microsoft.EventHub 2021-11-01 (EventHubs_ListByNamespace), Microsoft.Storage
(ObjectReplicationPolicies_List), Microsoft.DataProtection (BackupInstances_List), Microsoft.RecoveryServices
(BackupProtectedItems_List).
"""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import DATA_GROUP, LOCATION
from testbed.azure.estate import Estate
from testbed.azure.ids import subscription_of
from testbed.azure.plants.deliveries import SINK_ACCOUNT, add_workspace
from testbed.azure.plants.plant import Named, plant
from testbed.azure.plants.sinks import FOREIGN_PROVIDERS, diagnostic_setting

MONITOR = f"{DATA_GROUP}/providers/Microsoft.Insights"
GROUP = f"{MONITOR}/actionGroups/ag-operations"
HUBS = f"{DATA_GROUP}/providers/Microsoft.EventHub/namespaces/evhns-logs"
LOGS = f"{DATA_GROUP}/providers/Microsoft.Storage/storageAccounts/stlogs"
PAGER = {"name": "pager", "serviceUri": "https://collect.example/in?key=x"}


# Azure answers every list, also where it is empty.
NO_RECEIVERS: dict[str, list[Any]] = {
    name: []
    for name in (
        "emailReceivers", "smsReceivers", "webhookReceivers", "eventHubReceivers", "itsmReceivers",
        "azureAppPushReceivers", "automationRunbookReceivers", "voiceReceivers", "logicAppReceivers",
        "azureFunctionReceivers", "armRoleReceivers",
    )
}  # fmt: skip


def add_group(estate: Estate, group: str = GROUP, **receivers: Any) -> str:
    """An action group."""
    return estate.add(group, {"groupShortName": "ops", "enabled": True, **NO_RECEIVERS, **receivers}, location="global")


def add_query_rule(estate: Estate, scope: str, group: str) -> str:
    """A log search alert rule about a resource."""
    properties = {"scopes": [scope], "enabled": True, "actions": {"actionGroups": [group], "customProperties": {}}}
    return estate.add(f"{MONITOR}/scheduledQueryRules/restarts", properties, location=LOCATION)


@plant("alert-receivers", "high", spot="cluster-logs alerts")
def alert_of_a_log_search_to_a_webhook(estate: Estate) -> Named:
    """Rows of our workspace are sent to an address of the internet."""
    add_query_rule(estate, add_workspace(estate), GROUP)
    return add_group(estate, webhookReceivers=[dict(PAGER)])


@plant("alert-receivers", "high", spot="alerts")
def alert_of_metrics_to_a_function(estate: Estate) -> Named:
    """An alert with names of pods starts a function of ours, which can call any address."""
    properties = {
        "scopes": [estate.cluster],
        "enabled": True,
        "actions": [{"actionGroupId": GROUP, "webHookProperties": {}}],
    }
    estate.add(f"{MONITOR}/metricAlerts/pods", properties, location="global")
    function = f"{DATA_GROUP}/providers/Microsoft.Web/sites/func-alerts"
    receiver = {"name": "f", "functionAppResourceId": function, "functionName": "tell", "httpTriggerUrl": "https://x/"}
    return add_group(estate, azureFunctionReceivers=[receiver])


@plant("alert-receivers", "high", spot="alerts")
def alert_of_a_prometheus_rule_to_a_hub_of_others(estate: Estate) -> Named:
    """An alert with labels that pods choose is sent to an event hub of another subscription."""
    rule = {"alert": "Restarts", "expression": "x", "actions": [{"actionGroupId": GROUP}]}
    properties = {"scopes": [estate.cluster], "enabled": True, "rules": [{"record": "y", "expression": "z"}, rule]}
    rules = f"{DATA_GROUP}/providers/Microsoft.AlertsManagement/prometheusRuleGroups/pods"
    estate.add(rules, properties, location=LOCATION)
    hub = {
        "name": "h",
        "eventHubNameSpace": "hub",
        "eventHubName": "in",
        "subscriptionId": subscription_of(FOREIGN_PROVIDERS),
    }
    return add_group(estate, eventHubReceivers=[hub])


@plant("alert-receivers", "high", spot="alerts")
def processing_rule_that_adds_a_workflow_to_every_alert(estate: Estate) -> Named:
    """An alert processing rule of the subscription starts a workflow for every alert in it."""
    properties = {
        "scopes": [f"/subscriptions/{subscription_of(estate.cluster)}"],
        "actions": [{"actionType": "AddActionGroups", "actionGroupIds": [GROUP]}],
        "enabled": True,
    }
    estate.add(f"{DATA_GROUP}/providers/Microsoft.AlertsManagement/actionRules/all", properties, location="global")
    workflow = {"name": "w", "resourceId": f"{DATA_GROUP}/providers/Microsoft.Logic/workflows/tell", "callbackUrl": "x"}
    return add_group(estate, logicAppReceivers=[workflow])


@plant("alert-receivers", "high", spot="alerts")
def alert_to_an_action_group_of_others(estate: Estate) -> Named:
    """A rule about the cluster names an action group of another subscription, which cannot be read."""
    group = f"{FOREIGN_PROVIDERS}/Microsoft.Insights/actionGroups/ag-soc"
    properties = {"scopes": [estate.cluster], "enabled": True, "actions": [{"actionGroupId": group}]}
    estate.add(f"{MONITOR}/metricAlerts/pods", properties, location="global")
    return group


@plant("alert-receivers", "medium", spot="alerts")
def alert_by_mail(estate: Estate) -> Named:
    """People receive what a log search finds."""
    properties = {"scopes": [estate.cluster], "enabled": True, "actions": [{"actionGroupId": GROUP}]}
    estate.add(f"{MONITOR}/metricAlerts/pods", properties, location="global")
    return add_group(estate, emailReceivers=[{"name": "team", "emailAddress": "ops@contoso.example"}])


@plant("storage-replication", "high", spot="cluster-logs")
def logs_in_an_account_that_is_copied_to_others(estate: Estate) -> Named:
    """The cluster's logs are kept in an account of ours, which nothing else uses and which is copied to others."""
    estate.add(LOGS, {"publicNetworkAccess": "Disabled"}, location=LOCATION, kind="StorageV2")
    diagnostic_setting(estate, estate.cluster, storageAccountId=LOGS)
    properties = {"policyId": "default", "sourceAccount": LOGS, "destinationAccount": SINK_ACCOUNT, "rules": []}
    estate.add(f"{LOGS}/objectReplicationPolicies/copies", properties)
    return LOGS


@plant("event-hub-capture", "high", spot="cluster-logs")
def logs_in_a_hub_that_is_captured_by_others(estate: Estate) -> Named:
    """The cluster's logs go to an event hub of ours, whose capture writes into an account of others."""
    estate.add(HUBS, {"publicNetworkAccess": "Disabled"}, location=LOCATION)
    diagnostic_setting(estate, estate.cluster, eventHubAuthorizationRuleId=f"{HUBS}/authorizationRules/send")
    destination = {"name": "EventHubArchive.AzureBlockBlob", "properties": {"storageAccountResourceId": SINK_ACCOUNT}}
    properties = {"captureDescription": {"enabled": True, "encoding": "Avro", "destination": destination}}
    return estate.add(f"{HUBS}/eventhubs/insights-logs-kube-audit", properties)


@plant("backup-copies", "medium", spot="cluster-backup")
def backup_of_the_cluster(estate: Estate) -> Named:
    """The cluster's objects and volumes are copied into a vault of backups."""
    vault = f"{DATA_GROUP}/providers/Microsoft.DataProtection/backupVaults/bvault"
    estate.add(vault, {"storageSettings": []}, location=LOCATION)
    source = {"resourceID": estate.cluster, "datasourceType": "Microsoft.ContainerService/managedClusters"}
    return estate.add(f"{vault}/backupInstances/aks", {"dataSourceInfo": source, "policyInfo": {}})


@plant("backup-copies", "medium", needs=("storage",), spot="share-backup")
def backup_of_a_file_share(estate: Estate) -> Named:
    """A share of the storage account is copied into a Recovery Services vault."""
    vault = f"{DATA_GROUP}/providers/Microsoft.RecoveryServices/vaults/rsv"
    estate.add(vault, {}, location=LOCATION)
    properties = {"protectedItemType": "AzureFileShareProtectedItem", "sourceResourceId": estate.site.storage}
    return estate.add(f"{vault}/backupProtectedItems/weights", properties)
