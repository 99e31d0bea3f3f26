"""Destinations of Gateway API routes and of Ingresses: a gateway inside can relay requests to the outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermetic.api.public_services import names_a_service
from hermetic.audit.checks.family import check
from hermetic.audit.checks.kube_services.targets import addresses_of, outside
from hermetic.audit.cluster.objects import everywhere, never_empty
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.kept_annotations import BACKEND, CALLED, REQUESTED, SNIPPETS
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.routes import ROUTES, GatewayApiRoute, ObjectReference
from hermetic.audit.estate.kubernetes.services import EndpointSlice, Ingress, Service
from hermetic.audit.estate.observation import merged
from hermetic.audit.evaluation.each_object import counted, not_known, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import GATEWAY, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

_Name = tuple[str, str]
_NOT_READ = "which the audit does not read"
# API groups whose kind InferencePool selects pods of the cluster.
_POOLS = frozenset({"inference.networking.k8s.io", "inference.networking.x-k8s.io"})
# k8s-other-ways evaluates where it leads.
_READ_BY_ITSELF = ("gateway.envoyproxy.io", "Backend")


@check("k8s-gateway-routes")
def k8s_gateway_routes(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every backend, mirror and filter of every route leads to a Service whose endpoints are in the cluster."""
    listings, ingresses = tuple(everywhere(estate, kind) for kind in ROUTES), everywhere(estate, Ingress)
    services = never_empty(everywhere(estate, Service), Service)
    slices = never_empty(everywhere(estate, EndpointSlice), EndpointSlice)
    targets = {**_by_address(estate, policy), **_by_name(estate)}

    def evaluate(route: GatewayApiRoute) -> Iterator[CheckResult]:
        yield from not_known(route)
        for reference in route.leads_to:
            yield from _evaluate(route, reference, targets)
        for reference in route.extensions:
            message = f"applies {reference.kind} {reference.name} of {reference.group}, which the audit does not read"
            yield unknown(route.id, "FilterNotRead", message, route, severity=Severity.MEDIUM)

    every = merged("", *listings)
    results = (
        *objections(every, evaluate),
        *objections(ingresses, lambda ingress: _evaluate_ingress(ingress, targets)),
    )
    routes, ingress_count = counted(len(every), "route"), counted(len(ingresses), "Ingress", "Ingresses")
    fine = f"{routes} of the Gateway API and {ingress_count}: none leads outside"
    yield from settled(estate, results, "RoutesInside", fine, *listings, ingresses, services, slices)


def _evaluate_ingress(ingress: Ingress, targets: Mapping[_Name, str]) -> Iterator[CheckResult]:
    services = [backend.service.name for backend in ingress.backends if backend.service is not None]
    services += [value for key, value in ingress.annotations.items() if key.endswith(BACKEND)]
    for name in dict.fromkeys(services):
        if target := targets.get((ingress.namespace, name)):
            yield _leads_out(ingress, f"v1/Service {ingress.namespace}/{name}", target)
    for backend in ingress.backends:
        if (resource := backend.resource) is not None:
            message = f"leads to {resource.kind} {resource.name} of {resource.api_group or 'v1'}, {_NOT_READ}"
            yield unknown(ingress.id, "BackendNotRead", message, ingress)
    for key, value in ingress.annotations.items():
        if key.endswith(CALLED):
            yield from _called(ingress, key, value)
        elif key.endswith(SNIPPETS) and value:
            message = f"its annotation {key} has directives of the proxy that may lead elsewhere, {_NOT_READ}"
            yield unknown(ingress.id, "FilterNotRead", message, ingress)


def _called(ingress: Ingress, key: str, host: str) -> Iterator[CheckResult]:
    """A URL that the controller calls with each request. A host that the request names is one of the Ingress's own."""
    if "$" in host:
        is_own = host == REQUESTED and ingress.names_its_hosts
        message = f"its annotation {key} calls a host that the request names"
        yield unknown(ingress.id, "FilterNotRead", message, ingress, severity=Severity.MEDIUM if is_own else None)
    elif host and not is_inside(host):
        yield _leads_out(ingress, f"annotation {key}", host)


def _evaluate(
    route: GatewayApiRoute, reference: ObjectReference, targets: Mapping[_Name, str]
) -> Iterator[CheckResult]:
    group, kind = reference.group or "", reference.kind or "Service"
    if names_a_service(group, kind):
        namespace = reference.namespace or route.namespace
        if target := targets.get((namespace, reference.name)):
            yield _leads_out(route, f"v1/Service {namespace}/{reference.name}", target)
    elif (group, kind) == ("networking.istio.io", "Hostname"):
        if not is_inside(reference.name):
            yield _leads_out(route, "Hostname", reference.name)
    elif not (group in _POOLS and kind == "InferencePool") and (group, kind) != _READ_BY_ITSELF:
        message = f"leads to {kind} {reference.name} of {group or 'v1'}, {_NOT_READ}"
        yield unknown(route.id, "BackendNotRead", message, route)


def _leads_out(route: GatewayApiRoute | Ingress, by: str, target: str) -> CheckResult:
    path = path_of(POD, GATEWAY, hops.kubernetes(route.id), by, target)
    return fails(
        route.id,
        "RouteLeadsOut",
        f"sends requests to {target} by {by}",
        route,
        paths=(path,),
        blames=(("spec", "rules"), ("spec", "defaultBackend")),
    )


def _by_name(estate: Estate) -> dict[_Name, str]:
    """ExternalName Services with a name outside."""
    targets_by_name = {}
    for service in everywhere(estate, Service):
        try:
            target = service.spec.external_name or "no name"
            if service.spec.type == "ExternalName" and not is_inside(target):
                targets_by_name[(service.namespace, service.metadata.name)] = target
        except FactDamaged:  # reported by k8s-externalname
            continue
    return targets_by_name


def _by_address(estate: Estate, policy: Policy) -> dict[_Name, str]:
    """Services with an address outside in their EndpointSlices that belongs to no pod and no node."""
    cluster_addresses = addresses_of(everywhere(estate, Pod), everywhere(estate, Node))
    targets_by_name = {}
    for endpoint_slice in everywhere(estate, EndpointSlice):
        try:
            if targets := outside(endpoint_slice, policy, cluster_addresses):
                targets_by_name[(endpoint_slice.namespace, endpoint_slice.service)] = targets[-1]
        except FactDamaged:  # reported by k8s-endpoints-external
            continue
    return targets_by_name
