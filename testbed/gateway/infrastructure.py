"""What a Gateway runs on: a Deployment of Envoy and a Service with the Gateway's address, both in its namespace.

They carry the labels that the Gateway API recommends for generated objects (GEP-1762; `GatewayNameLabelKey` and
`GatewayClassNameLabelKey` in apis/v1/well_known_labels.go of sigs.k8s.io/gateway-api v1.6.3), and the labels and
annotations of `spec.infrastructure`. So the address is public unless these annotations ask for an internal load
balancer, as it is with the controllers of others.
"""

from __future__ import annotations

from typing import Any

from testbed.gateway import envoy
from testbed.gateway.definitions import GROUP
from testbed.gateway.snapshot import GATEWAY_LABEL, Manifest, Snapshot, key_of, namespace_of
from testbed.gateway.translation import container_port

SUFFIX = "hermetic-test"
ASKED_ADDRESS = "service.beta.kubernetes.io/azure-load-balancer-ipv4"
USER = 65532


def labels_of(gateway: Manifest) -> dict[str, str]:
    """Of the pods, the Deployment and the Service."""
    return {
        GATEWAY_LABEL: gateway["metadata"]["name"],
        f"{GROUP}/gateway-class-name": gateway["spec"]["gatewayClassName"],
        **gateway["spec"].get("infrastructure", {}).get("labels", {}),
    }


def name_of(gateway: Manifest) -> str:
    """Of the Deployment and the Service: at most 63 characters, as a Service's name must be."""
    return f"{gateway['metadata']['name'][: 62 - len(SUFFIX)]}-{SUFFIX}"


def deployment(gateway: Manifest, image: str, server: tuple[str, int], refresh_seconds: float) -> Manifest:
    """One Envoy, which asks the discovery server for its configuration."""
    selector = {GATEWAY_LABEL: gateway["metadata"]["name"]}
    container = {
        "name": "envoy",
        "image": image,
        "args": envoy.arguments(key_of(gateway), "$(POD_NAME)", server, refresh_seconds),
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "readinessProbe": {"httpGet": {"path": "/", "port": envoy.READY_PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": selector},
        "template": {"metadata": {"labels": labels_of(gateway)}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(gateway), "spec": spec}


def service(gateway: Manifest) -> Manifest:
    """A load balancer with the ports of the listeners, whether they are valid or not."""
    addresses = [entry["value"] for entry in gateway["spec"].get("addresses") or [] if entry.get("value")]
    ports = sorted({listener["port"] for listener in gateway["spec"]["listeners"]})
    metadata = _metadata(gateway)
    metadata["annotations"] = {
        **gateway["spec"].get("infrastructure", {}).get("annotations", {}),
        **({ASKED_ADDRESS: addresses[0]} if addresses else {}),
    }
    spec = {
        "type": "LoadBalancer",
        "selector": {GATEWAY_LABEL: gateway["metadata"]["name"]},
        "ports": [
            {"name": f"port-{port}", "port": port, "targetPort": container_port(port), "protocol": "TCP"}
            for port in ports
        ],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _metadata(gateway: Manifest) -> dict[str, Any]:
    owner = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gateway",
        "name": gateway["metadata"]["name"],
        "uid": gateway["metadata"]["uid"],
        "controller": True,
    }
    return {
        "name": name_of(gateway),
        "namespace": namespace_of(gateway),
        "labels": labels_of(gateway),
        "ownerReferences": [owner],
    }


def addresses_of(snapshot: Snapshot, gateway: Manifest) -> list[str]:
    """The addresses that the Service of the Gateway has now."""
    live = snapshot.services.get(f"{namespace_of(gateway)}/{name_of(gateway)}", {})
    ingress = live.get("status", {}).get("loadBalancer", {}).get("ingress") or []
    return [entry["ip"] for entry in ingress if "ip" in entry]


def ready_pods_of(snapshot: Snapshot, gateway: Manifest) -> int:
    """How many pods of the data plane are ready, by the EndpointSlices of its Service."""
    name = f"{namespace_of(gateway)}/{name_of(gateway)}"
    ready = {
        endpoint["targetRef"]["uid"]
        for part in snapshot.endpointslices.values()
        if f"{namespace_of(part)}/{part['metadata'].get('labels', {}).get('kubernetes.io/service-name')}" == name
        for endpoint in part.get("endpoints") or []
        if endpoint.get("conditions", {}).get("ready") and "targetRef" in endpoint
    }
    return len(ready)
