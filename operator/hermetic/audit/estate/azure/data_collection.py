"""Data collection rules: where the agents of Container Insights and managed Prometheus send what they collect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.audit.estate.arm_fields import spelling
from hermetic.audit.estate.azure.versions import COLLECTION_ASSOCIATIONS, COLLECTION_RULES
from hermetic.audit.estate.resource import Resource, arm

RESOURCE_METRICS = "azuremonitormetrics"
"""Metrics of the resource itself, which stay with it."""
DESTINATIONS = {
    "loganalytics": ("workspace", "workspaceresourceid"),
    "monitoringaccounts": ("Azure Monitor workspace", "accountresourceid"),
    "eventhubs": ("event hub", "eventhubresourceid"),
    "eventhubsdirect": ("event hub", "eventhubresourceid"),
    "storageaccounts": ("storage account", "storageaccountresourceid"),
    "storageblobsdirect": ("storage account", "storageaccountresourceid"),
    "storagetablesdirect": ("storage account", "storageaccountresourceid"),
    "azuredataexplorer": ("Data Explorer cluster", "resourceid"),
    "microsoftfabric": ("Fabric database", "ingestionuri"),
}
"""By the kind of a destination: its name in messages, and the field that identifies it."""


@arm("Microsoft.Insights/dataCollectionRuleAssociations", COLLECTION_ASSOCIATIONS)
class DataCollectionRuleAssociation(Resource):
    """Of a resource with a rule, or with the endpoint that its agents ask for their configuration."""

    data_collection_rule_id: str | None = None
    data_collection_endpoint_id: str | None = None


@arm("Microsoft.Insights/dataCollectionRules", COLLECTION_RULES)
class DataCollectionRule(Resource):
    """`destinations` is open: a kind that is not known here is a destination too."""

    destinations: dict[str, Any] | None = None
    data_collection_endpoint_id: str | None = None

    @property
    def sinks(self) -> tuple[tuple[str, str], ...]:
        """The kind and the id of each destination; "" where it is not identified, or its kind is not known here."""
        kinds = (
            (spelling(kind), kind, destinations)
            for kind, destinations in (self.destinations or {}).items()
            if destinations
        )
        return tuple(
            _identified(kind, name, destination)
            for kind, name, destinations in kinds
            if kind != RESOURCE_METRICS
            for destination in (destinations if isinstance(destinations, list) else [destinations])
        )


def _identified(kind: str, name: str, destination: Any) -> tuple[str, str]:
    word, field = DESTINATIONS.get(kind, (name, ""))
    fields = destination.items() if isinstance(destination, Mapping) else ()
    identifier = next((value for key, value in fields if spelling(str(key)) == field), "")
    return word, identifier if isinstance(identifier, str) else ""
