"""What Azure carries out for a resource by itself, past every network rule: one row for each list that names a target.

A new kind of resource or of list is a new row. `resources_in_scope` finds the resources, the check of a row evaluates
the targets, and `delivery-kinds` names each type of resource in scope that has no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hermetic.audit.estate.arm_ids import type_of


@dataclass(frozen=True, slots=True)
class Delivery:
    """One way on which Azure carries out what a resource holds, logs or reports.

    `listed` is the type of the objects that name the target, `field` the field with the target, `check` the id of the
    check that evaluates it.
    """

    listed: str
    field: str
    check: str


DIAGNOSTICS = Delivery(
    "Microsoft.Insights/diagnosticSettings",
    "workspaceId, storageAccountId, eventHubAuthorizationRuleId, serviceBusRuleId, marketplacePartnerId",
    "diag-foreign-sink",
)
EVENTS = Delivery("Microsoft.EventGrid/eventSubscriptions", "destination, deadLetterDestination", "event-foreign-sink")
TOPIC_EVENTS = Delivery(
    "Microsoft.EventGrid/systemTopics/eventSubscriptions", "destination, deadLetterDestination", "event-foreign-sink"
)
FLOW_LOGS = Delivery(
    "Microsoft.Network/networkWatchers/flowLogs", "storageId, flowAnalyticsConfiguration", "diag-foreign-sink"
)
COLLECTION_RULES = Delivery(
    "Microsoft.Insights/dataCollectionRuleAssociations", "dataCollectionRuleId", "diag-foreign-sink"
)
EXPORTS = Delivery("Microsoft.OperationalInsights/workspaces/dataExports", "destination.resourceId", "workspace-export")
POLICY_ANALYTICS = Delivery("Microsoft.Network/firewallPolicies", "insights.logAnalyticsResources", "diag-foreign-sink")
MEMBERS = Delivery("Microsoft.Insights/privateLinkScopes/scopedResources", "linkedResourceId", "ampls-members")
ALERTS = Delivery(
    "Microsoft.Insights/actionGroups",
    "webhookReceivers, automationRunbookReceivers, azureFunctionReceivers, logicAppReceivers, eventHubReceivers",
    "alert-receivers",
)
CAPTURES = Delivery("Microsoft.EventHub/namespaces/eventhubs", "captureDescription.destination", "event-hub-capture")
BACKUPS = Delivery(
    "Microsoft.DataProtection/backupVaults/backupInstances", "dataSourceInfo.resourceID", "backup-copies"
)
SHARE_BACKUPS = Delivery("Microsoft.RecoveryServices/vaults/backupProtectedItems", "sourceResourceId", "backup-copies")
OBJECT_COPIES = Delivery(
    "Microsoft.Storage/storageAccounts/objectReplicationPolicies", "destinationAccount", "storage-replication"
)
PERIMETER_LINKS = (
    Delivery(
        "Microsoft.Network/networkSecurityPerimeters/links", "autoApprovedRemotePerimeterResourceId", "storage-public"
    ),
    Delivery(
        "Microsoft.Network/networkSecurityPerimeters/linkReferences", "remotePerimeterResourceId", "storage-public"
    ),
)

REGISTRY = "Microsoft.ContainerRegistry/registries"
OF_REGISTRIES = (
    Delivery(f"{REGISTRY}/webhooks", "serviceUri", "acr-webhooks"),
    Delivery(f"{REGISTRY}/replications", "location", "acr-replications"),
    Delivery(f"{REGISTRY}/connectedRegistries", "parent", "acr-connected-registry"),
    Delivery(f"{REGISTRY}/exportPipelines", "target.uri", "acr-pipelines"),
    Delivery(f"{REGISTRY}/tasks", "status", "acr-tasks"),
)
ACCOUNT = "microsoft.storage/storageaccounts"

DELIVERIES: Mapping[str, tuple[Delivery, ...]] = {
    "microsoft.containerservice/managedclusters": (DIAGNOSTICS, COLLECTION_RULES, ALERTS, BACKUPS),
    "microsoft.compute/virtualmachinescalesets": (COLLECTION_RULES,),
    "microsoft.compute/virtualmachines": (COLLECTION_RULES,),
    "microsoft.compute/disks": (
        Delivery("Microsoft.Compute/disks", "managedBy, managedByExtended", "disk-shared"),
        BACKUPS,
    ),
    "microsoft.compute/diskaccesses": (
        Delivery("Microsoft.Compute/diskAccesses", "privateEndpointConnections", "disk-export"),
    ),
    "microsoft.network/virtualnetworks": (DIAGNOSTICS, FLOW_LOGS),
    "microsoft.network/networksecuritygroups": (DIAGNOSTICS, FLOW_LOGS),
    "microsoft.network/loadbalancers": (DIAGNOSTICS,),
    "microsoft.network/applicationgateways": (DIAGNOSTICS,),
    "microsoft.network/azurefirewalls": (DIAGNOSTICS,),
    "microsoft.network/firewallpolicies": (POLICY_ANALYTICS,),
    "microsoft.network/dnsresolverpolicies": (DIAGNOSTICS,),
    REGISTRY.lower(): (DIAGNOSTICS, EVENTS, TOPIC_EVENTS, *OF_REGISTRIES),
    ACCOUNT: (EVENTS, TOPIC_EVENTS, OBJECT_COPIES, BACKUPS, SHARE_BACKUPS, *PERIMETER_LINKS),
    f"{ACCOUNT}/blobservices": (DIAGNOSTICS,),
    f"{ACCOUNT}/fileservices": (DIAGNOSTICS,),
    f"{ACCOUNT}/queueservices": (DIAGNOSTICS,),
    f"{ACCOUNT}/tableservices": (DIAGNOSTICS,),
    "microsoft.keyvault/vaults": (DIAGNOSTICS, EVENTS, TOPIC_EVENTS),
    "microsoft.keyvault/managedhsms": (DIAGNOSTICS,),
    "microsoft.operationalinsights/workspaces": (DIAGNOSTICS, EXPORTS, ALERTS),
    "microsoft.insights/privatelinkscopes": (MEMBERS,),
}
"""The rows of each type of resource, by the type in lower case."""

NOTHING_DELIVERED: Mapping[str, str] = {
    "microsoft.fileshares/fileshares": "Azure documents no resource logs and no events of it",
    "microsoft.security/privatelinks": "Defender keeps data of its sensors, and exports of alerts hold no text of pods",
    "microsoft.authorization/resourcemanagementprivatelinks": "pe-foreign-target fails for it",
}
"""Types without a list that names a target, and why, by the type in lower case."""


def deliveries_of(resource: str) -> tuple[Delivery, ...]:
    """The rows of a resource, by its ARM id; empty where its type has none."""
    return DELIVERIES.get(type_of(resource).lower(), ())
