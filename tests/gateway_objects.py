"""Objects of the Gateway API as users write them, and the Services and EndpointSlices that routes lead to.

They have what the API server fills in, so that functions of the test bed take them without one.
"""

from __future__ import annotations

import base64
from typing import Any

from testbed.certificates import Credential
from testbed.gateway.controller import CONTROLLER
from testbed.gateway.definitions import GROUP
from testbed.gateway.snapshot import SERVICE_LABEL, Manifest, Snapshot, key_of

CLASS = "stand-in"
INTERNAL = {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
HTTP_LISTENER: Manifest = {
    "name": "http",
    "port": 80,
    "protocol": "HTTP",
    "allowedRoutes": {"namespaces": {"from": "All"}},
}


def a_class(name: str = CLASS, controller: str = CONTROLLER) -> Manifest:
    return _object("GatewayClass", {"name": name}, {"controllerName": controller})


def a_gateway(name: str = "edge", namespace: str = "gateways", *listeners: Manifest, **spec: Any) -> Manifest:
    """A Gateway with an internal address; by default with a listener that takes HTTPRoutes of all namespaces."""
    spec = {
        "gatewayClassName": CLASS,
        "infrastructure": {"annotations": INTERNAL},
        "listeners": list(listeners) or [HTTP_LISTENER],
        **spec,
    }
    return _object("Gateway", {"name": name, "namespace": namespace}, spec)


def a_listener(name: str = "http", **fields: Any) -> Manifest:
    return {**HTTP_LISTENER, "name": name, **fields}


def a_route(name: str, namespace: str, *rules: Manifest, **spec: Any) -> Manifest:
    """An HTTPRoute whose parent is the Gateway of `a_gateway()`."""
    spec = {"parentRefs": [{"name": "edge", "namespace": "gateways"}], "rules": list(rules), **spec}
    return _object("HTTPRoute", {"name": name, "namespace": namespace}, spec)


def a_rule(*weights: tuple[str, int], prefix: str = "/", **fields: Any) -> Manifest:
    """A rule with Services of the route's own namespace by weight; a prefix other than / is taken away."""
    rewrite = {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}
    return {
        "matches": [{"path": {"type": "PathPrefix", "value": prefix}}],
        "filters": [rewrite] if prefix != "/" else [],
        "backendRefs": [{"name": name, "port": 8000, "weight": weight} for name, weight in weights],
        "timeouts": {"request": "0s"},
        **fields,
    }


def a_service(name: str, namespace: str) -> Manifest:
    return _object("Service", {"name": name, "namespace": namespace}, {"ports": [{"name": "http", "port": 8000}]})


def a_secret(name: str, namespace: str, credential: Credential) -> Manifest:
    """A certificate and its key, as a listener refers to them."""
    data = {"tls.crt": credential.certificate, "tls.key": credential.key}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    meta = {"name": name, "namespace": namespace}
    return {**_object("Secret", meta, {}), "type": "kubernetes.io/tls", "data": encoded}


def with_tls(name: str, secret: str, port: int = 443, **fields: Any) -> Manifest:
    """A listener that ends TLS with the certificate of a Secret."""
    return a_listener(name, port=port, protocol="HTTPS", tls={"certificateRefs": [{"name": secret}]}, **fields)


def a_slice(name: str, namespace: str, port: int, *conditions: Manifest) -> Manifest:
    """The EndpointSlice of a Service with an endpoint on loopback for each of the conditions."""
    labels = {SERVICE_LABEL: name}
    endpoints = [{"addresses": ["127.0.0.1"], "conditions": condition} for condition in conditions or [READY]]
    meta = {"name": f"{name}-1", "namespace": namespace, "labels": labels}
    return {**_object("EndpointSlice", meta, {}), "endpoints": endpoints, "ports": [{"name": "http", "port": port}]}


READY: Manifest = {"ready": True, "serving": True, "terminating": False}
ENDING: Manifest = {"ready": False, "serving": True, "terminating": True}
NOT_READY: Manifest = {"ready": False, "serving": False, "terminating": False}


def a_snapshot(*objects: Manifest) -> Snapshot:
    """What a controller sees of these objects, with their class and their namespaces."""
    kinds: dict[str, dict[str, Manifest]] = {"gatewayclasses": {CLASS: a_class()}, "namespaces": {}}
    for manifest in objects:
        kinds.setdefault(PLURALS[manifest["kind"]], {})[key_of(manifest)] = manifest
        if namespace := manifest["metadata"].get("namespace"):
            kinds["namespaces"].setdefault(namespace, _object("Namespace", {"name": namespace}, {}))
    return Snapshot(**kinds)


PLURALS = {
    "GatewayClass": "gatewayclasses",
    "Gateway": "gateways",
    "HTTPRoute": "httproutes",
    "ReferenceGrant": "referencegrants",
    "Namespace": "namespaces",
    "Service": "services",
    "Secret": "secrets",
    "EndpointSlice": "endpointslices",
}
VERSIONS = {"Namespace": "v1", "Service": "v1", "Secret": "v1", "EndpointSlice": "discovery.k8s.io/v1"}


def _object(kind: str, metadata: Manifest, spec: Manifest) -> Manifest:
    filled_in = {"creationTimestamp": "2026-11-01T00:00:00Z", "generation": 1, "uid": f"uid-of-{metadata['name']}"}
    version = VERSIONS.get(kind, f"{GROUP}/v1")
    return {"apiVersion": version, "kind": kind, "metadata": {**filled_in, **metadata}, "spec": spec}
