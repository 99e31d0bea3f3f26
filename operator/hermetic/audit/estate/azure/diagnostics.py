"""Diagnostic settings: the destinations of a resource's logs."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.azure.versions import DIAGNOSTIC_SETTINGS
from hermetic.audit.estate.resource import Resource, arm


@arm("Microsoft.Insights/diagnosticSettings", DIAGNOSTIC_SETTINGS)
class DiagnosticSetting(Resource):
    """Microsoft.Insights/diagnosticSettings of a resource; up to five of them."""

    storage_account_id: str | None = None
    workspace_id: str | None = None
    event_hub_authorization_rule_id: str | None = None
    service_bus_rule_id: str | None = None
    marketplace_partner_id: str | None = None

    @property
    def sinks(self) -> Iterator[tuple[str, str]]:
        """The destinations of the logs: the kind of each, and its ARM id."""
        named = {
            "storage account": self.storage_account_id,
            "workspace": self.workspace_id,
            "event hub": self.event_hub_authorization_rule_id,
            "service bus": self.service_bus_rule_id,
            "partner solution": self.marketplace_partner_id,
        }
        yield from ((word, one) for word, one in named.items() if one)
