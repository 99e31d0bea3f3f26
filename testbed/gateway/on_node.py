"""A Gateway on the real node: Envoy runs as a pod there, behind the load balancer's address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.api import Api
from testbed.gateway import controller, definitions, envoy
from testbed.gateway.definitions import GROUP
from testbed.gateway.snapshot import GATEWAY_LABEL, Manifest
from testbed.gateway.translation import container_port
from testbed.images.oci import write_archive
from testbed.installation import wait_for
from testbed.node.addresses import NODE_ADDRESS
from testbed.node.handle import RunningNode

NAME, NAMESPACE, CLASS = "edge", "gateways", "stand-in"
COLLECTION = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/gateways"


def allowed(name: str) -> dict[str, Any]:
    """A line of `gateways` of the operator's configuration: a Gateway of NAMESPACE, for models of every namespace."""
    data_plane = {"namespace": NAMESPACE, "podLabels": {GATEWAY_LABEL: name}}
    return {"name": name, "namespace": NAMESPACE, "namespaces": ["*"], "dataPlane": data_plane}


ALLOWED = [allowed(NAME)]
PORTS = (80, 443, 8443)
"""Of listeners: others are closed to clients."""
GATEWAY_CLASS: Manifest = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "GatewayClass",
    "metadata": {"name": CLASS},
    "spec": {"controllerName": controller.CONTROLLER},
}
GATEWAY: Manifest = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Gateway",
    "metadata": {"name": NAME, "namespace": NAMESPACE},
    "spec": {
        "gatewayClassName": CLASS,
        "infrastructure": {"annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}},
        "listeners": [
            {
                "name": "http",
                "port": 80,
                "protocol": "HTTP",
                "allowedRoutes": {"namespaces": {"from": "All"}},
            }
        ],
    },
}

CLOSED: Manifest = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "data-plane", "namespace": NAMESPACE},
    "spec": {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": [{"port": container_port(port)} for port in PORTS]}],
        "egress": [
            {
                "to": [
                    {
                        "namespaceSelector": {},
                        "podSelector": {"matchLabels": {"app.kubernetes.io/component": "model-server"}},
                    }
                ]
            },
            {"to": [{"ipBlock": {"cidr": f"{NODE_ADDRESS}/32"}}]},
        ],
    },
}
"""Without it the audit finds that the pods of the Gateway may go anywhere. The second rule leads to the controller."""


@dataclass(frozen=True)
class NodeGateway:
    """A Gateway that is programmed; `log` is that of its controller."""

    api: Api
    address: str
    log: Path

    def add(self, name: str, listeners: list[Manifest]) -> str:
        """Create another Gateway of NAMESPACE with these listeners; returns its address once it is programmed."""
        spec = {**GATEWAY["spec"], "listeners": listeners}
        self.api.create(COLLECTION, {**GATEWAY, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
        return _programmed(self.api, name)


@contextmanager
def node_gateway(node: RunningNode, folder: Path) -> Iterator[NodeGateway]:
    """The Gateway `gateways/edge` of the stand-in; the operator must be started after it to see its kind at once."""
    api, archive = Api(node.kubeconfig), folder / "envoy.tar"
    image = envoy.image()
    write_archive(archive, [image])
    node.import_images(archive)
    archive.unlink()
    definitions.install(api)
    inside = Path(node.printed["insideKubeconfig"])
    component = controller.component(
        inside, folder / "gateway-controller.log", image.by_digest, NODE_ADDRESS, node.printed["enter"]
    )
    component.start()
    try:
        api.create(f"/apis/{GROUP}/v1/gatewayclasses", GATEWAY_CLASS)
        api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        api.create(f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies", CLOSED)
        api.create(COLLECTION, GATEWAY)
        yield NodeGateway(api, _programmed(api, NAME), component.log)
    finally:
        component.stop()


def _programmed(api: Api, name: str) -> str:
    """The address of a Gateway once it is programmed."""
    return str(wait_for("a programmed Gateway", lambda: _address(api.get(f"{COLLECTION}/{name}")), timeout=90))


def _address(gateway: Manifest) -> str | None:
    status = gateway.get("status", {})
    programmed = [c for c in status.get("conditions") or [] if c["type"] == "Programmed" and c["status"] == "True"]
    return str(status["addresses"][0]["value"]) if programmed else None
