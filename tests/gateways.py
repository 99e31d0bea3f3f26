"""Gateways of the Gateway API as a controller reports them, and configurations that allow them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermetic.api.configuration import Configuration
from tests.scenarios import Manifest
from tests.snapshots import POLICY

GATEWAY = {"name": "models", "namespace": "gateways"}
"""`endpoint.gateway` of a spec."""
ALLOWED: Manifest = {
    **GATEWAY,
    "namespaces": ["*"],
    "dataPlane": {"namespace": "envoy", "podLabels": {"gateway": "models"}},
}
"""A line of `gateways` of the configuration."""
LISTENER: Manifest = {
    "name": "http",
    "protocol": "HTTP",
    "port": 80,
    "allowedRoutes": {"namespaces": {"from": "All"}},
}
HTTPS_LISTENER: Manifest = {**LISTENER, "name": "https", "protocol": "HTTPS", "port": 443}
ADDRESS = "10.224.0.9"
Reported = tuple[str, str, str]  # (status, reason, message) of a condition


def allowing(*lines: Manifest, **policy: Any) -> Configuration:
    """The configuration of tests with these gateways."""
    plain = POLICY.model_dump(by_alias=True, exclude_none=True)
    return Configuration.model_validate({**plain, "gateways": list(lines), **policy})


def a_gateway(
    *listeners: Manifest,
    addresses: Sequence[str] = (ADDRESS,),
    requested: Sequence[str] = (),
    conditions: Sequence[Manifest] = (),
    reported: Mapping[str, Sequence[Manifest]] | None = None,
    version: int = 1,
) -> Manifest:
    """The Gateway, by default with one listener for routes of every namespace; `reported`: conditions by listener."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {**GATEWAY, "uid": "uid-of-the-gateway", "resourceVersion": str(version)},
        "spec": {
            "gatewayClassName": "internal",
            "listeners": list(listeners or (LISTENER,)),
            "addresses": [{"type": "IPAddress", "value": address} for address in requested],
        },
        "status": {
            "addresses": [{"type": "IPAddress", "value": address} for address in addresses],
            "conditions": list(conditions),
            "listeners": [{"name": name, "conditions": list(of_it)} for name, of_it in (reported or {}).items()],
        },
    }


def a_report(
    *,
    name: str = "models",
    accepted: Reported = ("True", "Accepted", ""),
    resolved: Reported = ("True", "ResolvedRefs", ""),
) -> Manifest:
    """What a controller reports of a route, for the Gateway of this name."""
    named = (("Accepted", accepted), ("ResolvedRefs", resolved))
    return {
        "parentRef": {
            "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "gateways", "name": name,
        },
        "controllerName": "example.com/controller",
        "conditions": [
            {"type": kind, "status": status, "reason": reason, "message": message}
            for kind, (status, reason, message) in named
        ],
    }  # fmt: skip
