"""What becomes of data behind a private endpoint, by the type of its target: a decision and its reason for each type.

The types are those of a documented table (Azure, What is a private endpoint, private-link resource). A type that is in
none of these tables is Unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from hermetic.audit.estate.azure.key_vaults import KeyVault, ManagedHsm
from hermetic.audit.estate.azure.private_link import DEFENDER, MonitorScope
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.azure.storage import DiskAccess, FileShare, StorageAccount

API_SERVER = "microsoft.containerservice/managedclusters"

# Types at which traffic ends, by type in lower case, and why. Types and group ids: Azure, What is a private endpoint,
# private-link resource.
ENDS = {
    kind.lower(): reason
    for kind, reason in (
        (Registry.TYPE, "the checks of registries evaluate who reads it"),
        (StorageAccount.TYPE, "the checks of storage evaluate who reads it"),
        (FileShare.TYPE, "the checks of storage evaluate who reads it"),
        (MonitorScope.TYPE, "ampls-open and ampls-members evaluate who receives it"),
        (DiskAccess.TYPE, "a disk access gives out what is on disks; disk-export evaluates who reads it"),
        (KeyVault.TYPE, "vault-public and pe-stranger evaluate who reads it"),
        (ManagedHsm.TYPE, "vault-public and pe-stranger evaluate who reads it"),
        (DEFENDER, "Defender for Cloud of our tenant receives it"),
        ("Microsoft.Attestation/attestationProviders", "it verifies evidence, and keeps nothing that a client sends"),
    )
}

# Kinds behind Private Link that relay: by type, in lower case, what they do with what is sent to them.
RELAYS: Mapping[str, str] = {
    "microsoft.dashboard/grafana": "its data sources and its alerts call other addresses",
    "microsoft.storagesync/storagesyncservices": "file servers elsewhere keep copies of the shares that it syncs",
    "microsoft.hdinsight/clusters": "its jobs can call any address",
    "microsoft.iotcentral/iotapps": "it exports what devices send to other services",
    "microsoft.deviceupdate/accounts": "it hands files to devices elsewhere",
    "microsoft.videoindexer/accounts": "its results are read elsewhere",
    "microsoft.elasticsan/elasticsans": "its volumes are attached to machines elsewhere",
    "microsoft.migrate/assessmentprojects": "it collects inventories, which are read elsewhere",
    "microsoft.migrate/migrateprojects": "it collects inventories, which are read elsewhere",
    "microsoft.offazure/mastersites": "it collects inventories, which are read elsewhere",
    "microsoft.kubernetesconfiguration/privatelinkscopes": "it leads to the clusters of Azure Arc",
    "microsoft.openenergyplatform/energyservices": "its data is read elsewhere",
    "microsoft.healthdataaiservices/deidservices": "its jobs copy documents between storage accounts",
    "microsoft.azurecosmosdb/databaseaccounts": "its data is read and replicated elsewhere",
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


# Types whose private endpoint answers queries only, by type in lower case, and what remains: medium.
QUERIED: Mapping[str, str] = {
    "microsoft.monitor/accounts": "it answers queries about metrics; dashboards and alert rules read the same metrics",
}


def is_relay(kind: str) -> bool:
    """Whether a resource of this type (in lower case), or of a type above it, relays or answers what it is sent."""
    return any(kind == decided or kind.startswith(f"{decided}/") for decided in (*RELAYS, *QUERIED))
