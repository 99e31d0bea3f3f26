"""Listeners of a Gateway: their hostnames, what is wrong with them, and the conditions of the Gateway that follow.

A transcript of what sigs.k8s.io/gateway-api v1.6.3 documents in apis/v1/gateway_types.go, at `GatewaySpec.Listeners`
and at the constants `ListenerReason...` and `GatewayReason...`. The stand-in serves HTTP and HTTPS; of the optional
parts it supports addresses of type IPAddress and the annotations of `spec.infrastructure`.
"""

from __future__ import annotations

import base64
from collections.abc import Collection
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from testbed.gateway.conditions import (
    Condition,
    GatewayCondition,
    GatewayReason,
    ListenerCondition,
    ListenerReason,
)
from testbed.gateway.definitions import GROUP
from testbed.gateway.snapshot import Manifest, Snapshot, namespace_of

PROTOCOLS = frozenset({"HTTP", "HTTPS"})
ROUTE_KIND = {"group": GROUP, "kind": "HTTPRoute"}


def covers(wide: str, narrow: str) -> bool:
    """Whether every host that `narrow` matches is matched by `wide`.

    The empty hostname matches all; `*.example.com` matches `a.b.example.com`, and not `example.com`.
    """
    if wide in ("", narrow):
        return True
    return wide.startswith("*.") and narrow.removeprefix("*").endswith(wide.removeprefix("*"))


def intersection(first: str, second: str) -> str | None:
    """The hostname that matches what both match; None where nothing does."""
    if covers(first, second):
        return second
    return first if covers(second, first) else None


def specificity(hostname: str) -> tuple[int, int]:
    """The larger, the more specific: characters of a hostname without wildcard, then of any."""
    return (0 if hostname.startswith("*") else len(hostname), len(hostname))


def supports_http_routes(listener: Manifest) -> bool:
    """Whether a listener takes HTTPRoutes at all, whatever namespace they are in."""
    kinds = listener.get("allowedRoutes", {}).get("kinds") or [ROUTE_KIND]
    return listener["protocol"] in PROTOCOLS and any({**ROUTE_KIND, **kind} == ROUTE_KIND for kind in kinds)


@dataclass(frozen=True)
class ListenerState:
    """A listener with its conditions; `is_served` says whether the data plane opens its port."""

    listener: Manifest
    conditions: tuple[Condition, ...]
    is_served: bool

    @property
    def supported_kinds(self) -> list[dict[str, str]]:
        return [ROUTE_KIND] if supports_http_routes(self.listener) else []


def listener_states(snapshot: Snapshot, gateway: Manifest) -> list[ListenerState]:
    """Every listener of the Gateway. Of those that conflict, the Gateway API lets no listener win."""
    protocols: dict[int, set[str]] = {}
    for listener in gateway["spec"]["listeners"]:
        protocols.setdefault(listener["port"], set()).add(listener["protocol"])
    return [
        _state(_resolution(snapshot, gateway, listener), listener, protocols[listener["port"]])
        for listener in gateway["spec"]["listeners"]
    ]


def _state(resolved: Condition, listener: Manifest, protocols: set[str]) -> ListenerState:
    protocol, port = listener["protocol"], listener["port"]
    accepted = Condition(ListenerCondition.ACCEPTED, True, ListenerReason.ACCEPTED, "Listener is accepted")
    conflict = Condition(ListenerCondition.CONFLICTED, False, ListenerReason.NO_CONFLICTS, "No conflicts")
    programmed = Condition(ListenerCondition.PROGRAMMED, True, ListenerReason.PROGRAMMED, "Listener is programmed")
    invalid = ""
    if not resolved.is_true and resolved.reason != ListenerReason.INVALID_ROUTE_KINDS:
        invalid = resolved.message
    if len(protocols) > 1:
        invalid = f"listeners of port {port} have the protocols {', '.join(sorted(protocols))}"
        conflict = Condition(ListenerCondition.CONFLICTED, True, ListenerReason.PROTOCOL_CONFLICT, invalid)
    if protocol not in PROTOCOLS:
        invalid = f"protocol {protocol} is not supported"
        accepted = Condition(ListenerCondition.ACCEPTED, False, ListenerReason.UNSUPPORTED_PROTOCOL, invalid)
    if invalid:
        programmed = Condition(ListenerCondition.PROGRAMMED, False, ListenerReason.INVALID, invalid)
    return ListenerState(listener, (accepted, conflict, resolved, programmed), not invalid)


def _resolution(snapshot: Snapshot, gateway: Manifest, listener: Manifest) -> Condition:
    def unresolved(reason: ListenerReason, message: str) -> Condition:
        return Condition(ListenerCondition.RESOLVED_REFS, False, reason, message)

    kinds = [{**ROUTE_KIND, **kind} for kind in listener.get("allowedRoutes", {}).get("kinds") or []]
    if unsupported := [kind["kind"] for kind in kinds if kind != ROUTE_KIND]:
        return unresolved(ListenerReason.INVALID_ROUTE_KINDS, f"kinds are not supported: {', '.join(unsupported)}")
    if listener["protocol"] == "HTTPS":
        references = listener.get("tls", {}).get("certificateRefs") or [{"name": "(no certificateRefs)"}]
        for reference in references:
            namespace, name = reference.get("namespace", namespace_of(gateway)), reference["name"]
            kind = (reference.get("group", ""), reference.get("kind", "Secret"))
            if kind != ("", "Secret"):
                message = f"{'/'.join(filter(None, kind))} {name} is not a Secret"
                return unresolved(ListenerReason.INVALID_CERTIFICATE_REF, message)
            if not snapshot.permits(gateway, "Secret", name, namespace):
                message = f"no ReferenceGrant in namespace {namespace} allows the reference to Secret {name}"
                return unresolved(ListenerReason.REF_NOT_PERMITTED, message)
            secret = snapshot.secrets.get(f"{namespace}/{name}")
            if secret is None or not {"tls.crt", "tls.key"} <= secret.get("data", {}).keys():
                message = f"Secret {namespace}/{name} does not exist or has no tls.crt and tls.key"
                return unresolved(ListenerReason.INVALID_CERTIFICATE_REF, message)
            if problem := _certificate_problem(secret["data"]):
                message = f"Secret {namespace}/{name}: {problem}"
                return unresolved(ListenerReason.INVALID_CERTIFICATE_REF, message)
    return Condition(ListenerCondition.RESOLVED_REFS, True, ListenerReason.RESOLVED_REFS, "Resolved all references")


def _certificate_problem(data: dict[str, str]) -> str:
    """What is wrong with the certificate and the key of a Secret; "" for a pair. Envoy refuses a listener without."""
    try:
        certificate = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))
        key = serialization.load_pem_private_key(base64.b64decode(data["tls.key"]), None)
    except (ValueError, TypeError):
        return "tls.crt and tls.key are not a certificate and a key in PEM"
    return "" if key.public_key() == certificate.public_key() else "tls.key is not the key of tls.crt"


def gateway_conditions(
    gateway: Manifest, states: list[ListenerState], addresses: Collection[str], ready_pods: int
) -> list[Condition]:
    """Accepted and Programmed of the Gateway.

    As documented of Programmed: True says that the data plane has an address and pods, not that they have taken the
    newest routes in.
    """
    unsupported = [entry for entry in gateway["spec"].get("addresses") or [] if entry.get("type") == "Hostname"]
    accepted = Condition(GatewayCondition.ACCEPTED, True, GatewayReason.ACCEPTED, "Gateway is accepted")
    invalid = [state.listener["name"] for state in states if not state.is_served]
    if unsupported:
        message = f"addresses of type Hostname are not supported: {unsupported[0]['value']}"
        accepted = Condition(GatewayCondition.ACCEPTED, False, GatewayReason.UNSUPPORTED_ADDRESS, message)
    elif invalid:
        message = f"listeners are not valid: {', '.join(invalid)}"
        is_true = len(invalid) < len(states)
        accepted = Condition(GatewayCondition.ACCEPTED, is_true, GatewayReason.LISTENERS_NOT_VALID, message)
    return [accepted, _programming(accepted, addresses, ready_pods)]


def _programming(accepted: Condition, addresses: Collection[str], ready_pods: int) -> Condition:
    def refused(reason: GatewayReason, message: str) -> Condition:
        return Condition(GatewayCondition.PROGRAMMED, False, reason, message)

    if not accepted.is_true:
        return refused(GatewayReason.INVALID, accepted.message)
    if not addresses:
        return refused(GatewayReason.ADDRESS_NOT_ASSIGNED, "No addresses have been assigned to the Gateway")
    if not ready_pods:
        return refused(GatewayReason.NO_RESOURCES, "No pod of the data plane is ready")
    message = f"Address assigned to the Gateway, {ready_pods} ready pods of the data plane"
    return Condition(GatewayCondition.PROGRAMMED, True, GatewayReason.PROGRAMMED, message)
