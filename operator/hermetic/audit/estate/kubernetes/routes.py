"""Routes of the Gateway API: the backends of a gateway's traffic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hermetic.api.public_services import SENDING_FILTERS
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, WithUnreadFields, api_object
from hermetic.audit.estate.resource import Part


def _field(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


class ObjectReference(Part):
    """A reference to an object; the default kind is Service, the default namespace the route's."""

    group: str | None = None
    kind: str | None = None
    name: str = ""
    namespace: str | None = None


class ReferringFilter(Part):
    """A filter that sends requests, or copies of them, somewhere."""

    backend_ref: ObjectReference | None = None


class RouteFilter(WithUnreadFields):
    """`type` is open; a redirect is followed by the client, so it has no backend."""

    HARMLESS: ClassVar = frozenset(
        {"cors", "requestHeaderModifier", "requestRedirect", "responseHeaderModifier", "urlRewrite"}
    )
    type: str = ""
    request_mirror: ReferringFilter | None = None
    external_auth: ReferringFilter | None = None
    extension_ref: ObjectReference | None = None

    @property
    def leads_to(self) -> Iterator[ObjectReference]:
        """Every object that it sends requests to."""
        for name in SENDING_FILTERS:
            sending_filter: ReferringFilter | None = getattr(self, _field(name))
            if sending_filter is not None and sending_filter.backend_ref is not None:
                yield sending_filter.backend_ref


class BackendReference(ObjectReference):
    """A backend, with its own filters."""

    filters: list[RouteFilter] | None = None


class RouteRule(WithUnreadFields):
    HARMLESS: ClassVar = frozenset({"matches", "name", "retry", "sessionPersistence", "timeouts"})
    backend_refs: list[BackendReference] | None = None
    filters: list[RouteFilter] | None = None

    @property
    def all_filters(self) -> Iterator[RouteFilter]:
        """Its own filters, and those of its backends."""
        yield from self.filters or ()
        for backend in self.backend_refs or ():
            yield from backend.filters or ()


class RouteSpec(Part):
    rules: list[RouteRule] | None = None


class GatewayApiRoute(KubernetesObject):
    spec: RouteSpec = RouteSpec()

    @property
    def leads_to(self) -> Iterator[ObjectReference]:
        """Every object that requests or copies of them are sent to."""
        for rule in self.spec.rules or ():
            yield from rule.backend_refs or ()
            for route_filter in rule.all_filters:
                yield from route_filter.leads_to

    @property
    def extensions(self) -> Iterator[ObjectReference]:
        """Filters of the gateway's own kind."""
        for rule in self.spec.rules or ():
            yield from (
                route_filter.extension_ref
                for route_filter in rule.all_filters
                if route_filter.extension_ref is not None
            )


@api_object("gateway.networking.k8s.io/v1/httproutes", "HTTPRoute", also_served_as=("v1beta1",))
class HttpRoute(GatewayApiRoute):
    pass


@api_object("gateway.networking.k8s.io/v1/grpcroutes", "GRPCRoute", also_served_as=("v1alpha2",))
class GrpcRoute(GatewayApiRoute):
    pass


@api_object("gateway.networking.k8s.io/v1alpha2/tlsroutes", "TLSRoute", also_served_as=("v1", "v1alpha3"))
class TlsRoute(GatewayApiRoute):
    """In the standard channel from release 1.5 on as v1."""


@api_object("gateway.networking.k8s.io/v1alpha2/tcproutes", "TCPRoute", also_served_as=("v1",))
class TcpRoute(GatewayApiRoute):
    pass


@api_object("gateway.networking.k8s.io/v1alpha2/udproutes", "UDPRoute", also_served_as=("v1",))
class UdpRoute(GatewayApiRoute):
    pass


ROUTES: tuple[type[GatewayApiRoute], ...] = (HttpRoute, GrpcRoute, TlsRoute, TcpRoute, UdpRoute)
