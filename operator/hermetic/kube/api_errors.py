"""Maps an error answer of the API server (HTTP status and Status body) to one leaf of `errors`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from hermetic.errors import ApiRefused, Conflict, Forbidden, NotFound, Rejected, ServerError, Throttled, Unauthenticated
from hermetic.kinds import GROUP

DEFAULT_RETRY_AFTER = 1.0
"""Seconds to wait after a 429 that names no time."""

MAX_RETRY_AFTER = 600.0
"""Seconds; a broken proxy must not be able to park an object for a day."""

_LEAVES: Mapping[int, type[ApiRefused]] = {
    HTTPStatus.BAD_REQUEST: Rejected,
    HTTPStatus.UNAUTHORIZED: Unauthenticated,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.METHOD_NOT_ALLOWED: Rejected,
    HTTPStatus.NOT_ACCEPTABLE: Rejected,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: Rejected,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: Rejected,
    HTTPStatus.UNPROCESSABLE_ENTITY: Rejected,
}

# The API server's answer for a path that it does not serve; a load balancer or proxy answers something else.
_NOTHING_SERVED = b"404 page not found"
CRDS = "install the CRDs: 'kubectl apply --server-side --kustomize crds' in a checkout of this release"

# The API server (1.36) answers an apply of an unknown field or wrong type with 500 and no reason; a retry cannot help.
_INVALID_UNDER_ANY_STATUS = "failed to create typed patch object"


def refusal(request: str, status: int, headers: Mapping[str, str], body: bytes) -> ApiRefused:
    """The error for an answer outside 2xx.

    `request` ("PATCH /api/v1/...") is named only where the answer has no Status body, as what comes from a load
    balancer or a proxy has none: the API server's own messages already name the object.
    """
    answer = _status_body(body)
    details = _mapping(answer.get("details"))
    if status == HTTPStatus.NOT_FOUND and f"/apis/{GROUP}/" in request and body.strip() == _NOTHING_SERVED:
        return NotFound(
            f"the API server serves no kind of {GROUP}: the CRDs are not installed", status=status, fix=CRDS
        )
    message = str(answer.get("message") or f"{request}: HTTP {status} without a Status body: {_excerpt(body)}")
    if message == "Unauthorized":
        message = "the API server does not accept the login: Unauthorized"
    reason = str(answer.get("reason") or "")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Throttled(message, retry_after=_retry_after(headers, details), reason=reason)
    leaf = Rejected if _INVALID_UNDER_ANY_STATUS in message else _LEAVES.get(status, ServerError)
    return leaf(message, status=status, reason=reason, causes=_causes(details))


def _status_body(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:  # UnicodeDecodeError is one too
        return {}
    return answer if isinstance(answer, dict) and answer.get("kind") == "Status" else {}


def _excerpt(body: bytes) -> str:
    return " ".join(body[:200].decode(errors="replace").split()) or "(empty)"


def _causes(details: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    causes = details.get("causes")
    readable_causes = [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
    return tuple((str(cause.get("reason", "")), str(cause.get("message", ""))) for cause in readable_causes)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _retry_after(headers: Mapping[str, str], details: Mapping[str, Any]) -> float:
    """Seconds to wait: Retry-After, else the Status details, else one; between 0 and MAX_RETRY_AFTER."""
    for word in (headers.get("Retry-After"), details.get("retryAfterSeconds")):
        try:
            seconds = float(word)  # type: ignore[arg-type]  # None and dates land in the except
        except (TypeError, ValueError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            return min(seconds, MAX_RETRY_AFTER)
    return DEFAULT_RETRY_AFTER
