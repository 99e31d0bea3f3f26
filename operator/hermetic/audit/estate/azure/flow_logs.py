"""What Network Watcher keeps of the packets of a network: flow logs, and captures of packets."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Part, Resource


class WatcherAnalytics(Part):
    """Traffic analytics of a flow log: the workspace that it is sent to."""

    enabled: bool | None = None
    workspace_resource_id: str | None = None


class FlowAnalytics(Part):
    """flowAnalyticsConfiguration of a flow log."""

    network_watcher_flow_analytics_configuration: WatcherAnalytics | None = None


class FlowLog(Resource):
    """Microsoft.Network/networkWatchers/flowLogs."""

    TYPE: ClassVar[str] = "Microsoft.Network/networkWatchers/flowLogs"
    API_VERSION: ClassVar[str] = NETWORK

    enabled: bool | None = None
    storage_id: str | None = None
    flow_analytics_configuration: FlowAnalytics | None = None


class CaptureLocation(Part):
    """Where a capture is kept: an account, a file on the machine, or both."""

    storage_id: str | None = None
    storage_path: str | None = None
    file_path: str | None = None
    local_path: str | None = None


class PacketCapture(Resource):
    """Microsoft.Network/networkWatchers/packetCaptures."""

    TYPE: ClassVar[str] = "Microsoft.Network/networkWatchers/packetCaptures"
    API_VERSION: ClassVar[str] = NETWORK

    target: str | None = None
    storage_location: CaptureLocation | None = None
