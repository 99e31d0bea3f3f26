"""What Network Watcher records of a network's packets: flow logs and packet captures."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Resource, arm


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
    storage_id: str | None = None
    flow_analytics_configuration: FlowAnalytics | None = None


class CaptureLocation(Part):
    """Destination of a capture: a storage account, a file on the VM, or both."""

    storage_id: str | None = None
    storage_path: str | None = None
    file_path: str | None = None
    local_path: str | None = None


@arm("Microsoft.Network/networkWatchers/packetCaptures", NETWORK)
class PacketCapture(Resource):
    target: str | None = None
    storage_location: CaptureLocation | None = None
