"""`spec.endpoint`: who may reach the model, and on what address."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.field_types import Labels, ObjectName, PrivateAddress, SourceRange, list_of, matches
from hermetic.api.gateway import GatewayRoute
from hermetic.api.rules import ApiModel, Rule


class InternalLoadBalancer(ApiModel):
    """A private address of the cluster's virtual network. A public one is never asked for."""

    subnet: (
        Annotated[
            str,
            StringConstraints(max_length=80),
            matches(
                r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_])?$", "must be the name of a subnet, not its resource id"
            ),
        ]
        | None
    ) = None
    """Subnet (of the cluster's virtual network) that the address comes from. Default: the node subnet.
    Nothing shows whether the load balancer has followed a change yet: name an `address` of the subnet to be sure."""
    address: PrivateAddress | None = None
    """The private IPv4 address to take, for example '10.13.76.40'. Default: any free one of the subnet. Several
    deployments may share it with different `servicePort`s and without `allowedSourceRanges`; otherwise the oldest that
    asks for it gets it."""
    allowed_source_ranges: Annotated[list[SourceRange], Field(max_length=64), list_of("set")] = []
    """Client networks that may connect, as CIDR, at most 64. Default: every private range (RFC 1918 and
    100.64.0.0/10)."""
    idle_timeout_minutes: Annotated[int, Field(ge=4, le=30)] = 30
    """Minutes after which the load balancer drops a silent connection, 4 to 30. Default: 30, for long streams."""


class ClientSelector(ApiModel):
    """Pods of this cluster that may connect; both selectors must match."""

    RULES = (
        Rule(
            cel="has(self.namespaceSelector) || has(self.podSelector)",
            message="must set `namespaceSelector`, `podSelector` or both",
            holds=lambda client: client.namespace_selector is not None or client.pod_selector is not None,
        ),
    )

    namespace_selector: MatchLabels | None = None
    """Namespaces the pods are in. Default: the namespace of the ModelDeployment."""
    pod_selector: MatchLabels | None = None
    """The pods themselves. Default: every pod of the selected namespaces."""


class MatchLabels(ApiModel):
    """Labels that must all be there with these values."""

    match_labels: Labels = {}
    """Label keys and values, at most 16. Default: empty, which selects everything."""


class Tls(ApiModel):
    """Serve HTTPS with the certificate of a Secret, which the kubelet mounts; the operator never reads it."""

    secret_name: ObjectName
    """A Secret of type kubernetes.io/tls in the same namespace (keys 'tls.crt' and 'tls.key')."""


class ApiKey(ApiModel):
    """Ask clients for a bearer token on /v1; the operator never reads it."""

    secret_name: ObjectName
    """A Secret in the same namespace."""
    key: Annotated[
        str,
        StringConstraints(min_length=1, max_length=253),
        matches(
            r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$",
            "must be a key of a Secret: letters, digits, '-', '_' or '.', not starting with '..'",
        ),
    ] = "token"
    """Key of that Secret that holds the token. Default: 'token'."""


class Endpoint(ApiModel):
    """The private endpoint of the model."""

    RULES = (
        Rule(
            cel="!(has(self.internalLoadBalancer) && has(self.gateway))",
            message="must set at most one of `internalLoadBalancer` and `gateway`",
            holds=lambda endpoint: endpoint.internal_load_balancer is None or endpoint.gateway is None,
            field=".gateway",
        ),
        Rule(
            cel="!(has(self.tls) && has(self.gateway))",
            message="must not be set with `gateway`: the gateway ends TLS at its listener and speaks HTTP to the pods; "
            "set the certificate at the listener",
            holds=lambda endpoint: endpoint.tls is None or endpoint.gateway is None,
            field=".tls",
        ),
    )

    port: Annotated[int, Field(ge=1024, le=65535)] = 8000
    """TCP port of the pod, 1024 to 65535: it binds none below, for it runs without privileges. Default: 8000."""
    service_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """TCP port of the Service and of the load balancer, 1 to 65535, for example 443 beside `tls`. Default: `port`."""
    internal_load_balancer: InternalLoadBalancer | None = None
    """Put an internal load balancer in front; '{}' takes every default. Default: none, and the model is reachable
    inside the cluster only."""
    gateway: GatewayRoute | None = None
    """Put a Gateway of the Gateway API in front, which many models share; in place of `internalLoadBalancer`. Default:
    none.

    gateway: {name: models, namespace: gateways}"""
    allowed_clients: Annotated[list[ClientSelector], Field(max_length=32), list_of("atomic")] = []
    """Pods of this cluster that may connect. Default: none but the load balancer's clients, or the gateway's pods."""
    tls: Tls | None = None
    """Serve HTTPS. Default: HTTP."""
    api_key: ApiKey | None = None
    """Ask for an API key (vLLM and SGLang; a NIM checks none). With vLLM it guards /v1, /v2 and /inference. Other
    paths answer without it, '/invocations' (inference) among them: docs/security.md lists them for each engine, and
    `allowedClients` says who can connect. Default: none."""

    @property
    def client_port(self) -> int:
        """The port that clients connect to."""
        return self.service_port or self.port


ClientSelector.model_rebuild()
