"""Who asked the API server for what, and when: its audit log, read between two moments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.workload import owner_of
from testbed.json_lines import json_lines

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
READS = frozenset({"get", "list"})
PARENT = "modeldeployments"


@dataclass(frozen=True, slots=True)
class Request:
    """One answered request; `at` is the server's clock when the answer was complete, seconds since the epoch."""

    at: float
    user: str
    verb: str
    resource: str
    name: str
    status: int

    @property
    def is_write(self) -> bool:
        """A write that is neither an Event nor a Lease: those are counted apart."""
        return self.verb in WRITES and not self.is_event and not self.is_lease

    @property
    def is_event(self) -> bool:
        return self.verb in WRITES and self.resource == "events"

    @property
    def is_lease(self) -> bool:
        return self.resource == "leases"


class Trail:
    """The audit log from a mark on. It must record the users in question."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def mark(self) -> int:
        """Now, as a position in the log."""
        return self._log.stat().st_size if self._log.exists() else 0

    def since(self, mark: int, user: str = "") -> list[Request]:
        """The requests, of one user when named, that were answered since the mark; running watches are not there."""
        if not self._log.exists():
            return []
        requests = [_request(event) for event in json_lines(self._log, mark)]
        return [request for request in requests if not user or request.user == user]


@dataclass(frozen=True, slots=True)
class Counts:
    """How often; `refused` and `on_parent` are of the writes, Events and Leases are not."""

    writes: int
    refused: int
    on_parent: int
    reads: int
    events: int
    leases: int


def count(requests: Iterable[Request]) -> Counts:
    """Sum up one user's requests."""
    read_requests = list(requests)
    writes = [request for request in read_requests if request.is_write]
    return Counts(
        writes=len(writes),
        refused=sum(request.status >= 400 for request in writes),
        on_parent=sum(request.resource.split("/")[0] == PARENT for request in writes),
        reads=sum(request.verb in READS and not request.is_lease for request in read_requests),
        events=sum(request.is_event for request in read_requests),
        leases=sum(request.is_lease and request.verb in WRITES for request in read_requests),
    )


def by_model(requests: Iterable[Request]) -> dict[str, list[Request]]:
    """The requests about each model or one of its children."""
    requests_of: dict[str, list[Request]] = {}
    for request in requests:
        if owner := owner_of(request.name):
            requests_of.setdefault(owner, []).append(request)
    return requests_of


def _request(line: dict[str, object]) -> Request:
    target, user, answer = (
        value if isinstance(value := line.get(field), dict) else {} for field in ("objectRef", "user", "responseStatus")
    )
    return Request(
        at=datetime.fromisoformat(str(line["stageTimestamp"])).timestamp(),
        user=user.get("username", ""),
        verb=str(line["verb"]),
        resource="/".join(filter(None, (target.get("resource"), target.get("subresource")))),
        name=target.get("name", ""),
        status=answer.get("code", 0),
    )
