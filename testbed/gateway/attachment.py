"""Which routes a Gateway accepts, on which listeners and for which hostnames, and what the conditions of a route say.

A transcript of the rules that sigs.k8s.io/gateway-api v1.6.3 documents in apis/v1: `ParentReference`, `AllowedRoutes`,
`HTTPRouteSpec.Hostnames`, `BackendRef` and the constants `RouteReason...`. Nothing here reads or writes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.gateway.conditions import Condition, RouteCondition, RouteReason
from testbed.gateway.definitions import GROUP
from testbed.gateway.listeners import intersection, supports_http_routes
from testbed.gateway.snapshot import Backend, Manifest, Snapshot, key_of, namespace_of

SUPPORTED_FILTERS = frozenset({"URLRewrite", "RequestHeaderModifier"})
ANY_HOSTNAME = ""


@dataclass(frozen=True)
class Attachment:
    """A route and one of its parents.

    `hostnames` has the hostnames that the route serves on each listener that took it, by the listener's name; the
    empty hostname stands for all.
    """

    route: Manifest
    parent: Manifest
    gateway: Manifest
    accepted: Condition
    resolved: Condition
    hostnames: dict[str, tuple[str, ...]] = field(default_factory=dict)


def attachments(snapshot: Snapshot, controller: str) -> Iterator[Attachment]:
    """Every route with every parent that is a Gateway of this controller. A parent that does not exist has none."""
    gateways = {key_of(gateway): gateway for gateway in snapshot.gateways_of(controller)}
    for route in snapshot.httproutes.values():
        for parent in route["spec"].get("parentRefs") or []:
            if (parent.get("group", GROUP), parent.get("kind", "Gateway")) != (GROUP, "Gateway"):
                continue
            gateway = gateways.get(f"{parent.get('namespace', namespace_of(route))}/{parent['name']}")
            if gateway is not None:
                yield _attachment(snapshot, route, parent, gateway)


def _attachment(snapshot: Snapshot, route: Manifest, parent: Manifest, gateway: Manifest) -> Attachment:
    resolved = resolution(snapshot, route)
    selected = [listener for listener in gateway["spec"]["listeners"] if _is_selected(listener, parent)]
    allowing = [listener for listener in selected if _allows(snapshot, gateway, listener, route)]
    hostnames = {listener["name"]: _hostnames(listener, route) for listener in allowing}
    hostnames = {name: served for name, served in hostnames.items() if served}
    accepted = _acceptance(route, gateway, selected, allowing, hostnames)
    return Attachment(route, parent, gateway, accepted, resolved, hostnames if accepted.is_true else {})


def _acceptance(
    route: Manifest,
    gateway: Manifest,
    selected: list[Manifest],
    allowing: list[Manifest],
    hostnames: dict[str, tuple[str, ...]],
) -> Condition:
    """The first reason against the route, in the order in which the Gateway API narrows the listeners down."""

    def refused(reason: RouteReason, message: str) -> Condition:
        return Condition(RouteCondition.ACCEPTED, False, reason, message)

    name = key_of(gateway)
    if not selected:
        return refused(RouteReason.NO_MATCHING_PARENT, f"Gateway {name} has no listener of this section and port")
    if not allowing:
        message = f"no listener of Gateway {name} allows HTTPRoutes of namespace {namespace_of(route)}"
        return refused(RouteReason.NOT_ALLOWED_BY_LISTENERS, message)
    if not hostnames:
        message = f"no listener of Gateway {name} has a hostname that matches {route['spec']['hostnames']}"
        return refused(RouteReason.NO_MATCHING_LISTENER_HOSTNAME, message)
    if unsupported := sorted(set(_filters(route)) - SUPPORTED_FILTERS):
        return refused(RouteReason.UNSUPPORTED_VALUE, f"filters are not supported: {', '.join(unsupported)}")
    return Condition(RouteCondition.ACCEPTED, True, RouteReason.ACCEPTED, "Route is accepted")


def _is_selected(listener: Manifest, parent: Manifest) -> bool:
    section, port = parent.get("sectionName", listener["name"]), parent.get("port", listener["port"])
    return bool((section, port) == (listener["name"], listener["port"]))


def _allows(snapshot: Snapshot, gateway: Manifest, listener: Manifest, route: Manifest) -> bool:
    if not supports_http_routes(listener):
        return False
    namespaces = listener.get("allowedRoutes", {}).get("namespaces", {})
    match namespaces.get("from", "Same"):
        case "All":
            return True
        case "Selector":
            labels = snapshot.namespaces[namespace_of(route)]["metadata"].get("labels", {})
            return _is_matched(labels, namespaces.get("selector", {}))
        case _:
            return namespace_of(route) == namespace_of(gateway)


def _is_matched(labels: dict[str, str], selector: Manifest) -> bool:
    """Whether labels match a LabelSelector of apimachinery; an empty one matches all."""
    if not selector.get("matchLabels", {}).items() <= labels.items():
        return False
    return all(_meets(labels, requirement) for requirement in selector.get("matchExpressions") or [])


def _meets(labels: dict[str, str], requirement: Manifest) -> bool:
    key, values = requirement["key"], requirement.get("values") or []
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[requirement["operator"]]


def _hostnames(listener: Manifest, route: Manifest) -> tuple[str, ...]:
    """The hostnames that the route serves on the listener; empty where none of the route's own matches."""
    of_listener = listener.get("hostname", ANY_HOSTNAME)
    of_route = route["spec"].get("hostnames") or [of_listener]
    common = (intersection(of_listener, hostname) for hostname in of_route)
    return tuple(dict.fromkeys(hostname for hostname in common if hostname is not None))


def _filters(route: Manifest) -> Iterator[str]:
    for rule in route["spec"].get("rules") or []:
        for holder in (rule, *(rule.get("backendRefs") or [])):
            yield from (entry["type"] for entry in holder.get("filters") or [])


def resolution(snapshot: Snapshot, route: Manifest) -> Condition:
    """The condition ResolvedRefs: the first backend that cannot be used, and why."""
    for rule in route["spec"].get("rules") or []:
        for reference in rule.get("backendRefs") or []:
            backend = resolve(snapshot, route, reference)
            if isinstance(backend, Condition):
                return backend
    return Condition(RouteCondition.RESOLVED_REFS, True, RouteReason.RESOLVED_REFS, "Resolved all references")


def resolve(snapshot: Snapshot, route: Manifest, reference: Manifest) -> Backend | Condition:
    """The backend of a reference, or the condition that says why there is none."""
    kind = (reference.get("group", ""), reference.get("kind", "Service"))
    namespace, name, port = reference.get("namespace", namespace_of(route)), reference["name"], reference.get("port", 0)

    def unresolved(reason: RouteReason, message: str) -> Condition:
        return Condition(RouteCondition.RESOLVED_REFS, False, reason, message)

    if kind != ("", "Service"):
        return unresolved(RouteReason.INVALID_KIND, f"{'/'.join(filter(None, kind))} {name} is not a Service")
    if not snapshot.permits(route, "Service", name, namespace):
        message = (
            f"Service {namespace}/{name} is in another namespace, and no ReferenceGrant there allows the reference"
        )
        return unresolved(RouteReason.REF_NOT_PERMITTED, message)
    service = snapshot.services.get(f"{namespace}/{name}")
    if service is None:
        return unresolved(RouteReason.BACKEND_NOT_FOUND, f"Service {namespace}/{name} not found")
    ports = {entry["port"]: entry.get("name", "") for entry in service["spec"].get("ports") or []}
    if port not in ports:
        return unresolved(RouteReason.BACKEND_NOT_FOUND, f"Service {namespace}/{name} has no port {port}")
    return Backend(f"{namespace}/{name}", port, ports[port])
