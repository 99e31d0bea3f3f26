"""The objects that a gateway controller decides from, as its watches last saw them. Keys are `namespace/name`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.gateway.definitions import GROUP

Manifest = dict[str, Any]
Objects = Mapping[str, Manifest]

GATEWAY_LABEL = f"{GROUP}/gateway-name"
"""On everything that serves a Gateway: `GatewayNameLabelKey` in apis/v1/well_known_labels.go."""
SERVICE_LABEL = "kubernetes.io/service-name"


def key_of(manifest: Manifest) -> str:
    """`namespace/name`, or the name of an object without a namespace."""
    meta: dict[str, str] = manifest["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]


def namespace_of(manifest: Manifest) -> str:
    namespace: str = manifest["metadata"]["namespace"]
    return namespace


@dataclass(frozen=True)
class Backend:
    """A port of a Service that a rule sends requests to."""

    service: str
    port: int
    port_name: str

    @property
    def cluster(self) -> str:
        """Envoy's name of it."""
        return f"{self.service}:{self.port}"


@dataclass(frozen=True)
class Endpoint:
    """An address of a pod; a draining one is ending, still serves, and gets no new requests."""

    address: str
    port: int
    is_draining: bool = False


@dataclass(frozen=True)
class Snapshot:
    """All objects of one moment, by their key."""

    gatewayclasses: Objects = field(default_factory=dict)
    gateways: Objects = field(default_factory=dict)
    httproutes: Objects = field(default_factory=dict)
    referencegrants: Objects = field(default_factory=dict)
    namespaces: Objects = field(default_factory=dict)
    services: Objects = field(default_factory=dict)
    endpointslices: Objects = field(default_factory=dict)
    secrets: Objects = field(default_factory=dict)

    def gateways_of(self, controller: str) -> Iterator[Manifest]:
        """The Gateways whose class names this controller."""
        for gateway in self.gateways.values():
            of_class = self.gatewayclasses.get(gateway["spec"]["gatewayClassName"])
            if of_class is not None and of_class["spec"]["controllerName"] == controller:
                yield gateway

    def permits(self, source: Manifest, kind: str, name: str, namespace: str) -> bool:
        """Whether an object of the core group in `namespace` may be referred to from `source`.

        Source: apis/v1/referencegrant_types.go. An object of the same namespace needs no ReferenceGrant.
        """
        if namespace == namespace_of(source):
            return True
        grants = (grant["spec"] for grant in self.referencegrants.values() if namespace_of(grant) == namespace)
        origin = {"group": GROUP, "kind": source["kind"], "namespace": namespace_of(source)}
        return any(
            origin in grant["from"]
            and any(
                (target["group"], target["kind"]) == ("", kind) and target.get("name", name) == name
                for target in grant["to"]
            )
            for grant in grants
        )

    def endpoints(self, backend: Backend) -> list[Endpoint]:
        """Ready pods of the backend, and those that end but still serve; sorted by address."""
        namespace, service = backend.service.split("/")
        endpoints = []
        for part in self.endpointslices.values():
            meta = part["metadata"]
            if meta["namespace"] != namespace or meta.get("labels", {}).get(SERVICE_LABEL) != service:
                continue
            ports = [port["port"] for port in part.get("ports") or [] if port.get("name", "") == backend.port_name]
            for endpoint in part.get("endpoints") or [] if ports else []:
                conditions = endpoint.get("conditions", {})
                if conditions.get("ready", True) or conditions.get("serving", False):
                    is_draining = bool(conditions.get("terminating", False))
                    endpoints.append(Endpoint(endpoint["addresses"][0], ports[0], is_draining))
        return sorted(endpoints, key=lambda endpoint: endpoint.address)
