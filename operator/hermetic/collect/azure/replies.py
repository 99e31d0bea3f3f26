"""Interprets an HTTP answer of ARM: JSON, a problem, or a transient failure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from hermetic.audit.estate.arm_ids import subscription_of
from hermetic.audit.estate.questions import Problem, UnreadReason, is_too_deep
from hermetic.audit.model.findings import Evidence
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
    def request_line(self) -> str:
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
        return (Evidence(self.ask.request_line, self.status, self.sha256),)

    def but(self, reason: UnreadReason, detail: str) -> ArmReply:
        """The same reply with a problem instead of its content."""
        return replace(
            self, value=None, problem=Problem(reason, f"{self.ask.request_line}: {detail}", self.ask.permission)
        )


LONGEST_MESSAGE = 300

_ACTION = re.compile(r"perform(?:ing)? action[s]?(?:\(s\))? '([^']+)'", re.IGNORECASE)
_DENY_ASSIGNMENT = "denyassignmentauthorizationfailed"
_UNKNOWN_TYPES = frozenset({"invalidresourcetype", "noregisteredproviderfound", "invalidresourcenamespace"})


def reply_of(ask: Ask, attempt: RequestAttempt) -> ArmReply:
    """The reply that this attempt gives if it is the last one; `may_pass` decides whether to retry instead."""
    sha256 = hashlib.sha256(attempt.content).hexdigest() if attempt.content else None
    value = parsed(attempt.content)
    status = attempt.status
    if status is None:
        problem: Problem | None = _problem(ask, UnreadReason.UNAVAILABLE, attempt.error)
    elif status == 202 or (status == 200 and isinstance(value, Mapping)):
        problem = None
    elif status == 200 and value is not None:
        problem = _problem(ask, UnreadReason.UNREADABLE, "the answer is JSON, but no object")
    elif status == 200:
        problem = _problem(ask, UnreadReason.UNAVAILABLE, "200, but the body is not JSON or was cut short")
    else:
        problem = _refused(ask, status, value)
    code = _error(value)[0] if problem else ""
    return ArmReply(ask, status, attempt.headers, None if problem else value, sha256, problem, code)


def may_pass(reply: ArmReply) -> bool:
    """Whether to retry: no answer, 408, 429, 5xx, or a success whose body was cut short."""
    return reply.problem is not None and reply.problem.reason is UnreadReason.UNAVAILABLE


def parsed(content: bytes) -> Any:
    """The JSON of a body; None where it is invalid, `null`, or nested deeper than any answer of Azure."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return None if is_too_deep(value) else value


def wait_asked(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the answer asks to wait (Retry-After, or Resource Graph's own header); None without either."""
    retry_after = headers.get("retry-after", "").strip()
    if retry_after:
        return _seconds(retry_after, now)
    resets = re.fullmatch(r"(\d+):(\d\d):(\d\d)", headers.get("x-ms-user-quota-resets-after", "").strip())
    if resets and headers.get("x-ms-user-quota-remaining", "").strip() == "0":
        return float(int(resets[1]) * 3600 + int(resets[2]) * 60 + int(resets[3]))
    return None


def _seconds(retry_after: str, now: datetime) -> float | None:
    if re.fullmatch(r"\d{1,9}", retry_after):
        return float(retry_after)
    try:
        at = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (at - now).total_seconds()) if at.tzinfo else None


def _refused(ask: Ask, status: int, value: Any) -> Problem:
    code, message = _error(value)
    explanation = " ".join(str(part) for part in (status, code, message) if part)
    if status == 403:
        return _forbidden(ask, explanation, code, message)
    if status == 404 and code.lower() not in _UNKNOWN_TYPES:
        return _problem(ask, UnreadReason.NOT_FOUND, explanation)
    if status == 401:
        return _problem(ask, UnreadReason.UNAUTHENTICATED, explanation)
    if status in {408, 429} or status >= 500:
        return _problem(ask, UnreadReason.UNAVAILABLE, explanation)
    if 300 <= status < 400:
        return _problem(ask, UnreadReason.REFUSED, f"{status}: it leads elsewhere, and redirects are not followed")
    return _problem(ask, UnreadReason.REFUSED, explanation)


def _forbidden(ask: Ask, explanation: str, code: str, message: str) -> Problem:
    if code.lower() == _DENY_ASSIGNMENT:
        return Problem(UnreadReason.LOCKED, f"{ask.request_line}: {explanation}")  # no permission is missing
    match = _ACTION.search(message)
    return Problem(UnreadReason.FORBIDDEN, f"{ask.request_line}: {explanation}", match[1] if match else ask.permission)


def _problem(ask: Ask, reason: UnreadReason, explanation: str) -> Problem:
    return Problem(reason, f"{ask.request_line}: {explanation}", ask.permission)


def _error(value: Any) -> tuple[str, str]:
    """Code and message of ARM's error form, in one line each; "" where there is none."""
    error = value.get("error") if isinstance(value, Mapping) else None
    if not isinstance(error, Mapping):
        return "", ""
    code, message = error.get("code"), error.get("message")
    text = " ".join(message.split())[:LONGEST_MESSAGE] if isinstance(message, str) else ""
    return (code[:80] if isinstance(code, str) else ""), text
