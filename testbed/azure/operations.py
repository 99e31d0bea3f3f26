"""Long-running actions: 202 with a Location to poll, until the answer is there."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from testbed.azure import refusals
from testbed.azure.faults import Action, EndsFailed, NeverEnds

Body = dict[str, Any]


@dataclass
class Operation:
    """One running action: how often it still says "not yet", and what it says then."""

    polls_left: int
    result: Body
    failure: Action | None = None


@dataclass
class Operations:
    """All running actions of a stand-in. polls: how often each answers 202 before it is done."""

    url: str
    polls: int
    retry_after: int
    running: dict[str, Operation] = field(default_factory=dict)

    def start(self, scope: str, version: str, result: Body, failure: Action | None) -> dict[str, str]:
        """Headers of the 202; the Location names the operation."""
        name = str(uuid.uuid4())
        self.running[name] = Operation(self.polls, result, failure)
        base = f"{self.url}{scope}/providers/Microsoft.Network/locations/swedencentral"
        return {
            "Location": f"{base}/operationResults/{name}?api-version={version}",
            "Azure-AsyncOperation": f"{base}/operations/{name}?api-version={version}",
            "Retry-After": str(self.retry_after),
        }

    def poll(self, path: str, query: str) -> tuple[int, Body | None, dict[str, str]]:
        """Status, body and headers of a poll, of either address."""
        kind, _, name = path.rstrip("/").rpartition("/")
        operation = self.running.get(name)
        if operation is None:
            raise refusals.Refusal(404, "OperationNotFound", f"The operation '{name}' could not be found.")
        is_status = kind.lower().endswith("/operations")
        waits = {"Retry-After": str(self.retry_after)}
        if isinstance(operation.failure, NeverEnds) or operation.polls_left > 0:
            operation.polls_left -= 1
            if is_status:
                return 200, {"status": "InProgress"}, waits
            return 202, None, waits | {"Location": f"{self.url}{path}?{query}"}
        if isinstance(operation.failure, EndsFailed):
            return _failed(operation.failure, is_status)
        return 200, ({"status": "Succeeded", "properties": operation.result} if is_status else operation.result), {}


def is_poll(path: str) -> bool:
    return "/locations/" in path and ("/operationresults/" in path.lower() or "/operations/" in path.lower())


def _failed(failure: EndsFailed, is_status: bool) -> tuple[int, Body | None, dict[str, str]]:
    error = {"code": failure.code, "message": "The operation ended as failed."}
    return (200, {"status": "Failed", "error": error}, {}) if is_status else (500, {"error": error}, {})
