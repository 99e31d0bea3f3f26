"""Diagnostic settings, flow logs and packet captures: what is recorded, and where it is sent."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.azure.versions import DIAGNOSTIC_SETTINGS, NETWORK
from hermetic.audit.estate.resource import Part, Resource, arm


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
        yield from ((word, sink) for word, sink in named.items() if sink)


class WatcherAnalytics(Part):
    """Traffic analytics of a flow log: the workspace that it is sent to."""

    enabled: bool | None = None
    workspace_resource_id: str | None = None


class FlowAnalytics(Part):
    """flowAnalyticsConfiguration of a flow log."""

    network_watcher_flow_analytics_configuration: WatcherAnalytics | None = None


@arm("Microsoft.Network/networkWatchers/flowLogs", NETWORK)
class FlowLog(Resource):
    enabled: bool | None = None
    target_resource_id: str | None = None
    """A network, a subnet, an interface or a security group."""
    storage_id: str | None = None
    flow_analytics_configuration: FlowAnalytics | None = None

    @property
    def sinks(self) -> tuple[tuple[str, str], ...]:
        """The destinations: the kind of each, and its ARM id."""
        analytics = self.flow_analytics_configuration
        watcher = analytics.network_watcher_flow_analytics_configuration if analytics is not None else None
        workspace = watcher.workspace_resource_id if watcher is not None else None
        named = (("storage account", self.storage_id), ("workspace", workspace))
        return tuple((kind, target) for kind, target in named if target)


class CaptureLocation(Part):
    """Destination of a capture in storage; without one it is a file on the VM."""

    storage_id: str | None = None
    storage_path: str | None = None


@arm("Microsoft.Network/networkWatchers/packetCaptures", NETWORK)
class PacketCapture(Resource):
    target: str | None = None
    storage_location: CaptureLocation | None = None
