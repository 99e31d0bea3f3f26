"""NetworkPolicies: of a model, whose clients the spec names and which calls nothing; of pods that call each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from hermetic.api.endpoint import ClientSelector, Endpoint
from hermetic.api.gateway import DataPlane
from hermetic.api.ip_ranges import PRIVATE_IPV4
from hermetic.objects.names import Owner, metadata, selector


@dataclass(frozen=True, slots=True)
class PodPeer:
    """Pods of the same namespace that the pods of a replica call, and that call them.

    `labels`: all labels that select them, at least one: a selector without labels selects every pod of the namespace.
    `first_port`, `last_port`: the range of TCP ports.
    """

    labels: Mapping[str, str]
    first_port: int
    last_port: int

    def __post_init__(self) -> None:
        if not self.labels:
            raise ValueError("labels of a pod peer: empty, which selects every pod of the namespace; give one or more")


def network_policy(
    owner: Owner,
    engine: str,
    endpoint: Endpoint,
    pod_ranges: tuple[str, ...] = (),
    data_planes: Sequence[DataPlane] = (),
) -> dict[str, Any]:
    """Default deny both ways; no rule for NFS, because the node mounts it, not the pod, and none for DNS.

    `pod_ranges`: CIDRs of the cluster's pods, which are no clients of the load balancer. `data_planes`: the pods of
    gateways that lead to the model.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(owner, engine),
        "spec": {
            "podSelector": {"matchLabels": selector(owner)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": _ingress(endpoint, pod_ranges, data_planes),
            "egress": [],
        },
    }


def peer_policy(metadata: dict[str, Any], peer: PodPeer) -> dict[str, Any]:
    """A policy of the peers themselves: they call each other, and nothing else by this policy."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            "podSelector": {"matchLabels": dict(peer.labels)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [_peer_rule("from", peer)],
            "egress": [_peer_rule("to", peer)],
        },
    }


def _ingress(endpoint: Endpoint, pod_ranges: tuple[str, ...], data_planes: Sequence[DataPlane]) -> list[dict[str, Any]]:
    clients = (_pods(client) for client in endpoint.allowed_clients)
    peers = [*_load_balancer_clients(endpoint, pod_ranges), *map(_data_plane, data_planes), *clients]
    if not peers:
        return []
    return [{"from": peers, "ports": [{"protocol": "TCP", "port": endpoint.port}]}]


def _peer_rule(direction: str, peer: PodPeer) -> dict[str, Any]:
    return {
        direction: [{"podSelector": {"matchLabels": dict(peer.labels)}}],
        "ports": [{"protocol": "TCP", "port": peer.first_port, "endPort": peer.last_port}],
    }


def _load_balancer_clients(endpoint: Endpoint, pod_ranges: tuple[str, ...]) -> list[dict[str, Any]]:
    # The Service keeps client addresses (externalTrafficPolicy Local), so the pod sees them and not the node's.
    balancer = endpoint.internal_load_balancer
    if balancer is None:
        return []
    ranges = balancer.allowed_source_ranges or PRIVATE_IPV4
    return [{"ipBlock": block} for cidr in ranges if (block := _without(cidr, pod_ranges)) is not None]


def _without(cidr: str, pod_ranges: tuple[str, ...]) -> dict[str, Any] | None:
    """The block of a range without those of the pods; None where nothing is left of it.

    Calico and Azure Network Policy Manager apply a range to addresses of pods too: without the exception, every pod of
    the cluster would be a client.
    """
    network = ip_network(cidr)
    overlapping = [(text, subnet) for text in pod_ranges if (subnet := ip_network(text)).version == network.version]
    if any(network.subnet_of(subnet) for _, subnet in overlapping):  # type: ignore[arg-type]  # one version, see above
        return None
    excepted = [text for text, subnet in overlapping if subnet.subnet_of(network)]  # type: ignore[arg-type]
    return {"cidr": cidr, "except": excepted} if excepted else {"cidr": cidr}


def _data_plane(plane: DataPlane) -> dict[str, Any]:
    # The API server gives every namespace this label, and lets nobody change it.
    return {
        "namespaceSelector": _match_labels({"kubernetes.io/metadata.name": plane.namespace}),
        "podSelector": _match_labels(plane.pod_labels),
    }


def _pods(client: ClientSelector) -> dict[str, Any]:
    peer: dict[str, Any] = {}
    if client.namespace_selector is not None:
        peer["namespaceSelector"] = _match_labels(client.namespace_selector.match_labels)
    if client.pod_selector is not None:
        peer["podSelector"] = _match_labels(client.pod_selector.match_labels)
    return peer


def _match_labels(labels: dict[str, str]) -> dict[str, Any]:
    return {"matchLabels": dict(labels)} if labels else {}
