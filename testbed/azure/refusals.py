"""What the management endpoint answers when it refuses: status, code and body, in ARM's error form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from testbed.azure.ids import group_of, take_apart

TENANT = "0f2c9b7e-5a3d-4c1f-9e68-2d7b1a90c4e3"
TENANT_OF_THE_CALLER = {
    "id": f"/tenants/{TENANT}",
    "tenantId": TENANT,
    "countryCode": "SE",
    "displayName": "Contoso",
    "domains": ["contoso.example"],
    "tenantCategory": "Home",
    "defaultDomain": "contoso.example",
    "tenantType": "AAD",
}
CALLER = "8d1e5f60-2b7a-4f39-a5c2-6e0d94b3f718"


class Refusal(Exception):
    """An answer other than success; `body()` is the JSON that goes out with it."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.details: list[dict[str, str]] = []

    def body(self) -> dict[str, Any]:
        details = {"details": self.details} if self.details else {}
        return {"error": {"code": self.code, "message": self.message, **details}}


def no_token() -> Refusal:
    return _unauthorized("AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")


def wrong_token() -> Refusal:
    return _unauthorized("InvalidAuthenticationToken", "The access token is invalid.")


def expired_token() -> Refusal:
    return _unauthorized("ExpiredAuthenticationToken", "The access token expiry UTC time is in the past.")


def _unauthorized(code: str, message: str) -> Refusal:
    challenge = (
        f'Bearer authorization_uri="https://login.microsoftonline.com/{TENANT}", error="invalid_token", '
        f'error_description="{message}"'
    )
    return Refusal(401, code, message, {"WWW-Authenticate": challenge})


def forbidden(action: str, scope: str) -> Refusal:
    message = (
        f"The client '{CALLER}' with object id '{CALLER}' does not have authorization to perform action '{action}' "
        f"over scope '{scope}' or the scope is invalid."
    )
    return Refusal(403, "AuthorizationFailed", message)


def locked(action: str, scope: str) -> Refusal:
    """As ARM words it when a deny assignment forbids what a role allows.

    learn.microsoft.com/azure/role-based-access-control/troubleshooting (deny assignments) has the sentence.
    """
    assignment = "7b0c52d3-9e4f-4a61-8c2d-3f1e6a905b48"
    message = (
        f"The client '{CALLER}' with object id '{CALLER}' has permission to perform action '{action}' on scope "
        f"'{scope}'; however, the access is denied because of the deny assignment with name "
        f"'Deny assignment for AKS node resource group' and Id '{assignment.replace('-', '')}' at scope '{scope}'."
    )
    return Refusal(403, "DenyAssignmentAuthorizationFailed", message)


def not_found(identifier: str) -> Refusal:
    path = take_apart(identifier)
    named = "/".join(part for pair in zip(path.types, path.names, strict=False) for part in pair)
    message = f"The Resource '{path.namespace}/{named}' under resource group '{group_of(identifier)}' was not found."
    return Refusal(404, "ResourceNotFound" if len(path.types) < 2 else "NotFound", message)


def no_group(name: str) -> Refusal:
    return Refusal(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def no_subscription(name: str) -> Refusal:
    return Refusal(404, "SubscriptionNotFound", f"The subscription '{name}' could not be found.")


def no_such_type(namespace: str, kind: str, version: str) -> Refusal:
    message = (
        f"The resource type '{kind}' could not be found in the namespace '{namespace}' for api version '{version}'."
    )
    return Refusal(404, "InvalidResourceType", message)


def not_in_region(version: str, kind: str) -> Refusal:
    """As ARM says of a type that no location of the subscription's cloud serves in this version."""
    message = (
        f"No registered resource provider found for location 'swedencentral' and API version '{version}' for type "
        f"'{kind.partition('/')[2]}'. The supported api-versions are ''. The supported locations are ''."
    )
    return Refusal(400, "NoRegisteredProviderFound", message)


def no_such_provider(namespace: str) -> Refusal:
    return Refusal(404, "InvalidResourceNamespace", f"The resource namespace '{namespace}' is invalid.")


def not_registered(namespace: str) -> Refusal:
    message = (
        f"The subscription is not registered to use namespace '{namespace}'. "
        "See https://aka.ms/rps-not-found for how to register subscriptions."
    )
    return Refusal(409, "MissingSubscriptionRegistration", message)


def no_version() -> Refusal:
    message = "The api-version query parameter (?api-version=) is required for all requests."
    return Refusal(400, "MissingApiVersionParameter", message)


def unknown_version(version: str, kind: str, supported: Iterable[str]) -> Refusal:
    message = (
        f"No registered resource provider found for API version '{version}' for type '{kind}'. "
        f"The supported api-versions are '{', '.join(supported)}'."
    )
    return Refusal(400, "NoRegisteredProviderFound", message)


def unknown_endpoint_version(version: str, supported: Iterable[str]) -> Refusal:
    """As ARM's own endpoints (subscriptions, groups) and Resource Graph say it."""
    message = f"The api-version '{version}' is invalid. The supported versions are '{','.join(supported)}'."
    return Refusal(400, "InvalidApiVersionParameter", message)


def too_many(retry_after: int, scope: str) -> Refusal:
    message = f"The request limit of scope '{scope}' is used up. Retry after {retry_after} seconds."
    return Refusal(429, "TooManyRequests", message, {"Retry-After": str(retry_after)})


def read_only(method: str) -> Refusal:
    """The stand-in changes nothing; that it was asked to is on record in `forbidden_requests`."""
    return Refusal(405, "MethodNotAllowed", f"The stand-in serves reads; {method} of this path would write.")


def bad_request(code: str, message: str) -> Refusal:
    return Refusal(400, code, message)
