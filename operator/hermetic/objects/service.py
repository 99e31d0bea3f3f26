"""The endpoint: an internal load balancer or a cluster IP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.endpoint import Endpoint, InternalLoadBalancer
from hermetic.api.public_services import INTERNAL, PREFIX
from hermetic.objects.names import Owner, metadata, selector

ADDRESS = PREFIX + "azure-load-balancer-ipv4"


def load_balancer_service(
    owner: Owner,
    engine: str,
    endpoint: Endpoint,
    balancer: InternalLoadBalancer,
    *,
    health_path: str,
    answering: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A LoadBalancer Service that is private by construction. `answering`: as of `cluster_service`."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata(owner, engine), "annotations": _annotations(balancer, health_path)},
        "spec": {
            "type": "LoadBalancer",
            # Client addresses stay visible to the NetworkPolicy, and nodes without a ready pod leave the rotation.
            "externalTrafficPolicy": "Local",
            **_source_ranges(balancer),
            **_selection(owner, endpoint, answering),
        },
    }


def cluster_service(
    owner: Owner, engine: str, endpoint: Endpoint, answering: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A Service that is reachable inside the cluster only.

    `answering`: the labels of the pods that answer clients; None for every pod of the model.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(owner, engine),
        "spec": {"type": "ClusterIP", **_selection(owner, endpoint, answering)},
    }


def _selection(owner: Owner, endpoint: Endpoint, answering: Mapping[str, str] | None) -> dict[str, Any]:
    return {
        "selector": selector(owner) if answering is None else dict(answering),
        "ports": [{"name": "http", "protocol": "TCP", "port": endpoint.client_port, "targetPort": endpoint.port}],
    }


def _annotations(balancer: InternalLoadBalancer, health_path: str) -> dict[str, str]:
    annotations = {
        # Exactly "true": the cloud provider takes every other value for public.
        INTERNAL: "true",
        PREFIX + "azure-load-balancer-tcp-idle-timeout": str(balancer.idle_timeout_minutes),
        # The default path '/' answers 404 and would take every node out of rotation.
        PREFIX + "azure-load-balancer-health-probe-request-path": health_path,
    }
    if balancer.subnet is not None:
        annotations[PREFIX + "azure-load-balancer-internal-subnet"] = balancer.subnet
    if balancer.address is not None:
        annotations[ADDRESS] = balancer.address
    if balancer.allowed_source_ranges:
        # The default rule admits the whole virtual network, which would make source ranges ineffective.
        annotations[PREFIX + "azure-deny-all-except-load-balancer-source-ranges"] = "true"
    return annotations


def _source_ranges(balancer: InternalLoadBalancer) -> dict[str, Any]:
    ranges = balancer.allowed_source_ranges
    return {"loadBalancerSourceRanges": list(ranges)} if ranges else {}
