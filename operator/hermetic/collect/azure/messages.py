"""One request to ARM and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hermetic.audit.estate.arm_ids import subscription_of
from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.audit.findings import Evidence
from hermetic.collect.azure.allowed_requests import RESOURCE_GRAPH

Method = Literal["GET", "POST"]
Lane = tuple[str, str]
"""What is paced together: reads or actions of one subscription, or the queries of one user."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. `target` is path and query without a host; `permission` what a role would have to allow for it."""

    method: Method
    target: str
    permission: str
    body: Mapping[str, Any] | None = None

    @property
    def words(self) -> str:
        """As evidence tells it."""
        return f"{self.method} {self.target}"

    @property
    def lane(self) -> Lane:
        """Whose quota it counts against."""
        if self.target.partition("?")[0].lower() == RESOURCE_GRAPH.lower():
            return ("graph", "")
        return ("reads" if self.method == "GET" else "actions", subscription_of(self.target.partition("?")[0]))

    def to(self, target: str, body: Mapping[str, Any] | None = None) -> Ask:
        """The same permission, for a further page or for a poll."""
        return replace(self, method="GET" if body is None else "POST", target=target, body=body)


@dataclass(frozen=True, slots=True)
class RequestAttempt:
    """What one sending brought: an HTTP answer, or `error` in words where there is none.

    `never_arrived` tells that no connection came about at all, `began` that an answer broke off in the middle.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    error: str = ""
    never_arrived: bool = False
    began: bool = False


@dataclass(frozen=True, slots=True)
class ArmReply:
    """The end of asking: JSON (None where an accepted action has not ended yet), or the problem that stands for it.

    `code` is ARM's own word for why it refused, "" where it did not or has none.
    """

    ask: Ask
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    value: Any = None
    sha256: str | None = None
    problem: Problem | None = None
    code: str = ""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The exchange."""
        return (Evidence(self.ask.words, self.status, self.sha256),)

    def but(self, trouble: Trouble, detail: str) -> ArmReply:
        """The same exchange, which turned out to be of no use."""
        return replace(self, value=None, problem=Problem(trouble, f"{self.ask.words}: {detail}", self.ask.permission))
