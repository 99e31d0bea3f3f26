"""What each refusal of an API server becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermetic.errors import (
    ApiRefused,
    Conflict,
    Forbidden,
    NotFound,
    Rejected,
    ServerError,
    Throttled,
    Unauthenticated,
)
from hermetic.kube.api_errors import refusal

REQUEST = "PATCH /api/v1/namespaces/models/services/llama"


def status_body(reason: str = "", message: str = "no", details: Any = None) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message, "details": details}).encode()


@pytest.mark.parametrize(
    ("status", "leaf"),
    [
        (302, ServerError),
        (400, Rejected),
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (405, Rejected),
        (406, Rejected),
        (408, ServerError),
        (409, Conflict),
        (410, ServerError),
        (413, Rejected),
        (415, Rejected),
        (418, ServerError),
        (422, Rejected),
        (429, Throttled),
        (500, ServerError),
        (502, ServerError),
        (503, ServerError),
        (504, ServerError),
    ],
)
def test_every_status_becomes_its_own_leaf_of_the_error_tree(status: int, leaf: type[ApiRefused]) -> None:
    refused = refusal(REQUEST, status, {}, status_body("SomeReason", "because"))
    assert type(refused) is leaf
    assert (refused.status, refused.reason, refused.message) == (status, "SomeReason", "because")


def test_causes_are_kept_so_that_a_terminating_namespace_is_told_from_missing_rights() -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace models is being terminated", "field": "x"}
    refused = refusal(REQUEST, 403, {}, status_body("Forbidden", details={"causes": [cause]}))
    assert refused.causes == (("NamespaceTerminating", "namespace models is being terminated"),)


def test_an_apply_the_schema_cannot_take_is_final_although_the_server_says_500() -> None:
    message = "failed to create typed patch object (models/llama; /v1, Kind=Service): .spec.x: field not declared"
    assert type(refusal(REQUEST, 500, {}, status_body("", message))) is Rejected


def test_a_refusal_without_a_status_body_names_the_request_and_shows_the_answer() -> None:
    refused = refusal(REQUEST, 502, {}, b"<html>Bad  gateway\n</html>")
    assert refused.message == f"{REQUEST}: HTTP 502 without a Status body: <html>Bad gateway </html>"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{",
        b'{"kind":"Status","details":[1]}',
        b'{"kind":"Status","details":{"causes":null}}',
        b'{"kind":"Status","details":{"causes":["what"]}}',
        b'{"kind":"Status","details":{"causes":7}}',
    ],
)
def test_a_broken_refusal_is_still_the_leaf_of_its_status(body: bytes) -> None:
    refused = refusal(REQUEST, 409, {}, body)
    assert type(refused) is Conflict
    assert refused.causes == ()


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", None, 7.0),
        ("7", {"retryAfterSeconds": 3}, 7.0),
        (None, {"retryAfterSeconds": 3}, 3.0),
        (None, None, 1.0),
        ("0", None, 1.0),
        ("-5", None, 1.0),
        ("nan", None, 1.0),
        ("Sat, 21 Nov 2026 12:00:00 GMT", None, 1.0),
        ("99999999", None, 600.0),
    ],
)
def test_the_patience_a_throttled_answer_asks_for_is_read_and_bounded(
    header: str | None, details: dict[str, Any] | None, seconds: float
) -> None:
    refused = refusal(REQUEST, 429, {"Retry-After": header} if header else {}, status_body(details=details))
    assert isinstance(refused, Throttled)
    assert refused.retry_after == seconds


def test_kinds_that_are_not_served_are_missing_crds_and_a_404_of_a_proxy_is_not() -> None:
    request = "GET /apis/hermetic.dev/v1alpha1/namespaces/default/modeldeployments"
    missing = refusal(request, 404, {}, b"404 page not found\n")
    assert type(missing) is NotFound
    assert "the CRDs are not installed" in missing.message
    assert "kubectl apply --server-side --kustomize crds" in missing.fix
    assert "CRDs" not in refusal(request, 404, {}, b"<html>no such site</html>").message
    assert "CRDs" not in refusal(REQUEST, 404, {}, b"404 page not found").message


def test_an_expired_login_is_told_with_what_renews_it() -> None:
    expired = refusal(REQUEST, 401, {}, status_body("Unauthorized", "Unauthorized"))
    assert (expired.code, expired.message) == ("HRM-KUB-401", "the API server does not accept the login: Unauthorized")
    assert "az login" in expired.fix
