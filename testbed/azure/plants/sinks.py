"""Logs, copies of packets and code on machines: what Azure sends and runs beside the network."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.network import add_machine
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import FOREIGN, instance_nics
from testbed.azure.plants.plant import Named, plant

FOREIGN_PROVIDERS = f"/subscriptions/{FOREIGN}/resourceGroups/rg-soc/providers"
WORKSPACE = f"{FOREIGN_PROVIDERS}/Microsoft.OperationalInsights/workspaces/logs"


def diagnostic_setting(estate: Estate, resource: str, **sink: str) -> str:
    """A diagnostic setting of a resource."""
    setting = f"{resource}/providers/Microsoft.Insights/diagnosticSettings/to-soc"
    logs = [{"category": "kube-audit", "enabled": True}]
    return estate.add(setting, {**sink, "logs": logs, "metrics": []})


@plant("diag-foreign-sink", "high")
def cluster_logs_to_a_workspace_of_others(estate: Estate) -> Named:
    """The cluster's logs are sent to a workspace of another subscription."""
    return diagnostic_setting(estate, estate.cluster, workspaceId=WORKSPACE)


@plant("diag-foreign-sink", "high")
def collected_logs_to_a_workspace_of_others(estate: Estate) -> Named:
    """A data collection rule of ours sends what the agents collect to a workspace of another subscription."""
    return _collected(estate, estate.cluster, logAnalytics=[{"workspaceResourceId": WORKSPACE, "name": "soc"}])


@plant("diag-foreign-sink", "high")
def logs_of_nodes_to_an_event_hub_of_others(estate: Estate) -> Named:
    """What an agent on the nodes collects is sent to an event hub of another subscription."""
    hub = f"{FOREIGN_PROVIDERS}/Microsoft.EventHub/namespaces/hub/eventhubs/logs"
    return _collected(estate, estate.site.gpu_scale_set, eventHubs=[{"eventHubResourceId": hub, "name": "soc"}])


@plant("diag-foreign-sink", "high")
def collected_metrics_to_an_account_of_others(estate: Estate) -> Named:
    """Managed Prometheus sends to an Azure Monitor workspace of another subscription."""
    account = f"{FOREIGN_PROVIDERS}/Microsoft.Monitor/accounts/metrics"
    return _collected(
        estate, estate.cluster, monitoringAccounts=[{"accountResourceId": account, "name": "MonitoringAccount1"}]
    )


@plant("diag-foreign-sink", "high")
def collected_logs_to_fabric(estate: Estate) -> Named:
    """Logs are sent to a database of Microsoft Fabric, which is in no subscription."""
    uri = "https://abc.z1.kusto.fabric.microsoft.com"
    properties = {
        "ingestionUri": uri,
        "databaseName": "logs",
        "artifactId": FOREIGN,
        "tenantId": FOREIGN,
        "name": "fabric",
    }
    return _collected(estate, estate.cluster, microsoftFabric=[properties])


def _collected(estate: Estate, target: str, **destinations: list[dict[str, str]]) -> str:
    """Azure/azure-rest-api-specs, Insights 2024-03-11, examples DataCollectionRuleAssociationsListByResource."""
    insights, (kind,) = "providers/Microsoft.Insights", destinations
    rule = f"{estate.cluster.partition('/providers/')[0]}/{insights}/dataCollectionRules/{kind}"
    estate.add(rule, {"destinations": destinations, "dataFlows": []}, location="westeurope")
    association = f"{target}/{insights}/dataCollectionRuleAssociations/{kind}"
    return estate.add(association, {"dataCollectionRuleId": rule})


@plant("diag-foreign-sink", "high")
def registry_logs_to_an_event_hub_of_others(estate: Estate) -> Named:
    """The registry's logs are sent to an event hub of another subscription."""
    rule = f"{FOREIGN_PROVIDERS}/Microsoft.EventHub/namespaces/hub/authorizationrules/RootManageSharedAccessKey"
    return diagnostic_setting(estate, estate.site.registry, eventHubAuthorizationRuleId=rule)


@plant("diag-foreign-sink", "high")
def network_logs_to_a_partner(estate: Estate) -> Named:
    """The network's measurements are sent to a partner's solution in our own subscription."""
    partner = f"{estate.site.vnet.partition('/providers/')[0]}/providers/Microsoft.Datadog/monitors/dd"
    return diagnostic_setting(estate, estate.site.vnet, marketplacePartnerId=partner)


def _has_flow_logs(estate: Estate) -> bool:
    return bool(estate.properties(estate.site.vnet).get("flowLogs"))


@plant("diag-foreign-sink", "high", fits=_has_flow_logs, spot="flow-log")
def flow_log_to_an_account_of_others(estate: Estate) -> Named:
    """The flow log of the network is written into an account of another subscription."""
    log = str(estate.properties(estate.site.vnet)["flowLogs"][0]["id"])
    estate.properties(log)["storageId"] = f"{FOREIGN_PROVIDERS}/Microsoft.Storage/storageAccounts/stsoc"
    return log


@plant("diag-foreign-sink", "high", needs=("node_rules",))
def security_group_logs_to_a_workspace_of_others(estate: Estate) -> Named:
    """The events of the nodes' security group are sent to a workspace of another subscription."""
    return diagnostic_setting(estate, estate.site.node_rules, workspaceId=WORKSPACE)


@plant("diag-foreign-sink", "high")
def load_balancer_logs_to_an_account_of_others(estate: Estate) -> Named:
    """What a load balancer of the nodes measures is sent to an account of another subscription."""
    group = estate.site.node_group.lower()
    balancers = sorted(
        one["id"] for one in estate.of_type("Microsoft.Network/loadBalancers") if one["id"].lower().startswith(group)
    )
    return diagnostic_setting(
        estate, balancers[0], storageAccountId=f"{FOREIGN_PROVIDERS}/Microsoft.Storage/storageAccounts/stsoc"
    )


@plant("vmss-extensions", "high", also=("vm-pivot",), spot="effective-rules")
def extension_on_a_machine_that_stands_alone(estate: Estate) -> Named:
    """A node that is no instance of a scale set runs code of a publisher that is not AKS.

    Azure/azure-rest-api-specs, Compute 2025-04-01, examples VirtualMachineExtension_List.
    """
    nic = f"{estate.site.node_group}/providers/Microsoft.Network/networkInterfaces/aks-alone-0"
    machine = add_machine(estate, "aks-alone-0", nic, estate.site.gpu_subnet, "10.40.1.210")
    properties = {"publisher": "Contoso.Tools", "type": "AgentLinux", "typeHandlerVersion": "1.0", "settings": {}}
    estate.add(f"{machine}/extensions/extra", properties)
    return machine


@plant("vmss-extensions", "high", also=("vm-pivot",), spot="effective-rules")
def run_command_kept_at_a_machine_that_stands_alone(estate: Estate) -> Named:
    """A node that is no instance of a scale set has a run command that its agent has not reported yet.

    Azure/azure-rest-api-specs, Compute 2025-04-01, VirtualMachineRunCommands_ListByVirtualMachine.
    """
    nic = f"{estate.site.node_group}/providers/Microsoft.Network/networkInterfaces/aks-alone-0"
    machine = add_machine(estate, "aks-alone-0", nic, estate.site.gpu_subnet, "10.40.1.210")
    source = {"scriptUri": "https://ststranger.blob.core.windows.net/x/tunnel.sh"}
    estate.add(f"{machine}/runCommands/tunnel", {"source": source, "asyncExecution": True, "timeoutInSeconds": 0})
    return machine


@plant("vmss-extensions", "high", spot="extension")
def extension_of_another_publisher(estate: Estate) -> Named:
    """Every GPU node runs foreign code as root."""
    return _extension(estate, "Contoso.Tools", "AgentLinux")


@plant("vmss-extensions", "high", spot="extension")
def second_custom_script(estate: Estate) -> Named:
    """Every GPU node runs a script from a public address, beside the one of AKS."""
    return _extension(estate, "Microsoft.Azure.Extensions", "CustomScript", fileUris=["https://x.example/a.sh"])


@plant("vmss-extensions", "medium", spot="extension agent")
def monitoring_agent_on_nodes(estate: Estate) -> Named:
    """A policy of the tenant has put the agent of Azure Monitor onto the nodes."""
    return _extension(estate, "Microsoft.Azure.Monitor", "AzureMonitorLinuxAgent")


def _extension(estate: Estate, publisher: str, kind: str, **settings: Any) -> str:
    profile = estate.properties(estate.site.gpu_scale_set)["virtualMachineProfile"]["extensionProfile"]
    profile["extensions"].append(
        {"name": "extra", "properties": {"publisher": publisher, "type": kind, "settings": settings}}
    )
    return estate.site.gpu_scale_set


@plant("vmss-extensions", "high", spot="instance")
def run_command_on_one_node(estate: Estate) -> Named:
    """A user ran a command on one GPU node through ARM: neither the scale set nor a list of extensions shows it."""
    return _on_one_node(estate, "Microsoft.CPlat.Core.RunCommandLinux")


@plant("vmss-extensions", "high", spot="instance")
def managed_run_command_on_one_node(estate: Estate) -> Named:
    """A run command that Azure keeps beside one GPU node, and runs again with each new version of it."""
    return _on_one_node(estate, "Microsoft.CPlat.Core.RunCommandHandlerLinux")


@plant("vmss-extensions", "high", spot="instance")
def extension_of_one_node(estate: Estate) -> Named:
    """An extension of a single instance, which the model of its scale set does not have."""
    node, kind = _on_one_node(estate, "Contoso.Tools.Forwarder"), "Microsoft.Compute/virtualMachines/extensions"
    own = {"name": "forwarder", "type": kind, "properties": {"publisher": "Contoso.Tools", "type": "Forwarder"}}
    estate[node]["resources"] = [{"id": f"{node}/extensions/forwarder", **own}]
    return node


@plant("vmss-extensions", "medium", spot="instance agent")
def monitoring_agent_on_one_node(estate: Estate) -> Named:
    """The agent of Azure Monitor was put onto one node."""
    return _on_one_node(estate, "Microsoft.Azure.Monitor.AzureMonitorLinuxAgent")


def _on_one_node(estate: Estate, kind: str) -> str:
    """The agent of one GPU node reports one handler more; the others share their report, so it is replaced."""
    node = f"{estate.site.gpu_scale_set}/virtualMachines/0"
    view = estate.properties(node)["instanceView"]
    agent = view["vmAgent"]
    handlers = [*agent["extensionHandlers"], {"type": kind, "typeHandlerVersion": "1.0"}]
    estate.properties(node)["instanceView"] = {**view, "vmAgent": {**agent, "extensionHandlers": handlers}}
    return node


@plant("vmss-boot-diagnostics", "high")
def serial_console_in_an_account_of_others(estate: Estate) -> Named:
    """What root writes to the console of a node is stored in an account that is not ours."""
    profile = estate.properties(estate.site.gpu_scale_set)["virtualMachineProfile"]
    kept = {"enabled": True, "storageUri": "https://ststranger.blob.core.windows.net/"}
    profile["diagnosticsProfile"] = {"bootDiagnostics": kept}
    return estate.site.gpu_scale_set


@plant("nic-tap", "high")
def tapped_node(estate: Estate) -> Named:
    """All packets of a node are copied to a collector."""
    nic = instance_nics(estate)[0]
    tap = f"{FOREIGN_PROVIDERS}/Microsoft.Network/virtualNetworkTaps/tap"
    configuration = {"id": f"{nic}/tapConfigurations/copy", "properties": {"virtualNetworkTap": {"id": tap}}}
    estate.properties(nic)["tapConfigurations"] = [configuration]
    return nic


@plant("packet-capture", "high", spot="capture", needs=("watcher",))
def capture_into_an_account_of_others(estate: Estate) -> Named:
    """Packets of GPU nodes are captured into an account of another subscription."""
    return _capture(estate, storageId=f"{FOREIGN_PROVIDERS}/Microsoft.Storage/storageAccounts/stsoc")


@plant("packet-capture", "medium", spot="capture", needs=("watcher",))
def capture_that_was_left_on(estate: Estate) -> Named:
    """Packets of GPU nodes are captured into our own account."""
    return _capture(estate, storageId=estate.site.storage)


def _capture(estate: Estate, **kept: str) -> str:
    properties = {"target": estate.site.gpu_scale_set, "targetType": "AzureVMSS", "storageLocation": kept}
    return estate.add(f"{estate.site.watcher}/packetCaptures/nodes", properties)
