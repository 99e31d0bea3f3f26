"""Backends of Envoy Gateway and sign-in of Envoy AI Gateway: the hosts to which proxies and a controller are led.

Sources: gateway.envoyproxy.io/docs/tasks/traffic/backend (types and endpoints of a Backend); envoyproxy/ai-gateway,
api/v1beta1/backendsecurity_policy.go. An AIServiceBackend names a Backend and nothing else, an AIGatewayRoute names
AIServiceBackends and InferencePools, and becomes HTTPRoutes: api/v1beta1/ai_service_backend.go, ai_gateway_route.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.audit.estate.kubernetes.callers import UNRESOLVED, CallerByFields, addresses_in, list_of
from hermetic.audit.estate.kubernetes.objects import api_object

ANY_HOST = "any host that a request names"
"""In the place of an address that clients of the gateway choose."""
_ENDPOINTS, _DYNAMIC = "Endpoints", "DynamicResolver"
# The field of an endpoint, and the one of its address in it; a Unix socket is of the proxy's own pod.
_ADDRESS_OF = {"fqdn": "hostname", "ip": "address"}
_SOCKET = "unix"


@api_object("gateway.envoyproxy.io/v1alpha1/backends", "Backend")
class Backend(CallerByFields):
    CALLED_BY = "the proxies of Envoy Gateway"
    HOP = "proxy of Envoy Gateway"
    OPERATED_BY = frozenset()

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """The addresses of its endpoints; UNRESOLVED for a type or an endpoint that is not known."""
        kind = spec.get("type") or _ENDPOINTS
        if kind == _DYNAMIC:
            yield ANY_HOST
        elif kind != _ENDPOINTS:
            yield UNRESOLVED
        for endpoint in list_of(spec.get("endpoints")):
            yield from _addresses_of(endpoint)


def _addresses_of(endpoint: Any) -> Iterator[str]:
    named = {field: endpoint[field] for field in _ADDRESS_OF if field in endpoint} if _is_object(endpoint) else {}
    if not named and not (_is_object(endpoint) and _SOCKET in endpoint):
        yield UNRESOLVED
    for field, value in named.items():
        address = value.get(_ADDRESS_OF[field]) if _is_object(value) else None
        if isinstance(address, str) and address:
            yield from addresses_in({"host": address})
        else:
            yield UNRESOLVED


# Providers whose tokens the controller fetches from the service of their vendor. That of Azure is left to the Azure
# checks, as every name of its services is.
_OF_VENDORS = {"AWSCredentials": "https://amazonaws.com", "GCPCredentials": "https://googleapis.com"}
_WITHOUT_A_CALL = frozenset({"APIKey", "AzureAPIKey", "AnthropicAPIKey"})
_OF_AZURE = "AzureCredentials"


@api_object(
    "aigateway.envoyproxy.io/v1beta1/backendsecuritypolicies", "BackendSecurityPolicy", also_served_as=("v1alpha1",)
)
class BackendSecurityPolicy(CallerByFields):
    CALLED_BY = "the controller of Envoy AI Gateway"
    HOP = "controller of Envoy AI Gateway"
    OPERATED_BY = frozenset({"ai-gateway-controller"})

    @classmethod
    def named_addresses(cls, spec: Mapping[str, Any]) -> Iterator[str]:
        """Servers of tokens, and the service of the vendor; UNRESOLVED for a type that is not known."""
        for part in _objects_in(spec):
            yield from addresses_in(part)
        kind = str(spec.get("type"))
        if kind in _OF_VENDORS:
            yield _OF_VENDORS[kind]
        elif kind != _OF_AZURE and kind not in _WITHOUT_A_CALL:
            yield UNRESOLVED


def _objects_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object of a document, itself included."""
    if _is_object(value):
        yield value
    for inner in value.values() if _is_object(value) else value if isinstance(value, list) else ():
        yield from _objects_in(inner)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)
