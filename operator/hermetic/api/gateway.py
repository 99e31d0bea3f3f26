"""A gateway of the Gateway API in front of models: what a spec asks for, and which gateways the platform allows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.field_types import DnsLabel, Labels, Namespaces, dns_name, matches
from hermetic.api.rules import ApiModel, Rule
from hermetic.api.strictness import covers

GatewayName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    dns_name("must be the name of a Gateway: lower-case letters, digits, '-' and '.'"),
]
RouteHostname = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    dns_name("must be a host name in lower case that begins with a letter, without scheme, port or '*'", first="[a-z]"),
]
RoutePath = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200),
    matches(
        r"^(/|(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)$",
        "must be '/' or a path such as '/team-a/chat': parts of letters, digits, '-', '_', '~' and '.', without a '/' "
        "at the end",
    ),
]


class GatewayRoute(ApiModel):
    """A Gateway that leads to the model, by a path and by the model's name in a header."""

    RULES = (
        Rule(
            cel="has(self.group) == has(self.weight)",
            message="must be set together with `weight`",
            holds=lambda route: (route.group is None) == (route.weight is None),
            field=".group",
        ),
    )

    name: GatewayName
    """Name of the Gateway: one that the operator's configuration allows."""
    namespace: DnsLabel | None = None
    """Namespace of the Gateway. Default: that of the ModelDeployment."""
    hostname: RouteHostname | None = None
    """Host name that requests are for, for example 'models.contoso.internal'. Default: every name of the Gateway."""
    path: RoutePath | None = None
    """Path that the model's own begin with: it is cut off before a request reaches the pod. It is below /NAMESPACE/,
    unless the operator's configuration allows another. Default: /NAMESPACE/NAME of the ModelDeployment, or
    /NAMESPACE/GROUP with a `group`."""
    group: DnsLabel | None = None
    """ModelDeployments of the namespace that share one route, such as a model and its next version. All of them have
    the same gateway, host name, path and `model.name`, and each a `weight`. At most 16. Default: none."""
    weight: Annotated[int, Field(ge=0, le=100)] | None = None
    """Share of the group's requests, 0 to 100, compared with the other weights of the group: 10 beside 90 is a tenth.
    It counts as 0 until the model serves. Only with `group`. Default: none."""

    def gateway(self, namespace: str) -> tuple[str, str]:
        """Namespace and name of the Gateway, for a ModelDeployment of this namespace."""
        return (self.namespace or namespace, self.name)

    def path_of(self, namespace: str, name: str) -> str:
        """The path that leads to this ModelDeployment."""
        return self.path or f"/{namespace}/{self.group or name}"


class DataPlane(ApiModel):
    """The pods through which the requests of a gateway come."""

    namespace: DnsLabel
    """Namespace of these pods, for example 'envoy-gateway-system'."""
    pod_labels: Annotated[Labels, Field(min_length=1)]
    """Labels of these pods, for example 'gateway.envoyproxy.io/owning-gateway-name: models'. Pods of the models let in
    every pod of that namespace that has them."""


class AllowedGateway(ApiModel):
    """A Gateway that models of some namespaces may be reached by."""

    name: GatewayName
    """Name of the Gateway."""
    namespace: DnsLabel
    """Namespace of the Gateway."""
    data_plane: DataPlane
    """The pods through which its requests come."""
    hostnames: Annotated[list[RouteHostname], Field(max_length=64)] = []
    """Host names that `endpoint.gateway.hostname` may ask for. With one, it must be set. Default: every name."""
    paths: Annotated[list[RoutePath], Field(max_length=64)] = []
    """Paths that `endpoint.gateway.path` may begin with beside /NAMESPACE/, for example '/'. A namespace that may
    take a path of others can receive their requests. Default: none."""
    namespaces: Namespaces
    """Namespaces whose deployments may use it; '*' allows every namespace."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the Gateway."""
        return (self.namespace, self.name)

    def takes(self, gateway: tuple[str, str], namespace: str) -> bool:
        """Whether it is this Gateway (namespace, name), and ModelDeployments of the namespace may use it."""
        return self.key == gateway and covers(self.namespaces, namespace)

    def allows_hostname(self, hostname: str | None) -> bool:
        """Whether a route may be for this host name."""
        return not self.hostnames or hostname in self.hostnames

    def allows_path(self, path: str, namespace: str) -> bool:
        """Whether a route of the namespace may have this path."""
        return any(is_below(path, allowed) for allowed in (f"/{namespace}", *self.paths))


def is_below(path: str, prefix: str) -> bool:
    """Whether a path is the prefix or continues it after a '/'."""
    return path == prefix or path.startswith(f"{prefix.removesuffix('/')}/")
