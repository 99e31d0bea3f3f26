"""Private endpoints to our own resources that relay what they receive: into another network, or to other readers."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.endpoints.private import is_allowed
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import network_ids_of
from hermetic.audit.estate.arm_ids import is_arm_id, name_of, same_id, type_of
from hermetic.audit.estate.azure.private_link import LinkConnection, MonitorScope, PrivateEndpoint
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.azure.storage import FileShare, StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.hops import path_of
from hermetic.audit.policy import Policy
from hermetic.audit.private_links import each_private_endpoint

API_SERVER = "microsoft.containerservice/managedclusters"

# These keep what is sent to them; all but the vaults are evaluated by checks of their own.
ENDS = {
    kind.lower()
    for kind in (
        Registry.TYPE,
        StorageAccount.TYPE,
        FileShare.TYPE,
        MonitorScope.TYPE,
        "Microsoft.KeyVault/vaults",
        "Microsoft.KeyVault/managedHSMs",
    )
}

# Kinds behind Private Link that relay: by type, in lower case, what they do with what is sent to them.
RELAYS = {
    "microsoft.network/privatelinkservices": "its load balancer passes packets on into another network",
    "microsoft.network/applicationgateways": "it passes requests on to its backends",
    "microsoft.web/sites": "its code can call any address",
    "microsoft.web/staticsites": "its code can call any address",
    "microsoft.web/hostingenvironments": "the code in it can call any address",
    "microsoft.app/managedenvironments": "the containers in it can call any address",
    "microsoft.apimanagement/service": "it passes requests on to its backends",
    "microsoft.relay/namespaces": "a hybrid connection ends at its listener, which runs anywhere",
    "microsoft.eventhub/namespaces": "any consumer reads what was sent, wherever it runs",
    "microsoft.servicebus/namespaces": "any receiver reads what was sent, wherever it runs",
    "microsoft.eventgrid/topics": "it delivers events to handlers elsewhere",
    "microsoft.eventgrid/domains": "it delivers events to handlers elsewhere",
    "microsoft.eventgrid/namespaces": "it delivers events to handlers elsewhere",
    "microsoft.eventgrid/partnernamespaces": "it delivers events to handlers elsewhere",
    "microsoft.devices/iothubs": "it passes messages on between devices and routes elsewhere",
    "microsoft.devices/provisioningservices": "it sends devices on to hubs elsewhere",
    "microsoft.signalrservice/signalr": "it passes messages on to every client",
    "microsoft.signalrservice/webpubsub": "it passes messages on to every client",
    "microsoft.datafactory/factories": "its pipelines copy to other stores",
    "microsoft.databricks/workspaces": "its clusters and notebooks can call any address",
    "microsoft.synapse/workspaces": "its pipelines copy to other stores",
    "microsoft.synapse/privatelinkhubs": "its studio leads to other workspaces",
    "microsoft.machinelearningservices/workspaces": "its endpoints and jobs can call any address",
    "microsoft.machinelearningservices/registries": "it shares models with other workspaces",
    "microsoft.cognitiveservices/accounts": "it processes prompts outside the network, and its agents call tools",
    "microsoft.search/searchservices": "its indexers and skills call other services",
    "microsoft.botservice/botservices": "it passes messages on to channels",
    "microsoft.sql/servers": "its data is read, and its procedures call, from elsewhere",
    "microsoft.sql/managedinstances": "its data is read, and its procedures call, from elsewhere",
    "microsoft.dbforpostgresql/servers": "its data is read, and its extensions call, from elsewhere",
    "microsoft.dbforpostgresql/flexibleservers": "its data is read, and its extensions call, from elsewhere",
    "microsoft.dbforpostgresql/servergroupsv2": "its data is read, and its extensions call, from elsewhere",
    "microsoft.dbformysql/servers": "its data is read and replicated elsewhere",
    "microsoft.dbformysql/flexibleservers": "its data is read and replicated elsewhere",
    "microsoft.dbformariadb/servers": "its data is read and replicated elsewhere",
    "microsoft.documentdb/databaseaccounts": "its data is read and replicated elsewhere",
    "microsoft.documentdb/mongoclusters": "its data is read and replicated elsewhere",
    "microsoft.cache/redis": "its data is read and replicated elsewhere",
    "microsoft.cache/redisenterprise": "its data is read and replicated elsewhere",
    "microsoft.kusto/clusters": "its data is read, and its callouts go, elsewhere",
    "microsoft.fabric/privatelinkservicesforfabric": "its pipelines copy to other stores",
    "microsoft.powerbi/privatelinkservicesforpowerbi": "its reports are read elsewhere",
    "microsoft.purview/accounts": "its scans are read elsewhere",
    "microsoft.appconfiguration/configurationstores": "its values are read elsewhere",
    "microsoft.batch/batchaccounts": "its pools run code elsewhere",
    "microsoft.automation/automationaccounts": "its runbooks can call any address",
    "microsoft.logic/integrationaccounts": "its workflows can call any address",
    "microsoft.recoveryservices/vaults": "it restores to machines elsewhere",
    "microsoft.dataprotection/backupvaults": "it restores to machines elsewhere",
    "microsoft.hybridcompute/privatelinkscopes": "it leads to the machines of Azure Arc",
    "microsoft.desktopvirtualization/hostpools": "its sessions are used elsewhere",
    "microsoft.desktopvirtualization/workspaces": "its sessions are used elsewhere",
    "microsoft.digitaltwins/digitaltwinsinstances": "it routes events elsewhere",
    "microsoft.healthcareapis/workspaces": "its data is read and exported elsewhere",
    "microsoft.healthcareapis/services": "its data is read and exported elsewhere",
    "microsoft.media/mediaservices": "it streams to viewers elsewhere",
    API_SERVER: "it is the API server of another cluster, whose pods and nodes it leads to",
}


@check_each("pe-relay-target", each_private_endpoint)
def pe_relay_target(estate: Estate, policy: Policy, endpoint: PrivateEndpoint) -> Iterator[CheckResult]:
    """Every private endpoint in the networks and their peers that leads to a resource of our subscriptions."""
    if not endpoint.connections:
        yield unknown(endpoint.id, "NoConnection", "the answer names nothing that it leads to", endpoint)
    for connection in endpoint.connections:
        yield _target(estate, policy, endpoint, connection)


def _target(estate: Estate, policy: Policy, endpoint: PrivateEndpoint, connection: LinkConnection) -> CheckResult:
    target = connection.private_link_service_id or ""
    if not target:
        return unknown(endpoint.id, "TargetNotNamed", "a connection does not show where it leads", endpoint)
    if is_allowed(policy, target):
        return passes(endpoint.id, "TargetAllowed", f"the policy allows {target}", endpoint)
    if not is_arm_id(target) or not policy.owns(target, estate.cluster, *network_ids_of(estate)):
        words = f"{target} is not ours, which pe-foreign-target evaluates"
        return does_not_apply(endpoint.id, "TargetNotOurs", words, endpoint)
    if same_id(target, estate.cluster):
        return passes(endpoint.id, "ApiServer", "it leads to the cluster's own API server", endpoint)
    return _by_kind(endpoint, target)


def _by_kind(endpoint: PrivateEndpoint, target: str) -> CheckResult:
    kind = type_of(target).lower()
    if kind in ENDS:
        return passes(endpoint.id, "TargetEnds", f"what is sent to {target} stays there", endpoint)
    reason = next((words for known, words in RELAYS.items() if kind == known or kind.startswith(f"{known}/")), "")
    if reason:
        path = path_of(hops.private_endpoint(f"private endpoint {endpoint.name}"), name_of(target), "elsewhere")
        return fails(endpoint.id, "TargetRelays", f"it leads to {target}: {reason}", endpoint, paths=(path,))
    words = f"it leads to {target}: whether a resource of this type sends on what it is given is not known"
    return unknown(endpoint.id, "KindUnknown", words, endpoint)
