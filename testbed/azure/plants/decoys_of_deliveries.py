"""What looks like a delivery of Azure to others, and is none: the benign twins of `deliveries`."""

from __future__ import annotations

from testbed.azure.baseline.layout import COMPUTE, DATA_GROUP, LOCATION
from testbed.azure.baseline.services import add_endpoint
from testbed.azure.estate import Estate
from testbed.azure.plants.decoys import decoy
from testbed.azure.plants.deliveries import (
    OUR_WORKSPACE,
    STAGING,
    add_events,
    add_export,
    add_perimeter,
    add_scope,
    add_vault,
    add_workspace,
    share_between_nodes,
    to_resource,
)
from testbed.azure.plants.pieces import network
from testbed.azure.plants.sinks import diagnostic_setting


@decoy(lambda estate: bool(estate.site.dns_policy))
def names_logged_to_a_workspace_of_ours(estate: Estate) -> None:
    """The DNS security policy logs to a workspace of ours, which exports to an account of ours."""
    diagnostic_setting(estate, estate.site.dns_policy, workspaceId=add_workspace(estate))
    add_export(estate, OUR_WORKSPACE, estate.site.storage)


@decoy()
def events_kept_in_a_queue_of_ours(estate: Estate) -> None:
    """Events of the account, and those that cannot be delivered, are kept in an account of ours."""
    held = add_events(estate, estate.site.storage, to_resource("StorageQueue", estate.site.storage), "kept")
    estate.properties(held)["deadLetterDestination"] = to_resource("StorageBlob", estate.site.storage)


@decoy()
def events_of_another_account(estate: Estate) -> None:
    """A system topic of another team's account calls a webhook."""
    topic = STAGING.replace("Microsoft.Compute/virtualMachines/vm-staging", "Microsoft.EventGrid/systemTopics/other")
    source = STAGING.replace(
        "Microsoft.Compute/virtualMachines/vm-staging", "Microsoft.Storage/storageAccounts/stother"
    )
    estate.add(topic, {"source": source, "topicType": "Microsoft.Storage.StorageAccounts"})
    webhook = {"endpointType": "WebHook", "properties": {"endpointBaseUrl": "https://other.example/in"}}
    estate.add(f"{topic}/eventSubscriptions/other", {"destination": webhook})


@decoy()
def monitor_scope_with_members_of_ours(estate: Estate) -> None:
    """The private only monitor scope holds a workspace and a data collection endpoint of ours."""
    estate.add(OUR_WORKSPACE, {}, location=LOCATION)
    endpoint = f"{DATA_GROUP}/providers/Microsoft.Insights/dataCollectionEndpoints/dce-inference"
    add_scope(estate, OUR_WORKSPACE, endpoint)


@decoy()
def disk_shared_between_nodes(estate: Estate) -> None:
    """A volume that two nodes have attached at once."""
    share_between_nodes(estate)


@decoy()
def private_endpoint_to_a_disk_access(estate: Estate) -> None:
    """Disks are exported by a private endpoint of ours only; disk-export evaluates who reads."""
    access = f"{DATA_GROUP}/{COMPUTE}/diskAccesses/access-own"
    estate.add(access, {"privateEndpointConnections": []}, location=LOCATION)
    add_endpoint(estate, network(estate, "privateEndpoints", "pe-disks"), access, "disks", "10.40.8.27")


@decoy(settles=("defender", "defender_behind_the_private_link_of_azure_monitor"))
def defender_behind_a_private_link_of_its_own(estate: Estate) -> None:
    """Defender's sensor sends by its own private link."""
    link = estate.add(f"{DATA_GROUP}/providers/Microsoft.Security/privateLinks/defender", {}, location=LOCATION)
    add_endpoint(estate, network(estate, "privateEndpoints", "pe-defender"), link, "containers", "10.40.8.28")
    estate.properties(estate.cluster)["securityProfile"]["defender"] = {"securityMonitoring": {"enabled": True}}


@decoy()
def vault_that_trusts_services_of_azure(estate: Estate) -> None:
    """A closed key vault of ours, whose exception for services of Azure is on."""
    add_vault(estate)


@decoy()
def account_in_a_perimeter_of_ours(estate: Estate) -> None:
    """The perimeter of the account lets our own subscription in, and has no member of others."""
    own = "/".join(estate.cluster.split("/")[:3])
    add_perimeter(estate, {"direction": "Inbound", "subscriptions": [{"id": own}]})
