"""Private Link past table F: foreign endpoints at our stores, and endpoints to resources of ours that relay.

How connections are shown: the provider's own description of `privateEndpointConnections` (registry 2025-11-01, storage
2025-01-01, file shares 2026-06-01, private link scopes 2021-07-01-preview), AKS REST API 2026-05-01, Private Endpoint
Connections - List.
"""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import DATA_GROUP, LOCATION, NETWORK, NETWORK_GROUP
from testbed.azure.baseline.services import add_endpoint
from testbed.azure.estate import Estate
from testbed.azure.plants.endpoints import MEASURING, SEEN_BY
from testbed.azure.plants.pieces import FOREIGN, group, network
from testbed.azure.plants.plant import Change, Named, plant

FOREIGN_ENDPOINT = f"/subscriptions/{FOREIGN}/resourceGroups/rg-x/{NETWORK}/privateEndpoints/pe-x"
PRIVATE = {"ingestionAccessMode": "PrivateOnly", "queryAccessMode": "PrivateOnly", "exclusions": []}

# (part of the site, what it is called)
STORES = (("registry", "registry"), ("storage", "storage account"), ("share", "file share"))
# (name, type, part, what was opened)
RELAYS = (
    ("pls-proxy", "Microsoft.Network/privateLinkServices", "", "a Private Link service before a proxy"),
    ("func-forward", "Microsoft.Web/sites", "sites", "a function app"),
    ("apim-inference", "Microsoft.ApiManagement/service", "Gateway", "an API gateway"),
    ("relay-inference", "Microsoft.Relay/namespaces", "namespace", "a relay namespace"),
    ("evh-inference", "Microsoft.EventHub/namespaces", "namespace", "an event hub"),
    ("sb-inference", "Microsoft.ServiceBus/namespaces", "namespace", "a message queue"),
    ("adf-inference", "Microsoft.DataFactory/factories", "dataFactory", "a data factory"),
    ("ai-inference", "Microsoft.CognitiveServices/accounts", "account", "an AI service"),
    ("dbw-inference", "Microsoft.Databricks/workspaces", "databricks_ui_api", "a Databricks workspace"),
    ("srch-inference", "Microsoft.Search/searchServices", "searchService", "a search service"),
    ("sql-inference", "Microsoft.Sql/servers", "sqlServer", "a database server"),
    ("aks-other", "Microsoft.ContainerService/managedClusters", "management", "another cluster's API server"),
)  # fmt: skip


def connect(estate: Estate, target: str, status: str = "Approved", consumer: str = FOREIGN_ENDPOINT) -> str:
    """A connection as its target shows it, by default of another tenant's endpoint."""
    state = {"description": "", "actionsRequired": "None", "status": status}
    properties = {"privateEndpoint": {"id": consumer}, "privateLinkServiceConnectionState": state}
    estate.add(f"{target}/privateEndpointConnections/partner.5d21", properties)
    return target


def _stranger(part: str, subject: str) -> Change:
    def change(estate: Estate) -> Named:
        return connect(estate, getattr(estate.site, part))

    change.__name__ = f"stranger_at_the_{part}"
    change.__doc__ = f"An approved private endpoint of another tenant reads the {subject}; public access is off."
    return change


for _part, _what in STORES:
    plant("pe-stranger", "critical", spot=f"{_part}:connections")(_stranger(_part, _what))


def _has_a_private_link(estate: Estate) -> bool:
    return not estate.properties(estate.cluster)["apiServerAccessProfile"].get("enableVnetIntegration")


@plant("pe-stranger", "critical", spot="cluster:connections cluster:apiServerAccessProfile", fits=_has_a_private_link)
def stranger_at_the_api_server(estate: Estate) -> Named:
    """An approved private endpoint of another tenant leads to the API server."""
    return connect(estate, estate.cluster)


@plant("pe-stranger", "medium", spot="registry:connections")
def stranger_that_waits(estate: Estate) -> Named:
    """A private endpoint of another tenant waits to be let in to the registry."""
    return connect(estate, estate.site.registry, "Pending")


@plant("pe-stranger", "critical", also=SEEN_BY, spot=f"monitor-scope {MEASURING}")
def stranger_at_the_monitor_scope(estate: Estate) -> Named:
    """Another tenant queries our logs through a private endpoint of its own."""
    scope = f"{group(estate)}/providers/Microsoft.Insights/privateLinkScopes/ampls-inference"
    estate.add(scope, {"accessModeSettings": dict(PRIVATE), "privateEndpointConnections": []}, location="global")
    add_endpoint(estate, f"{group(estate)}/{NETWORK}/privateEndpoints/pe-monitor", scope, "azuremonitor", "10.40.8.22")
    return connect(estate, scope)


def _relay(name: str, kind: str, part: str, subject: str) -> Change:
    def change(estate: Estate) -> Named:
        home = NETWORK_GROUP if kind.startswith("Microsoft.Network/") else DATA_GROUP
        target = estate.add(f"{home}/providers/{kind}/{name}", _body(kind), location=LOCATION)
        return add_endpoint(estate, network(estate, "privateEndpoints", f"pe-{name}"), target, part, "10.40.8.24")

    change.__name__ = f"private_endpoint_to_{name.replace('-', '_')}"
    change.__doc__ = f"A private endpoint leads to {subject} of ours, which relays what it is given."
    return change


def _body(kind: str) -> dict[str, Any]:
    if kind != "Microsoft.Network/privateLinkServices":
        return {}
    ours: list[str] = []
    audience = {"visibility": {"subscriptions": ours}, "autoApproval": {"subscriptions": ours}}
    return {**audience, "ipConfigurations": [], "privateEndpointConnections": []}


for _name, _kind, _group, _title in RELAYS:
    plant("pe-relay-target", "high", also=SEEN_BY, spot="relay")(_relay(_name, _kind, _group, _title))
