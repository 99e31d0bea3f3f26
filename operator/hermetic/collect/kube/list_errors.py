"""Translates a refused list into the problem and the evidence of its answer."""

from __future__ import annotations

from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.errors import (
    ApiRefused,
    Forbidden,
    HermeticError,
    NotFound,
    Rejected,
    ServerError,
    Throttled,
    Unreachable,
)

UNAUTHENTICATED = 401
PASSING = (Throttled, ServerError, Unreachable)
"""Errors that are retried."""


def problem_of(request: ListRequest, error: HermeticError) -> Problem:
    """Why the list is missing or incomplete."""
    message = f"{request.path}: {error.message}"
    match error:
        case Forbidden() if error.status == UNAUTHENTICATED:
            return Problem(UnreadReason.UNAUTHENTICATED, message)
        case Forbidden():
            return Problem(UnreadReason.FORBIDDEN, message, permission=f"list {request.resource}")
        case NotFound():
            return Problem(UnreadReason.NOT_FOUND, message)
        case Rejected():
            return Problem(UnreadReason.REFUSED, message)
        case Throttled() | ServerError() | Unreachable():
            return Problem(UnreadReason.UNAVAILABLE, message)
    return Problem(UnreadReason.UNREADABLE, message)


def evidence_of(request: ListRequest, error: HermeticError) -> Evidence:
    """The refusal as evidence."""
    return Evidence(f"GET {request.path}", error.status if isinstance(error, ApiRefused) else None)
