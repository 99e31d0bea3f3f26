"""Translates a refused list into the problem and the evidence of its answer."""

from __future__ import annotations

from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.audit.findings import Evidence
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.errors import (
    ApiRefused,
    Forbidden,
    HermeticError,
    NotFound,
    Rejected,
    ServerTrouble,
    Throttled,
    Unreachable,
)

UNAUTHENTICATED = 401
PASSING = (Throttled, ServerTrouble, Unreachable)
"""Errors that are retried."""


def problem_of(look: ListRequest, error: HermeticError) -> Problem:
    """Why the list is missing or incomplete."""
    words = f"{look.path}: {error.message}"
    match error:
        case Forbidden() if error.status == UNAUTHENTICATED:
            return Problem(Trouble.UNAUTHENTICATED, words)
        case Forbidden():
            return Problem(Trouble.FORBIDDEN, words, permission=f"list {look.resource}")
        case NotFound():
            return Problem(Trouble.NOT_FOUND, words)
        case Rejected():
            return Problem(Trouble.REFUSED, words)
        case Throttled() | ServerTrouble() | Unreachable():
            return Problem(Trouble.UNAVAILABLE, words)
    return Problem(Trouble.UNREADABLE, words)


def evidence_of(look: ListRequest, error: HermeticError) -> Evidence:
    """The refusal as evidence."""
    return Evidence(f"GET {look.path}", error.status if isinstance(error, ApiRefused) else None)
