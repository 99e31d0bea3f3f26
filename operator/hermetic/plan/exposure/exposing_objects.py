"""Objects of any writer that lead to pods (Services, EndpointSlices, Ingresses, routes, gateways), in few fields.

Each object is evaluated once, when it arrives: where it leads, and why that is not known to be private.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.api.field_managers import Place, annotation, last_writer, written_by
from hermetic.api.ip_ranges import is_private
from hermetic.api.public_services import (
    INTERNAL,
    PUBLIC_SIDE,
    PUBLISHES,
    SENDING_FILTERS,
    class_is_public,
    ingress_classes,
    is_internal,
    names_a_service,
    set_among,
    switched_on,
)
from hermetic.api.text import first_of, one_line
from hermetic.kinds import ENDPOINT_SLICE, GATEWAY, INGRESS, SERVICE
from hermetic.objects.http_route import MOST_MEMBERS, members_of
from hermetic.plan.exposure.addresses import load_balancer_addresses, public_addresses
from hermetic.plan.snapshot import ClusterSnapshot, Exposure

Name = tuple[str, str]  # (namespace, name)
SERVICE_NAME = "kubernetes.io/service-name"
SLICE_MANAGER = ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io")
LONGEST_SHOWN = 80
SHOWN = 3
LARGEST_SELECTOR = 64
MOST_ADDRESSES = 2_000
"""Controllers write an address for each of at most 1,000 endpoints; the API server lets a slice name 100,000."""


@dataclass(frozen=True, slots=True)
class ExposingObject:
    """One object and where it leads.

    `selector` None selects nothing. `everything`: which pods of its namespace it leads to is not known (of the cluster,
    for an EndpointSlice). `opens`: why it is not private, "" if it is. `addresses`: those of a slice that no controller
    manages, as ",10.0.0.1,10.0.0.2,". `gateways` None: the object needs none.
    """

    kind: str
    namespace: str
    name: str
    opens: str = ""
    writer: str = ""
    owner: str = ""
    selector: tuple[tuple[str, str], ...] | None = None
    everything: bool = False
    services: frozenset[Name] = frozenset()
    addresses: str = ""
    kept: bool = False
    gateways: frozenset[Name] | None = None

    @property
    def size(self) -> int:
        """Approximate bytes that a writer can make this hold."""
        pairs = (*(self.selector or ()), *self.services, *(self.gateways or ()))
        return len(self.addresses) + sum(len(name) + len(other) for name, other in pairs)

    def without_details(self) -> ExposingObject:
        """The same object without its selector and addresses, to save memory: `everything` is set instead."""
        foreign_services = frozenset(name for name in self.services if name[0] != self.namespace)
        services = self.services if self.kind == ENDPOINT_SLICE.kind else foreign_services
        return replace(self, selector=None, addresses="", services=services, everything=True)


def exposing_object(manifest: Mapping[str, Any], policy: Configuration) -> ExposingObject:
    """The object reduced to a few fields."""
    read = {
        SERVICE.kind: _service,
        ENDPOINT_SLICE.kind: _slice,
        INGRESS.kind: _ingress,
        GATEWAY.kind: _gateway,
    }.get(manifest["kind"], _route)
    metadata = manifest["metadata"]
    return ExposingObject(
        kind=manifest["kind"],
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        writer=last_writer(metadata.get("managedFields"), *_blamed(manifest)),
        **read(manifest, policy),
    )


def _blamed(manifest: Mapping[str, Any]) -> Iterator[Place]:
    """The fields that lead to pods or to the outside, first the one that is named as the cause."""
    spec, annotations = manifest.get("spec") or {}, manifest["metadata"].get("annotations") or {}
    if manifest["kind"] == SERVICE.kind:
        if spec.get("externalIPs"):
            yield ("spec", "externalIPs")
        yield from map(annotation, switched_on(PUBLISHES, annotations))
        if spec.get("type") == "LoadBalancer":
            yield from map(annotation, (INTERNAL, *set_among(PUBLIC_SIDE, annotations)))
            if is_internal(annotations) and spec.get("loadBalancerClass"):
                yield ("spec", "loadBalancerClass")
        yield ("spec", "type")
    else:
        yield from (("endpoints",), ("spec", "rules"), ("spec", "defaultBackend"), ("spec", "addresses"))


def opens(service: Mapping[str, Any], policy: Configuration, *, given: bool = True) -> str:
    """Why a Service is not private; "" if it is. With `given`, addresses that a load balancer assigned count too."""
    return next(_opens(service, policy, given=given), "")


def address_of(text: object) -> str:
    """An address in canonical spelling; other texts unchanged."""
    try:
        address = ip_address(str(text))
    except ValueError:
        parts = str(text).split(".")
        digits = len(parts) == 4 and all(part.isdecimal() and len(part) < 16 for part in parts)
        return ".".join(str(int(part)) for part in parts) if digits else str(text).replace(",", "")
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _service(service: Mapping[str, Any], policy: Configuration) -> dict[str, Any]:
    spec, namespace = service.get("spec") or {}, service["metadata"].get("namespace") or ""
    target = spec.get("externalName") if spec.get("type") == "ExternalName" else None
    selector = (spec.get("selector") or {}) if target is None else {}
    large = len(selector) > LARGEST_SELECTOR
    return {
        "opens": opens(service, policy),
        "owner": _controller(service),
        "selector": tuple(sorted(selector.items())) if selector and not large else None,
        "everything": large,
        "services": _named(target, namespace),
    }


def _opens(service: Mapping[str, Any], policy: Configuration, *, given: bool) -> Iterator[str]:
    spec, annotations = service.get("spec") or {}, service["metadata"].get("annotations") or {}
    if addresses := spec.get("externalIPs"):
        yield f"has external IPs: {_shown(addresses)}"
    public = public_addresses(service, policy) if given else ()
    if public:
        yield f"was given the address {_shown(public)}, which is not private"
    for name in switched_on(PUBLISHES, annotations):
        yield f"carries the annotation {name}"
    if spec.get("type") == "NodePort":
        ports = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
        yield f"opens port {_shown(ports)} on every node"
    if spec.get("type") == "LoadBalancer":
        yield from _opens_balancer(spec, annotations)


def _opens_balancer(spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> Iterator[str]:
    if not is_internal(annotations):
        yield f'is a load balancer whose annotation {INTERNAL} is not "true"'
    if spec.get("loadBalancerClass"):
        yield f"is a load balancer of class {_shown([spec['loadBalancerClass']])}, which no annotation makes private"
    for name in set_among(PUBLIC_SIDE, annotations):
        yield f"is a load balancer with the annotation {name}"


def _named(target: object, namespace: str) -> frozenset[Name]:
    """The Service of the cluster that an external name refers to."""
    labels = str(target or "").rstrip(".").lower().split(".")
    if len(labels) >= 3 and labels[2] == "svc":
        return frozenset({(labels[1], labels[0])})
    # Resolvers complete short names by the search list of the client.
    return (
        frozenset({(labels[1] if len(labels) > 1 else namespace, labels[0])})
        if target and len(labels) <= 2
        else frozenset()
    )


def _slice(endpoint_slice: Mapping[str, Any], _policy: Configuration) -> dict[str, Any]:
    labels, namespace = (
        endpoint_slice["metadata"].get("labels") or {},
        endpoint_slice["metadata"].get("namespace") or "",
    )
    service = labels.get(SERVICE_NAME)
    endpoint_addresses = [
        address for endpoint in endpoint_slice.get("endpoints") or () for address in endpoint.get("addresses") or ()
    ]
    over_limit = len(endpoint_addresses) > MOST_ADDRESSES
    addresses = "" if over_limit else ",".join(address_of(address) for address in endpoint_addresses)
    by_name = endpoint_slice.get("addressType") == "FQDN"
    return {
        "services": frozenset({(namespace, service)} if service else ()),
        "addresses": f",{addresses}," if addresses and not by_name else "",
        "kept": labels.get(SLICE_MANAGER[0]) == SLICE_MANAGER[1],
        "everything": over_limit and not by_name,
        "opens": "" if service else "belongs to no Service",
    }


def _ingress(ingress: Mapping[str, Any], policy: Configuration) -> dict[str, Any]:
    spec, namespace = ingress.get("spec") or {}, ingress["metadata"].get("namespace") or ""
    paths = (path for rule in spec.get("rules") or () for path in (rule.get("http") or {}).get("paths") or ())
    backends = [spec.get("defaultBackend"), *(path.get("backend") for path in paths)]
    services = [backend["service"]["name"] for backend in backends if backend and backend.get("service")]
    annotations = ingress["metadata"].get("annotations") or {}
    classes = ingress_classes(spec.get("ingressClassName"), annotations)
    public = [ingress_class for ingress_class in classes if class_is_public(ingress_class, annotations)]
    by_class = f"is of class {_shown(public)}, whose controller makes public addresses" if public else ""
    return {
        "services": frozenset((namespace, name) for name in services),
        "opens": _unproven(load_balancer_addresses(ingress), policy) or by_class,
    }


def _gateway(gateway: Mapping[str, Any], policy: Configuration) -> dict[str, Any]:
    parts = ((gateway.get("status") or {}).get("addresses"), (gateway.get("spec") or {}).get("addresses"))
    return {"opens": _unproven([str(a.get("value") or "") for part in parts for a in part or ()], policy)}


def _route(route: Mapping[str, Any], _policy: Configuration) -> dict[str, Any]:
    namespace, spec = route["metadata"].get("namespace") or "", route.get("spec") or {}
    backends = list(_backends(spec))
    services = {(str(b.get("namespace") or namespace), str(b.get("name"))) for b in backends if _is_service(b)}
    accepted = _is_accepted(route)
    parents = [p for p in spec.get("parentRefs") or () if not _is_service(p, default=GATEWAY.kind)]
    return {
        # A reference into another namespace needs permission there, which the gateway checks.
        "services": frozenset(name for name in services if name[0] == namespace or accepted),
        "everything": any(not _is_service(b) and (b.get("namespace") or namespace) == namespace for b in backends),
        "gateways": frozenset((str(p.get("namespace") or namespace), str(p.get("name"))) for p in parents),
        "opens": _unread(parents, spec.get("useDefaultGateways")),
        # The route of a group has several owners, and no controller.
        "owner": " ".join(uid for _, uid in members_of(route)[:MOST_MEMBERS])[: MOST_MEMBERS * LONGEST_SHOWN],
    }


def _unread(parents: Iterable[Mapping[str, Any]], by_default: object) -> str:
    """What serves a route beside Gateways that it names; "" for nothing.

    `by_default`: the field `useDefaultGateways`, with which Gateways serve routes that do not name them (experimental
    channel from 1.4 on: kubernetes-sigs/gateway-api, apis/v1/shared_types.go, CommonRouteSpec).
    """
    if by_default not in (None, "None"):
        return "is served by every default Gateway, and those are not read here"
    gateway = (GATEWAY.group, GATEWAY.kind)
    known = all((p.get("group") or GATEWAY.group, p.get("kind") or GATEWAY.kind) == gateway for p in parents)
    return "" if known else "is served by something that is not read here"


def _controller(manifest: Mapping[str, Any]) -> str:
    """The uid of the object that controls it; "" without one."""
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((str(reference.get("uid"))[:LONGEST_SHOWN] for reference in owners if reference.get("controller")), "")


def _backends(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for rule in spec.get("rules") or ():
        filters = list(rule.get("filters") or ())
        for backend in rule.get("backendRefs") or ():
            yield backend
            filters += backend.get("filters") or ()
        for route_filter in filters:
            targets = ((route_filter.get(name) or {}).get("backendRef") for name in SENDING_FILTERS)
            yield from (target for target in targets if target)


def _is_service(reference: Mapping[str, Any], *, default: str = SERVICE.kind) -> bool:
    return names_a_service(reference.get("group"), reference.get("kind"), default)


def _is_accepted(route: Mapping[str, Any]) -> bool:
    """Whether a gateway reports that it serves the route, with its backends."""
    for parent in (route.get("status") or {}).get("parents") or ():
        conditions = {c.get("type"): (c.get("status"), c.get("reason")) for c in parent.get("conditions") or ()}
        refused = conditions.get("ResolvedRefs", ("", ""))
        if conditions.get("Accepted", ("",))[0] == "True" and refused != ("False", "RefNotPermitted"):
            return True
    return False


def _unproven(given: Iterable[str], policy: Configuration) -> str:
    addresses = tuple(given)
    if not addresses:
        return "has no address yet that would show it to be private"
    public = [address for address in addresses if not is_private(address, policy.additional_private_ranges)]
    return f"has the address {_shown(public)}, which is not known to be private" if public else ""


def _shown(values: Iterable[object]) -> str:
    return first_of([one_line(str(value)[:LONGEST_SHOWN]) for value in values], 1) or "-"


def exposure(service: Mapping[str, Any] | None, snapshot: ClusterSnapshot) -> str | None:
    """What leads to a model's pods from outside; None where every way is private. `service`: its own, live one."""
    clauses = [_clause(path) for path in snapshot.exposures]
    if service is not None and (why := opens(service, snapshot.policy, given=False)):
        clauses.insert(0, f"the model's own Service {why}")
    return first_of(clauses, SHOWN, "; ") or None


def _clause(path: Exposure) -> str:
    where = one_line(f"{path.kind} '{path.namespace}/{path.name}'")
    return f"{where} leads to pods of this model and {path.why}{written_by(path.writer)}"
