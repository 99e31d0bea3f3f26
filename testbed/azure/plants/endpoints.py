"""Table F, first half: service endpoints, private endpoints, private link services, monitor scopes."""

from __future__ import annotations

from testbed.azure.baseline.layout import LOCATION, NETWORK, WORKLOAD
from testbed.azure.baseline.services import add_endpoint
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import FOREIGN, group, in_node_group, network
from testbed.azure.plants.plant import Named, plant

SEEN_BY = ("effective-routes", "nexthop-spotcheck")


@plant("svc-endpoint-storage", "critical", also=SEEN_BY, spot="service-endpoint")
def service_endpoint_to_storage(estate: Estate) -> Named:
    """The GPU subnet has a service endpoint to storage: any account of any tenant, above every route."""
    return _service(estate, "Microsoft.Storage")


@plant("svc-endpoint-storage", "critical", also=SEEN_BY, spot="service-endpoint")
def service_endpoint_to_storage_everywhere(estate: Estate) -> Named:
    """The same across regions."""
    return _service(estate, "Microsoft.Storage.Global")


@plant("svc-endpoint-storage", "medium", also=SEEN_BY, spot="service-endpoint")
def service_endpoint_with_an_exact_policy(estate: Estate) -> Named:
    """A policy limits the service endpoint to our account, in the regions of the endpoint."""
    _service(estate, "Microsoft.Storage")
    _policy(estate, estate.site.storage)
    return estate.site.gpu_subnet


@plant("svc-endpoint-policy-scope", "medium", also=(*SEEN_BY, "svc-endpoint-storage"), spot="service-endpoint")
def service_endpoint_with_a_wide_policy(estate: Estate) -> Named:
    """The policy of the service endpoint names a whole subscription."""
    _service(estate, "Microsoft.Storage")
    return _policy(estate, f"/subscriptions/{WORKLOAD}")


@plant("svc-endpoint-other", "high", also=SEEN_BY, spot="service-endpoint")
def service_endpoint_to_key_vault(estate: Estate) -> Named:
    """The GPU subnet has a service endpoint to Key Vault: any tenant's."""
    return _service(estate, "Microsoft.KeyVault")


def _service(estate: Estate, service: str) -> str:
    entry = {"service": service, "locations": [LOCATION], "provisioningState": "Succeeded"}
    estate.properties(estate.site.gpu_subnet)["serviceEndpoints"] = [entry]
    return estate.site.gpu_subnet


def _policy(estate: Estate, resource: str) -> str:
    policy = network(estate, "serviceEndpointPolicies", "sep-inference")
    properties = {"service": "Microsoft.Storage", "serviceResources": [resource]}
    definition = {"name": "storage", "properties": properties}
    held = {"serviceEndpointPolicyDefinitions": [definition], "subnets": [{"id": estate.site.gpu_subnet}]}
    estate.add(policy, held, location=LOCATION)
    estate.properties(estate.site.gpu_subnet)["serviceEndpointPolicies"] = [{"id": policy}]
    return policy


@plant("pe-foreign-target", "critical", also=SEEN_BY)
def private_endpoint_to_another_tenant(estate: Estate) -> Named:
    """A private endpoint in the network leads to a storage account in another tenant's subscription."""
    provider = "providers/Microsoft.Storage/storageAccounts"
    target = f"/subscriptions/{FOREIGN}/resourceGroups/rg-drop/{provider}/stdrop"
    endpoint = network(estate, "privateEndpoints", "pe-partner")
    return add_endpoint(estate, endpoint, target, "blob", "10.40.8.20")


@plant("pe-foreign-target", "critical", also=SEEN_BY)
def private_endpoint_by_alias(estate: Estate) -> Named:
    """A private endpoint was asked for by alias and approved by hand on the other side."""
    endpoint = network(estate, "privateEndpoints", "pe-alias")
    alias = "relay.3f0c1b52-71d8-4e0a-9c64-8a5d27f9be13.swedencentral.azure.privatelinkservice"
    add_endpoint(estate, endpoint, alias, "", "10.40.8.21")
    properties = estate.properties(endpoint)
    properties["manualPrivateLinkServiceConnections"] = properties["privateLinkServiceConnections"]
    properties["privateLinkServiceConnections"] = []
    return endpoint


@plant("pls-exposed", "high")
def private_link_service_for_everyone(estate: Estate) -> Named:
    """A private link service offers our workload to every subscription."""
    properties = {
        "visibility": {"subscriptions": ["*"]},
        "autoApproval": {"subscriptions": []},
        "enableProxyProtocol": False,
        "privateEndpointConnections": [],
        "loadBalancerFrontendIpConfigurations": [{"id": f"{estate.site.balancer}/frontendIPConfigurations/internal"}],
    }
    return estate.add(in_node_group("privateLinkServices", "pls-serving"), properties, location=LOCATION)


# with a private path to Azure Monitor, data collection is not reported
MEASURING = "cluster:azureMonitorProfile cluster:securityProfile cluster:addonProfiles"


@plant("ampls-open", "high", also=SEEN_BY, spot=f"monitor-scope {MEASURING}")
def monitor_scope_in_open_mode(estate: Estate) -> Named:
    """The network's monitor scope is open: logs can be sent to any tenant's workspace."""
    scope = f"{group(estate)}/providers/Microsoft.Insights/privateLinkScopes/ampls-inference"
    modes = {"ingestionAccessMode": "Open", "queryAccessMode": "PrivateOnly", "exclusions": []}
    estate.add(scope, {"accessModeSettings": modes, "privateEndpointConnections": []}, location="global")
    endpoint = f"{group(estate)}/{NETWORK}/privateEndpoints/pe-monitor"
    add_endpoint(estate, endpoint, scope, "azuremonitor", "10.40.8.22")
    return scope
