"""Names and addresses inside the cluster that lead out of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hermetic.api.field_managers import annotation
from hermetic.api.ip_ranges import is_azure_resolver, is_host_address
from hermetic.api.public_services import SHARED_BY_MESH, switched_on
from hermetic.api.text import first_of
from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.objects import everywhere, never_empty
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.services import EndpointSlice, Service
from hermetic.audit.evaluation.each_object import counted, each_object, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged


def addresses_of(*some: Iterable[Pod] | Iterable[Node]) -> frozenset[str]:
    """Addresses of these pods or nodes; objects that cannot be read are skipped."""
    return frozenset(address for objects in some for address in _addresses(objects))


def outside(endpoint_slice: EndpointSlice, policy: Policy, cluster_addresses: Collection[str]) -> tuple[str, ...]:
    """The names or addresses of a slice that are outside and not in `cluster_addresses`. Raises FactDamaged.

    The addresses that the host of a machine answers count, except port 53 of Azure's resolver.
    """
    by_name, dns_only = endpoint_slice.address_type == "FQDN", endpoint_slice.is_dns_only

    def is_outside(address: str) -> bool:
        if is_host_address(address):  # whatever a pod or a node says of itself
            return not (dns_only and is_azure_resolver(address))
        leads_outside = not is_inside(address) if by_name else policy.leads_outside(address)
        return leads_outside and address not in cluster_addresses

    return tuple(filter(is_outside, endpoint_slice.addresses))


def _addresses(some: Iterable[Pod] | Iterable[Node]) -> Iterator[str]:
    for kubernetes_object in some:
        try:
            yield from kubernetes_object.addresses
        except FactDamaged:
            continue


# The API server writes this one, with its own address: `aks-private-api` evaluates whether that is public.
# Other slices of the same Service are evaluated like any other.
API_SERVER = ("default", "kubernetes", "kubernetes")
SHOWN = 5


@check_each("k8s-externalips", each_object(Service, "NoExternalIPs", "none has external IPs"))
def k8s_externalips(_estate: Estate, _policy: Policy, service: Service) -> Iterator[CheckResult]:
    """An external IP redirects traffic for any address, inside or outside, to the Service; AKS does not forbid it."""
    if addresses := service.spec.external_ips:
        yield fails(
            service.id,
            "ExternalIPs",
            f"spec.externalIPs: {first_of(addresses, SHOWN)}",
            service,
            blames=(("spec", "externalIPs"),),
        )


@check_each("k8s-externalname", each_object(Service, "NamesInside", "none is a name for a host outside"))
def k8s_externalname(_estate: Estate, _policy: Policy, service: Service) -> Iterator[CheckResult]:
    """An ExternalName Service with a name outside, or a Service shared with other clusters of a mesh."""
    shared = list(switched_on(SHARED_BY_MESH, service.annotations))
    if shared:
        message = f"{shared[0]} is true: pods of other clusters of the mesh answer for it"
        path = path_of(POD, hops.kubernetes(service.id), "another cluster")
        yield fails(
            service.id,
            "GlobalService",
            message,
            service,
            paths=(path,),
            severity=Severity.HIGH,
            blames=(annotation(shared[0]),),
        )
    if service.spec.type != "ExternalName":
        return
    target = service.spec.external_name or ""
    if not is_inside(target):
        yield fails(
            service.id,
            "ExternalNameOutside",
            f"is a name for {target or 'no name'}, which is not of the cluster or of a private zone",
            service,
            paths=(path_of(hops.kubernetes(service.id), target),),
            blames=(("spec", "externalName"), ("spec", "type")),
        )


@check("k8s-endpoints-external")
def k8s_endpoints_external(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """EndpointSlices decide where a Service leads, independently of its selector."""
    slices = never_empty(everywhere(estate, EndpointSlice), EndpointSlice)
    pods, nodes = everywhere(estate, Pod), everywhere(estate, Node)
    cluster_addresses = addresses_of(pods, nodes)

    def evaluate(endpoint_slice: EndpointSlice) -> Iterator[CheckResult]:
        if (endpoint_slice.namespace, endpoint_slice.metadata.name, endpoint_slice.service) == API_SERVER:
            return
        destinations = outside(endpoint_slice, policy, cluster_addresses)
        unread = next((listing for listing in (pods, nodes) if listing.problem is not None), None)
        if destinations and unread is not None:  # a network may use public addresses for its own pods
            yield unknown(
                endpoint_slice.id,
                "PodsNotSeen",
                f"the audit could not see whose {first_of(destinations, SHOWN)} is",
                unread,
            )
        elif destinations:
            yield fails(
                endpoint_slice.id,
                "EndpointOutside",
                f"leads Service {endpoint_slice.service or '(none)'} to {first_of(destinations, SHOWN)}",
                endpoint_slice,
                paths=(
                    path_of(
                        POD,
                        hops.kubernetes(f"v1/Service {endpoint_slice.namespace}/{endpoint_slice.service}"),
                        destinations[0],
                    ),
                ),
                blames=(("endpoints",),),
            )

    fine = f"{counted(len(slices), 'EndpointSlice')}: none leads to a public address or to the host of a machine"
    yield from settled(estate, objections(slices, evaluate), "EndpointsInside", fine, slices)
