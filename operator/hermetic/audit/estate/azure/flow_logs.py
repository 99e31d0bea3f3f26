"""Flow logs: what is written down of every connection."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.resource import Resource


class FlowLog(Resource):
    """Microsoft.Network/networkWatchers/flowLogs."""

    TYPE: ClassVar[str] = "Microsoft.Network/networkWatchers/flowLogs"
    API_VERSION: ClassVar[str] = NETWORK

    enabled: bool | None = None
