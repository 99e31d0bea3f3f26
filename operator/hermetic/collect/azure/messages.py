"""One request to ARM, its attempts and its reply."""

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
"""What shares a quota: reads or actions of one subscription, or the queries of one user."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. `target` is path and query without a host; `permission` what a role must allow for it."""

    method: Method
    target: str
    permission: str
    body: Mapping[str, Any] | None = None

    @property
    def words(self) -> str:
        """Method and target, as evidence shows them."""
        return f"{self.method} {self.target}"

    @property
    def lane(self) -> Lane:
        """The quota it counts against."""
        if self.target.partition("?")[0].lower() == RESOURCE_GRAPH.lower():
            return ("graph", "")
        return ("reads" if self.method == "GET" else "actions", subscription_of(self.target.partition("?")[0]))

    def to(self, target: str, body: Mapping[str, Any] | None = None) -> Ask:
        """The same permission, for a further page or for a poll."""
        return replace(self, method="GET" if body is None else "POST", target=target, body=body)


@dataclass(frozen=True, slots=True)
class RequestAttempt:
    """The result of one attempt: an HTTP answer, or the text of the `error`.

    `never_arrived`: no connection was made. `began`: the answer broke off in the middle.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    error: str = ""
    never_arrived: bool = False
    began: bool = False


@dataclass(frozen=True, slots=True)
class ArmReply:
    """The final reply: JSON (None where an accepted action has not ended yet), or a problem.

    `code` is ARM's error code, "" where there is none.
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
        """The request and its status as evidence."""
        return (Evidence(self.ask.words, self.status, self.sha256),)

    def but(self, trouble: Trouble, detail: str) -> ArmReply:
        """The same reply with a problem instead of its content."""
        return replace(self, value=None, problem=Problem(trouble, f"{self.ask.words}: {detail}", self.ask.permission))
