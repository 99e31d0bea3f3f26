"""What Azure carries out for a resource by itself, past every network rule: logs, events, exports, members, disks.

How each list is answered: Azure/azure-rest-api-specs, Microsoft.EventGrid (EventSubscriptions_ListByResource,
SystemTopics_ListBySubscription, SystemTopicEventSubscriptions_ListBySystemTopic), Microsoft.OperationalInsights
2020-08-01 (DataExportListByWorkspace), Microsoft.Insights 2021-07-01-preview (PrivateLinkScopedResourceList),
Microsoft.Compute 2024-03-02 (Disks_ListByResourceGroup, sharedDisk).
"""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.disks import CLOSED, VOLUME, add_disk
from testbed.azure.baseline.layout import DATA_GROUP, LOCATION, NETWORK, WORKLOAD
from testbed.azure.baseline.services import add_endpoint
from testbed.azure.estate import Estate
from testbed.azure.plants.endpoints import MEASURING, SEEN_BY
from testbed.azure.plants.pieces import group, network
from testbed.azure.plants.plant import FILTERED, Named, plant
from testbed.azure.plants.private_link import PRIVATE, connect
from testbed.azure.plants.sinks import FOREIGN_PROVIDERS, WORKSPACE, diagnostic_setting

OUR_WORKSPACE = f"{DATA_GROUP}/providers/Microsoft.OperationalInsights/workspaces/log-cluster"
SINK_ACCOUNT = f"{FOREIGN_PROVIDERS}/Microsoft.Storage/storageAccounts/stsoc"
HUB = f"{FOREIGN_PROVIDERS}/Microsoft.EventHub/namespaces/hub"
STAGING = f"/subscriptions/{WORKLOAD}/resourceGroups/rg-staging/providers/Microsoft.Compute/virtualMachines/vm-staging"
VAULT = f"{DATA_GROUP}/providers/Microsoft.KeyVault/vaults/kv-inference"


@plant("diag-foreign-sink", "high", needs=("dns_policy",), spot="dns-policy")
def names_that_pods_ask_for_to_a_workspace_of_others(estate: Estate) -> Named:
    """The DNS security policy logs every name that pods ask for to a workspace of another subscription."""
    return diagnostic_setting(estate, estate.site.dns_policy, workspaceId=WORKSPACE)


@plant("diag-foreign-sink", "high", profiles=(FILTERED,), needs=("firewall",))
def refused_host_names_to_an_account_of_others(estate: Estate) -> Named:
    """The declared firewall logs the host names that it refuses to an account of another subscription."""
    return diagnostic_setting(estate, estate.site.firewall, storageAccountId=SINK_ACCOUNT)


@plant("diag-foreign-sink", "high", profiles=(FILTERED,), needs=("firewall",))
def firewall_analytics_to_a_workspace_of_others(estate: Estate) -> Named:
    """Analytics of the firewall policy send to a workspace of another subscription."""
    policy = str(estate.properties(estate.site.firewall)["firewallPolicy"]["id"])
    workspaces = [{"region": LOCATION, "workspaceId": {"id": WORKSPACE}}]
    resources = {"workspaces": workspaces, "defaultWorkspaceId": {"id": WORKSPACE}}
    estate.properties(policy)["insights"] = {"isEnabled": True, "retentionDays": 30, "logAnalyticsResources": resources}
    return policy


@plant("diag-foreign-sink", "high", needs=("watcher", "node_rules"))
def flow_log_of_a_security_group_to_an_account_of_others(estate: Estate) -> Named:
    """A flow log of the nodes' security group, which no network lists, is written into an account of others."""
    properties = {"targetResourceId": estate.site.node_rules, "storageId": SINK_ACCOUNT, "enabled": True}
    return estate.add(f"{estate.site.watcher}/flowLogs/nsg-nodes", properties, location=LOCATION)


def add_workspace(estate: Estate) -> str:
    """A workspace of ours, to which the cluster's logs are sent."""
    estate.add(OUR_WORKSPACE, {"publicNetworkAccessForIngestion": "Disabled"}, location=LOCATION)
    diagnostic_setting(estate, estate.cluster, workspaceId=OUR_WORKSPACE)
    return OUR_WORKSPACE


def add_export(estate: Estate, workspace: str, target: str, *, enable: bool = True) -> str:
    """A data export of a workspace, of tables that hold what pods write."""
    properties = {"destination": {"resourceId": target}, "tableNames": ["ContainerLogV2", "AKSAudit"], "enable": enable}
    return estate.add(f"{workspace}/dataExports/continuous", properties)


@plant("workspace-export", "high", spot="cluster-logs")
def export_to_an_event_hub_of_others(estate: Estate) -> Named:
    """Our workspace receives the cluster's logs, and exports them to an event hub of another subscription."""
    return add_export(estate, add_workspace(estate), HUB)


@plant("workspace-export", "high", spot="cluster-logs")
def disabled_export_to_an_account_of_others(estate: Estate) -> Named:
    """An export to an account of others is there, and one change enables it."""
    return add_export(estate, add_workspace(estate), SINK_ACCOUNT, enable=False)


@plant("workspace-export", "high", spot="cluster-logs")
def export_of_a_workspace_behind_a_workspace(estate: Estate) -> Named:
    """The workspace that receives the cluster's logs sends its own to a second one, which exports to others."""
    second = OUR_WORKSPACE.replace("log-cluster", "log-second")
    estate.add(second, {}, location=LOCATION)
    diagnostic_setting(estate, add_workspace(estate), workspaceId=second)
    return add_export(estate, second, SINK_ACCOUNT)


def add_events(estate: Estate, holder: str, destination: dict[str, Any], name: str = "on-write") -> str:
    """An event subscription of a resource."""
    properties = {
        "destination": destination,
        "filter": {"includedEventTypes": None},
        "eventDeliverySchema": "EventGridSchema",
    }
    return estate.add(f"{holder}/providers/Microsoft.EventGrid/eventSubscriptions/{name}", properties)


def to_resource(kind: str, target: str) -> dict[str, Any]:
    """A destination that is a resource."""
    return {"endpointType": kind, "properties": {"resourceId": target}}


def webhook() -> dict[str, Any]:
    """A destination that is an address of the internet."""
    return {"endpointType": "WebHook", "properties": {"endpointBaseUrl": "https://collect.example/in"}}


@plant("event-foreign-sink", "high", spot="storage-events")
def names_of_files_to_a_webhook(estate: Estate) -> Named:
    """Event Grid calls an address of the internet with the name of every object that is written."""
    return add_events(estate, estate.site.storage, webhook())


@plant("event-foreign-sink", "high", spot="storage-events")
def names_of_files_to_a_queue_of_others(estate: Estate) -> Named:
    """Event Grid puts the name of every object into a queue of an account of another subscription."""
    return add_events(estate, estate.site.storage, to_resource("StorageQueue", SINK_ACCOUNT))


@plant("event-foreign-sink", "high", spot="storage-events")
def names_of_files_to_a_function_of_ours(estate: Estate) -> Named:
    """Event Grid calls a function of ours, whose code can call any address."""
    function = f"{DATA_GROUP}/providers/Microsoft.Web/sites/func-scan/functions/scan"
    return add_events(estate, estate.site.storage, to_resource("AzureFunction", function))


@plant("event-foreign-sink", "high", spot="storage-events")
def undelivered_events_to_an_account_of_others(estate: Estate) -> Named:
    """Events go to a queue of ours; those that cannot be delivered are kept in an account of others."""
    held = add_events(estate, estate.site.storage, to_resource("StorageQueue", estate.site.storage))
    estate.properties(held)["deadLetterDestination"] = to_resource("StorageBlob", SINK_ACCOUNT)
    return held


@plant("event-foreign-sink", "high", spot="registry-events")
def names_of_images_to_a_hub_of_others(estate: Estate) -> Named:
    """Event Grid delivers the name and tag of every image that is pushed to an event hub of others."""
    return add_events(estate, estate.site.registry, to_resource("EventHub", f"{HUB}/eventhubs/images"))


@plant("event-foreign-sink", "high", spot="storage-topic")
def system_topic_with_an_identity_of_its_own(estate: Estate) -> Named:
    """A system topic of the account, in another resource group, delivers with its identity to a hub of others."""
    topic = f"/subscriptions/{WORKLOAD}/resourceGroups/rg-events/providers/Microsoft.EventGrid/systemTopics/on-files"
    estate.add(topic, {"source": estate.site.storage, "topicType": "Microsoft.Storage.StorageAccounts"})
    delivery = {"identity": {"type": "SystemAssigned"}, "destination": to_resource("EventHub", f"{HUB}/eventhubs/x")}
    return estate.add(f"{topic}/eventSubscriptions/to-hub", {"deliveryWithResourceIdentity": delivery})


def add_scope(estate: Estate, *members: str) -> str:
    """A private only monitor scope of ours with these members, behind a private endpoint in the network."""
    scope = f"{group(estate)}/providers/Microsoft.Insights/privateLinkScopes/ampls-inference"
    estate.add(scope, {"accessModeSettings": dict(PRIVATE), "privateEndpointConnections": []}, location="global")
    add_endpoint(estate, f"{group(estate)}/{NETWORK}/privateEndpoints/pe-monitor", scope, "azuremonitor", "10.40.8.22")
    for number, member in enumerate(members):
        estate.add(f"{scope}/scopedResources/member-{number}", {"linkedResourceId": member})
    return scope


@plant("ampls-members", "high", also=SEEN_BY, spot=f"monitor-scope {MEASURING}")
def workspace_of_others_in_our_monitor_scope(estate: Estate) -> Named:
    """The private only monitor scope holds a workspace of others: a pod with its key sends there by our endpoint."""
    return f"{add_scope(estate, WORKSPACE)}/scopedResources/member-0"


@plant("ampls-members", "high", also=SEEN_BY, spot=f"monitor-scope {MEASURING}")
def application_insights_of_others_in_our_monitor_scope(estate: Estate) -> Named:
    """Beside a workspace of ours the scope holds an Application Insights resource of others."""
    component = f"{FOREIGN_PROVIDERS}/Microsoft.Insights/components/drop"
    estate.add(OUR_WORKSPACE, {}, location=LOCATION)
    return f"{add_scope(estate, OUR_WORKSPACE, component)}/scopedResources/member-1"


@plant("workspace-export", "high", also=SEEN_BY, spot=f"monitor-scope cluster-logs {MEASURING}")
def export_of_a_member_of_the_monitor_scope(estate: Estate) -> Named:
    """A workspace of ours, to which nothing of the cluster is sent but what a pod sends by the scope, exports."""
    estate.add(OUR_WORKSPACE, {}, location=LOCATION)
    add_scope(estate, OUR_WORKSPACE)
    return add_export(estate, OUR_WORKSPACE, SINK_ACCOUNT)


@plant("aks-monitoring", "medium", also=SEEN_BY, spot=f"monitor-scope {MEASURING}")
def defender_behind_the_private_link_of_azure_monitor(estate: Estate) -> Named:
    """Defender's sensor is on, and the only private link is that of Azure Monitor, which it does not use."""
    add_scope(estate)
    estate.properties(estate.cluster)["securityProfile"]["defender"] = {"securityMonitoring": {"enabled": True}}
    return estate.cluster


@plant("aks-monitoring", "medium", also=SEEN_BY, spot=f"monitor-scope {MEASURING}")
def prometheus_behind_an_empty_monitor_scope(estate: Estate) -> Named:
    """Managed Prometheus is on, and the monitor scope does not hold its data collection endpoint."""
    add_scope(estate)
    estate.properties(estate.cluster)["azureMonitorProfile"] = {"metrics": {"enabled": True}}
    return estate.cluster


@plant("disk-shared", "high", spot="disk")
def disk_shared_with_a_machine_outside(estate: Estate) -> Named:
    """A volume's disk is shared: a node and a machine of another team have it attached at once."""
    node = _share(estate, STAGING)
    estate.properties(VOLUME)["shareInfo"] = [{"vmUri": node}, {"vmUri": STAGING}]
    return VOLUME


@plant("disk-shared", "high", spot="disk")
def disk_shared_as_the_list_alone_shows(estate: Estate) -> Named:
    """The same, where only `managedByExtended` shows the machine outside."""
    _share(estate, STAGING)
    return VOLUME


@plant("disk-shared", "high", spot="instance")
def disk_of_another_group_on_a_node(estate: Estate) -> Named:
    """A shared disk in another group, which no volume names, is attached to a node and to a machine outside."""
    disk = STAGING.replace("virtualMachines/vm-staging", "disks/exchange")
    node = f"{estate.site.gpu_scale_set}/virtualMachines/0"
    add_disk(estate, disk, CLOSED, maxShares=2)
    estate[disk].update(managedBy=STAGING, managedByExtended=[STAGING, node])
    attached = {"lun": 0, "createOption": "Attach", "managedDisk": {"id": disk}}
    estate.properties(node)["storageProfile"] = {"dataDisks": [attached]}
    return disk


def _share(estate: Estate, *machines: str) -> str:
    """Makes the volume's disk a shared one, attached to a node and to these; returns the node."""
    if VOLUME not in estate:
        add_disk(estate, VOLUME, CLOSED)
    node = str(estate[VOLUME]["managedBy"])
    estate.properties(VOLUME)["maxShares"] = 3
    estate[VOLUME].update(managedByExtended=[node, *machines])
    return node


def share_between_nodes(estate: Estate) -> None:
    """The volume's disk is attached to two nodes at once."""
    _share(estate, f"{estate.site.gpu_scale_set}/virtualMachines/1")


def add_vault(estate: Estate, vault: str = VAULT, **properties: Any) -> str:
    """A key vault, or an HSM, behind a private endpoint in the network."""
    rules = {"defaultAction": "Deny", "bypass": "AzureServices"}
    closed = {"publicNetworkAccess": "Disabled", "networkAcls": rules, "privateEndpointConnections": []}
    estate.add(vault, {**closed, **properties}, location=LOCATION)
    is_hsm = "/managedHSMs/" in vault
    part, address = ("managedhsm", "10.40.8.31") if is_hsm else ("vault", "10.40.8.30")
    add_endpoint(estate, network(estate, "privateEndpoints", f"pe-{part}"), vault, part, address)
    return vault


@plant("vault-public", "high", also=SEEN_BY, spot="vault")
def vault_open_to_the_internet(estate: Estate) -> Named:
    """What a pod stores in the key vault behind our endpoint is read from the internet."""
    return add_vault(estate, publicNetworkAccess="Enabled", networkAcls={"defaultAction": "Allow"})


@plant("vault-public", "medium", also=SEEN_BY, spot="vault")
def vault_open_to_listed_addresses(estate: Estate) -> Named:
    """The rules of the key vault name addresses of the internet."""
    rules = {"defaultAction": "Deny", "bypass": "None", "ipRules": [{"value": "20.1.2.0/24"}]}
    return add_vault(estate, publicNetworkAccess="Enabled", networkAcls=rules)


@plant("vault-public", "high", also=SEEN_BY)
def hsm_open_to_the_internet(estate: Estate) -> Named:
    """The managed HSM behind our endpoint does not say that public access is off; it is on."""
    hsm = add_vault(estate, VAULT.replace("vaults/kv", "managedHSMs/hsm"), networkAcls=None)
    del estate.properties(hsm)["publicNetworkAccess"]
    return hsm


@plant("pe-stranger", "critical", also=SEEN_BY, spot="vault")
def stranger_at_the_vault(estate: Estate) -> Named:
    """An approved private endpoint of another tenant reads the key vault; public access is off."""
    return connect(estate, add_vault(estate))


@plant("event-foreign-sink", "high", also=SEEN_BY, spot="vault")
def names_of_secrets_to_a_webhook(estate: Estate) -> Named:
    """Event Grid calls an address of the internet with the name of every new secret."""
    return add_events(estate, add_vault(estate), webhook())


def _to(estate: Estate, kind: str, name: str, part: str) -> str:
    target = estate.add(f"{DATA_GROUP}/providers/{kind}/{name}", {}, location=LOCATION)
    return add_endpoint(estate, network(estate, "privateEndpoints", f"pe-{name}"), target, part, "10.40.8.26")


@plant("pe-relay-target", "high", also=SEEN_BY, spot="relay")
def private_endpoint_to_grafana(estate: Estate) -> Named:
    """A private endpoint leads to Managed Grafana of ours, whose alerts call any address."""
    return _to(estate, "Microsoft.Dashboard/grafana", "grafana", "grafana")


@plant("pe-relay-target", "high", also=SEEN_BY, spot="relay")
def private_endpoint_to_file_sync(estate: Estate) -> Named:
    """A private endpoint leads to a sync service of ours, which copies shares to file servers elsewhere."""
    return _to(estate, "Microsoft.StorageSync/storageSyncServices", "sync", "Afs")


@plant("pe-relay-target", "medium", also=SEEN_BY, spot="relay")
def private_endpoint_to_a_metrics_workspace(estate: Estate) -> Named:
    """A private endpoint leads to the queries of an Azure Monitor workspace of ours."""
    return _to(estate, "Microsoft.Monitor/accounts", "amw", "prometheusMetrics")


@plant("pls-exposed", "medium")
def private_link_service_that_approves_ours_unasked(estate: Estate) -> Named:
    """A private link service lets every endpoint of our own subscription in without an approval."""
    own = estate.cluster.split("/")[2]
    audience = {"visibility": {"subscriptions": [own]}, "autoApproval": {"subscriptions": [own]}}
    frontends = [{"id": f"{estate.site.balancer}/frontendIPConfigurations/internal"}]
    properties = {**audience, "privateEndpointConnections": [], "loadBalancerFrontendIpConfigurations": frontends}
    service = f"{estate.site.node_group}/{NETWORK}/privateLinkServices/pls-own"
    return estate.add(service, properties, location=LOCATION)


@plant("aks-managed-operators", "low")
def ai_toolchain_operator(estate: Estate) -> Named:
    """KAITO makes nodes and pulls weights for every user who may create a Workspace."""
    estate.properties(estate.cluster)["aiToolchainOperatorProfile"] = {"enabled": True}
    return estate.cluster


def add_perimeter(estate: Estate, *rules: dict[str, Any], member: str = "") -> str:
    """The account in a perimeter of ours that enforces these rules, with the account and perhaps another as members.

    Microsoft.Storage, NetworkSecurityPerimeterConfigurations_List; Microsoft.Network, NspAssociationList.
    """
    account, perimeter = estate.site.storage, f"{group(estate)}/{NETWORK}/networkSecurityPerimeters/perimeter"
    estate.properties(account)["publicNetworkAccess"] = "SecuredByPerimeter"
    estate.add(perimeter, {"perimeterGuid": "5f0c"}, location=LOCATION)
    shown = [{"name": f"rule-{number}", "properties": rule} for number, rule in enumerate(rules)]
    properties = {
        "networkSecurityPerimeter": {"id": perimeter, "perimeterGuid": "5f0c", "location": LOCATION},
        "resourceAssociation": {"name": "account", "accessMode": "Enforced"},
        "profile": {"name": "profile", "accessRulesVersion": 0, "accessRules": shown},
    }
    estate.add(f"{account}/networkSecurityPerimeterConfigurations/5f0c.account", properties)
    for name, resource in (("account", account), ("other", member)):
        if resource:
            association = {"accessMode": "Enforced", "privateLinkResource": {"id": resource}}
            estate.add(f"{perimeter}/resourceAssociations/{name}", association)
    return account


@plant("storage-public", "high", spot="storage:publicNetworkAccess")
def perimeter_that_lets_an_address_in(estate: Estate) -> Named:
    """The account is secured by a perimeter, whose rules let an address of the internet in."""
    return add_perimeter(estate, {"direction": "Inbound", "addressPrefixes": ["20.1.2.3/32"]})


@plant("storage-public", "high", spot="storage:publicNetworkAccess")
def perimeter_linked_with_one_of_others(estate: Estate) -> Named:
    """The perimeter of the account has a link with a perimeter of another subscription (Microsoft.Network, NspLink)."""
    account = add_perimeter(estate)
    other = f"{FOREIGN_PROVIDERS}/{NETWORK.rpartition('/')[2]}/networkSecurityPerimeters/theirs"
    link = {"autoApprovedRemotePerimeterResourceId": other, "localInboundProfiles": ["*"], "status": "Approved"}
    estate.add(f"{group(estate)}/{NETWORK}/networkSecurityPerimeters/perimeter/links/theirs", link)
    return account


@plant("storage-public", "high", spot="storage:publicNetworkAccess")
def perimeter_with_a_member_of_others(estate: Estate) -> Named:
    """The perimeter of the account has a member of another subscription, which reaches the account."""
    return add_perimeter(estate, member=SINK_ACCOUNT)
