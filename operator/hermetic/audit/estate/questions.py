"""Questions and their answers: the raw data of an estate, and the content of a snapshot file.

A check queries a typed fact; the kind of the fact determines the question. Collectors answer questions and know no
checks; checks know no HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from hermetic.audit.model.findings import Evidence

Source = Literal["azure", "kube", "probe"]
Verb = Literal["get", "list", "post"]
PREVIEW = "-preview"
"""The suffix of a preview api-version."""


class UnreadReason(StrEnum):
    """Why something could not be read. Each of them makes a finding Unknown, never Pass."""

    NOT_ASKED = "NotAsked"
    FORBIDDEN = "Forbidden"
    LOCKED = "DenyAssignment"
    """A role allows it, and a deny assignment forbids it: no permission is missing."""
    NOT_FOUND = "NotFound"
    UNAUTHENTICATED = "Unauthenticated"
    TRUNCATED = "Truncated"
    UNREADABLE = "Unreadable"
    UNAVAILABLE = "Unavailable"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an answer, or a part of it, is missing.

    `permission` is the action that a role would have to allow; `remedy` is given where the usual one for the reason
    does not name the cause.
    """

    reason: UnreadReason
    detail: str
    permission: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a source.

    `kind` is the resource type ("Microsoft.Network/virtualNetworks/subnets", "v1/services"), `target` the id (get,
    post) or the scope (list: subscription, resource group or parent id) as it was first written; `action` the name of a
    POST, `body` its JSON in canonical form. Two questions are the same when they differ in case only, or in a stable
    api-version: a release uses one of those. A preview is a question of its own and may be asked as well.
    """

    source: Source
    verb: Verb
    kind: str
    target: str
    api_version: str = ""
    action: str = ""
    body: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """The identity of a question: without regard to case, as in ARM."""
        parts = (self.source, self.verb, self.kind, self.target, self.action, self.body)
        preview = (self.api_version,) if self.api_version.lower().endswith(PREVIEW) else ()
        return tuple(map(str.lower, (*parts, *preview)))

    @property
    def permission(self) -> str:
        """The action that a custom role needs for it; "" outside Azure."""
        if self.source != "azure":
            return ""
        return f"{self.kind}/{self.action}/action" if self.action else f"{self.kind}/read"


@dataclass(frozen=True, slots=True)
class Body:
    """One object as it was answered, and the exchanges that it comes from."""

    value: Mapping[str, Any]
    evidence: tuple[Evidence, ...]


class PackedBody(Body):
    """A body kept as JSON text and parsed at each access.

    Text takes a quarter of the memory of the objects, and a subscription has tens of thousands of rows.
    """

    __slots__ = ("_text",)
    _text: bytes

    def __init__(self, value: Mapping[str, Any], evidence: tuple[Evidence, ...]) -> None:
        text = json.dumps(value, separators=(",", ":"))  # ASCII: lone surrogates survive the round trip
        object.__setattr__(self, "_text", text.encode("ascii"))
        object.__setattr__(self, "evidence", evidence)

    @classmethod
    def of_text(cls, text: bytes, evidence: tuple[Evidence, ...]) -> PackedBody:
        """The body of which this is the JSON; it is parsed when it is read."""
        body = cls.__new__(cls)
        object.__setattr__(body, "_text", text)
        object.__setattr__(body, "evidence", evidence)
        return body

    @property
    def value(self) -> Mapping[str, Any]:
        """The object; a new one at each access."""
        value: Mapping[str, Any] = json.loads(self._text)
        return value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Body):
            return NotImplemented
        return (self.value, self.evidence) == (other.value, other.evidence)

    __hash__ = Body.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedBody.of_text, (self._text, self.evidence)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question: one body for get and post, any number for list. `problem` when it is incomplete.

    A list may have both bodies and a problem (the third page failed). `evidence` is that of the answer as a whole:
    the pages of a list, the refusal of a get. `projection` names the fields that were kept of the bodies, "" for all
    (see projection.py).
    """

    bodies: tuple[Body, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None
    projection: str = ""


def fixed_json(value: Any) -> str:
    """Canonical JSON: keys sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


DEEPEST = 100
"""Far deeper than any answer of Azure or Kubernetes."""


def is_too_deep(value: Any, deepest: int = DEEPEST) -> bool:
    """Whether objects and lists are nested deeper than `deepest`."""
    level = [value]
    for _ in range(deepest):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
