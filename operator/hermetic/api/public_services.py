"""What makes a Service, an Ingress or a route public, as plain values: for EndpointPrivate and the audit.

Only this module has the annotations and comparisons; consequences and messages are those of its callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

PREFIX = "service.beta.kubernetes.io/"
INTERNAL = f"{PREFIX}azure-load-balancer-internal"
"""The annotation that makes a load balancer private, and only with the value "true"."""

PRIVATE_LINK = f"{PREFIX}azure-pls"
"""Prefix of the annotations of a private link service, by which other networks connect to the load balancer."""
ALLOWED_RANGES = f"{PREFIX}azure-allowed-ip-ranges"
"""Ranges that the network security group lets in to the load balancer."""

ASKS_FOR_PUBLIC = tuple(
    PREFIX + name
    for name in (
        "azure-pip-name",
        "azure-pip-name-ipv6",
        "azure-pip-prefix-id",
        "azure-pip-prefix-id-ipv6",
        "azure-dns-label-name",
        "azure-additional-public-ips",
    )
)
"""Each of these asks Azure for a public address, whatever the others say."""

PUBLIC_SIDE = ASKS_FOR_PUBLIC + tuple(
    PREFIX + name
    for name in (
        "azure-pip-tags",
        "azure-pip-ip-tags",
        "azure-load-balancer-resource-group",
        "azure-allowed-service-tags",
        "azure-allowed-ip-ranges",
        "azure-disable-load-balancer-nsg-rule",
        "azure-pls-create",
    )
)
"""Annotations that would give the Service of a model a public side. None is rendered; a live one is taken away."""

SHARED_BY_MESH = ("service.cilium.io/global", "io.cilium/global-service")
"""A Service of Cilium's cluster mesh: pods of other clusters answer for it, and ask it."""

PUBLISHES = (
    "external-dns.alpha.kubernetes.io/hostname",
    *SHARED_BY_MESH,
    "tailscale.com/expose",
    "tailscale.com/funnel",
)
"""These open or publish a Service of any type: names outside, other networks, other clusters of a mesh."""

_AGIC = "azure/application-gateway"
_FOR_CONTAINERS = "alb.networking.azure.io/"
_AGIC_CLASSES = frozenset({_AGIC, "azure-application-gateway"})
_FOR_CONTAINERS_CLASSES = frozenset({"azure-alb-external"})

PUBLIC_CLASSES = _AGIC_CLASSES | _FOR_CONTAINERS_CLASSES
"""Classes of controllers whose gateway has a public address, for objects whose class is not known or is gone."""

PRIVATE_FRONT = "appgw.ingress.kubernetes.io/use-private-ip"
"""Only the Application Gateway Ingress Controller reads it, not Application Gateway for Containers.

Source: Azure/application-gateway-kubernetes-ingress, docs/features/private-ip.md.
"""
CLASS = "kubernetes.io/ingress.class"

SENDING_FILTERS = ("requestMirror", "externalAuth")
"""Filters of a route of the Gateway API with a backendRef: each sends requests, or copies of them, to it."""


def ingress_classes(of_spec: str | None, annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """The classes by the field and by the annotation: with both, AGIC reads the annotation, and others the field.

    Source: Azure/application-gateway-kubernetes-ingress, IsIngressClass in pkg/k8scontext/context.go.
    """
    return tuple(dict.fromkeys((of_spec or "", str(annotations.get(CLASS) or ""))))


def class_is_public(class_name: str, annotations: Mapping[str, Any], controller: str = "") -> bool:
    """Whether the controller of this class creates public addresses; `controller` is "" where it is not known."""
    if controller.startswith(_FOR_CONTAINERS) or class_name in _FOR_CONTAINERS_CLASSES:
        return True
    is_agic = controller.startswith(_AGIC) or class_name in _AGIC_CLASSES
    return is_agic and annotations.get(PRIVATE_FRONT) != "true"


def is_internal(annotations: Mapping[str, Any]) -> bool:
    """Whether a load balancer is private: for Azure's controller every value but "true" means public."""
    return bool(annotations.get(INTERNAL) == "true")


def set_among(names: Iterable[str], annotations: Mapping[str, Any]) -> Iterator[str]:
    """The annotations of these names that have a value."""
    return (name for name in names if str(annotations.get(name) or "").strip())


def switched_on(names: Iterable[str], annotations: Mapping[str, Any]) -> Iterator[str]:
    """The annotations of these names that have a value other than "false"."""
    return (name for name in names if str(annotations.get(name) or "false").lower() != "false")


def given(ingress: Iterable[tuple[str | None, str | None]]) -> tuple[str, ...]:
    """What a load balancer assigned, from (ip, hostname): an address, or a host name, which can point anywhere."""
    return tuple(ip or hostname or "" for ip, hostname in ingress)


def names_a_service(group: str | None, kind: str | None, default: str = "Service") -> bool:
    """Whether a reference of the Gateway API names a Service; `default` is the kind of a reference without one."""
    return not group and (kind or default) == "Service"
