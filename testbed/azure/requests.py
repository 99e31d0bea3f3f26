"""What a stand-in was asked, as it is kept for tests to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.azure.actions import ACTIONS
from testbed.azure.ids import take_apart
from testbed.azure.operations import is_poll

GRAPH_PATH = "/providers/microsoft.resourcegraph/resources"


@dataclass
class ArmRequest:
    """One request. `status` is 0 until it is answered, and stays so when the connection was cut first.

    action: the permission it needs, `Microsoft.Network/virtualNetworks/read`; empty for polls of an operation, and for
    the list of the caller's tenants.
    at: seconds since the stand-in started.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    at: float = 0.0
    status: int = 0

    @property
    def api_version(self) -> str:
        return self.query.get("api-version", "")

    @property
    def is_graph(self) -> bool:
        return self.path.lower().rstrip("/") == GRAPH_PATH

    @property
    def is_allowed(self) -> bool:
        """Whether a reader may send it: GET, a query, or an action that only reads."""
        if self.method == "GET" or (self.method == "POST" and self.is_graph):
            return True
        target, _, action = self.path.rstrip("/").rpartition("/")
        return self.method == "POST" and (take_apart(target).type.lower(), action.lower()) in ACTIONS

    @property
    def action(self) -> str:
        if is_poll(self.path) or self.path.rstrip("/").lower() == "/tenants":
            return ""
        if self.is_graph:
            return "Microsoft.ResourceGraph/resources/read"
        if self.method == "GET":
            return f"{_read_of(self.path)}/read"
        target, _, action = self.path.rstrip("/").rpartition("/")
        return f"{take_apart(target).type}/{action}/action"


def _read_of(path: str) -> str:
    taken = take_apart(path)
    if taken.namespace and not taken.types:
        return "Microsoft.Resources/subscriptions/providers"
    if taken.namespace:
        return taken.type
    segments = path.rstrip("/").split("/")
    words = {"resourcegroups": "/resourceGroups", "resources": "/resources"}
    return "Microsoft.Resources/subscriptions" + next(
        (words[s.lower()] for s in segments[3:] if s.lower() in words), ""
    )
