"""The pods' NetworkPolicy: no egress, ingress only from the sources that the spec names."""

from __future__ import annotations

from typing import Any

from hermetic.api.endpoint import ClientSelector, Endpoint
from hermetic.api.ip_ranges import PRIVATE_IPV4
from hermetic.objects.names import Owner, metadata, selector


def network_policy(owner: Owner, engine: str, endpoint: Endpoint) -> dict[str, Any]:
    """Default deny both ways; no rule for NFS, because the node mounts it, not the pod, and none for DNS."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(owner, engine),
        "spec": {
            "podSelector": {"matchLabels": selector(owner)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": _ingress(endpoint),
            "egress": [],
        },
    }


def _ingress(endpoint: Endpoint) -> list[dict[str, Any]]:
    peers = [*_load_balancer_clients(endpoint), *(_pods(client) for client in endpoint.allowed_clients)]
    if not peers:
        return []
    return [{"from": peers, "ports": [{"protocol": "TCP", "port": endpoint.port}]}]


def _load_balancer_clients(endpoint: Endpoint) -> list[dict[str, Any]]:
    # The Service keeps client addresses (externalTrafficPolicy Local), so the pod sees them and not the node's.
    balancer = endpoint.internal_load_balancer
    if balancer is None:
        return []
    return [{"ipBlock": {"cidr": cidr}} for cidr in balancer.allowed_source_ranges or PRIVATE_IPV4]


def _pods(client: ClientSelector) -> dict[str, Any]:
    peer: dict[str, Any] = {}
    if client.namespace_selector is not None:
        peer["namespaceSelector"] = _match_labels(client.namespace_selector.match_labels)
    if client.pod_selector is not None:
        peer["podSelector"] = _match_labels(client.pod_selector.match_labels)
    return peer


def _match_labels(labels: dict[str, str]) -> dict[str, Any]:
    return {"matchLabels": dict(labels)} if labels else {}
