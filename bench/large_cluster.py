"""Manifests of a large cluster: pods by the thousand with two containers each, and what belongs to them."""

from __future__ import annotations

from typing import Any

PODS_PER_NODE = 25
NAMESPACES = 50
ENVIRONMENT = [{"name": f"VALUE_{number}", "value": "x" * 20} for number in range(15)]
IMAGE = "contoso.azurecr.io/app@sha256:" + "0" * 64

Manifest = dict[str, Any]


def large_cluster(pods: int) -> list[Manifest]:
    """One node for every 25 pods, one Service with its EndpointSlice for every five, 50 closed namespaces."""
    nodes, services = max(1, pods // PODS_PER_NODE), pods // 5
    manifests = [
        *(_node(number) for number in range(nodes)),
        *(manifest for number in range(NAMESPACES) for manifest in _namespace(f"ns-{number}")),
        *(_pod(number, nodes) for number in range(pods)),
        *(manifest for number in range(services) for manifest in _service(number)),
    ]
    for number, manifest in enumerate(manifests):
        manifest["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": str(number + 1)}
    return manifests


def _manifest(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _node(number: int) -> Manifest:
    addresses = [{"type": "InternalIP", "address": f"10.2.{number // 250}.{number % 250}"}]
    status = {"addresses": addresses, "capacity": {"cpu": "16"}}
    return _manifest("v1", "Node", f"node-{number}", metadata={"labels": {"agentpool": "user"}}, status=status)


def _namespace(name: str) -> list[Manifest]:
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    return [
        _manifest("v1", "Namespace", name),
        _manifest("networking.k8s.io/v1", "NetworkPolicy", "default-deny", name, spec=spec),
    ]


def _pod(number: int, nodes: int) -> Manifest:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"app-{number % 200}", "uid": "u"}
    container = {"image": IMAGE, "env": ENVIRONMENT, "ports": [{"containerPort": 80}]}
    spec = {
        "nodeName": f"node-{number % nodes}",
        "containers": [{**container, "name": "main"}, {**container, "name": "side"}],
        "volumes": [{"name": "config", "configMap": {"name": "app"}}, {"name": "scratch", "emptyDir": {}}],
    }
    address = f"10.{10 + number // 65025}.{number // 255 % 255}.{number % 255}"
    ready = [{"type": "Ready", "status": "True"}]
    return _manifest(
        "v1",
        "Pod",
        f"app-{number}",
        f"ns-{number % NAMESPACES}",
        metadata={"labels": {"app": f"app-{number % 200}"}, "ownerReferences": [{**owner, "controller": True}]},
        spec=spec,
        status={"phase": "Running", "podIP": address, "conditions": ready},
    )


def _service(number: int) -> list[Manifest]:
    name, namespace = f"service-{number}", f"ns-{number % NAMESPACES}"
    spec = {"type": "ClusterIP", "clusterIP": "10.0.0.9", "ports": [{"port": 80}]}
    endpoints = [{"addresses": [f"10.10.0.{number}"]} for number in range(5)]
    labels = {"kubernetes.io/service-name": name}
    return [
        _manifest("v1", "Service", name, namespace, spec=spec),
        _manifest(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            name,
            namespace,
            metadata={"labels": labels},
            addressType="IPv4",
            endpoints=endpoints,
        ),
    ]
