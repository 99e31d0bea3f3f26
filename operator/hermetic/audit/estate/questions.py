"""Questions to the world and their answers: the raw material of an estate, and what a snapshot file holds.

A check asks for a typed fact; the fact's kind says which question that is. Collectors answer questions and know
nothing of checks; checks know nothing of HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from hermetic.audit.findings import Evidence

Source = Literal["azure", "kube", "probe"]
Verb = Literal["get", "list", "post"]


class Trouble(StrEnum):
    """Why something could not be seen. Each of them is Unknown, none is Pass."""

    NOT_ASKED = "NotAsked"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "NotFound"
    UNAUTHENTICATED = "Unauthenticated"
    TRUNCATED = "Truncated"
    UNREADABLE = "Unreadable"
    UNAVAILABLE = "Unavailable"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an answer, or a part of it, is not there. `permission` is the action that a role would have to allow."""

    trouble: Trouble
    detail: str
    permission: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that can be asked.

    `kind` is the resource type ("Microsoft.Network/virtualNetworks/subnets", "v1/services"), `target` the id (get,
    post) or the scope (list: subscription, resource group or parent id) as it was first written; `action` the name of a
    POST, `body` its JSON in one fixed form. Two questions are the same when they differ in case only.
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
        """What tells questions apart: ARM does not mind case."""
        return (self.source, self.verb, self.kind.lower(), self.target.lower(), self.action.lower(), self.body.lower())

    @property
    def permission(self) -> str:
        """The action that a custom role needs for it; "" outside Azure."""
        if self.source != "azure":
            return ""
        return f"{self.kind}/{self.action}/action" if self.action else f"{self.kind}/read"


@dataclass(frozen=True, slots=True)
class Body:
    """One object as it was answered, and the exchanges that brought it."""

    value: Mapping[str, Any]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: one body for get and post, any number for list. `problem` when it is not the whole truth.

    A list may have both bodies and a problem (the third page never came). `evidence` is that of the answer as a whole:
    the pages of a list, the refusal of a get.
    """

    bodies: tuple[Body, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None


def fixed_json(value: Any) -> str:
    """JSON in one form: keys sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
