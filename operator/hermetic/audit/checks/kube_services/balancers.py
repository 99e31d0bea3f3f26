"""Load balancers: their settings, and the addresses that they were given."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import annotation
from hermetic.api.public_services import (
    ALLOWED_RANGES,
    ASKS_FOR_PUBLIC,
    INTERNAL,
    PREFIX,
    PRIVATE_LINK,
    PUBLIC_SIDE,
    set_among,
    switched_on,
)
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.evaluation.each_object import each_object
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import is_public, network
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, path_of
from hermetic.audit.policy.declarations import Policy

OF_A_BALANCER = (annotation(INTERNAL), ("spec", "type"))
"""The fields that make a load balancer public or private."""
ADDRESSES = (f"{PREFIX}azure-load-balancer-ipv4", f"{PREFIX}azure-load-balancer-ipv6")


_WITHOUT_ANNOTATIONS = """
Make the Service internal: it gets another address, in the node subnet. Take off the annotations that ask for another.
Warning: clients that use the public address lose it.
kubectl --namespace NAMESPACE annotate service NAME --overwrite \\
service.beta.kubernetes.io/azure-load-balancer-internal=true
kubectl --namespace NAMESPACE annotate service NAME ANNOTATION_NAME-
Then delete the public address that was made, where one stays.
"""


_CLOSED_AGAIN = """Remove the annotation.
Warning: clients of other networks lose the Service.
kubectl --namespace NAMESPACE annotate service NAME ANNOTATION_NAME-
"""


@check_each("k8s-public-lb", each_object(Service, "AllInternal", "every load balancer among them is internal"))
def k8s_public_lb(_estate: Estate, policy: Policy, service: Service) -> Iterator[CheckResult]:
    """Only the annotation value "true" makes it private; every other value, and none, is public."""
    if not service.is_load_balancer:
        return
    why = tuple(_what_is_public(service, policy))
    asking = tuple(_asking(service, policy))
    if why:
        yield fails(
            service.id,
            "LoadBalancerNotInternal",
            "; ".join(why),
            service,
            paths=(path_of(INTERNET, hops.load_balancer("public load balancer"), hops.kubernetes(service.id)),),
            remedy=_WITHOUT_ANNOTATIONS if asking else "",
            fill={"ANNOTATION_NAME": asking},
            blames=(*map(annotation, set_among(ASKS_FOR_PUBLIC, service.annotations)), *OF_A_BALANCER),
        )
    else:
        yield from _opened_to_others(service)
    if not why and service.spec.load_balancer_class:
        yield unknown(
            service.id,
            "LoadBalancerClassUnknown",
            f"loadBalancerClass {service.spec.load_balancer_class}: Azure's controller leaves it to another one, "
            "which may give it a public side",
            service,
            remedy="Remove spec.loadBalancerClass, or accept the controller by an exception.",
        )


def _opened_to_others(service: Service) -> Iterator[CheckResult]:
    """Settings of an internal load balancer that let in more than its own network.

    Source: cloud-provider-azure, "Private Link Service Integration" (azure-pls-create, azure-pls-visibility,
    azure-pls-auto-approval) and "LoadBalancer annotations".
    """
    if any(switched_on((f"{PRIVATE_LINK}-create",), service.annotations)):
        names = (f"{PRIVATE_LINK}-visibility", f"{PRIVATE_LINK}-auto-approval")
        is_for_all = any("*" in service.annotations.get(name, "").split() for name in names)
        reach = "every subscription of Azure" if is_for_all else "every subscription that it is approved for"
        yield fails(
            service.id,
            "PrivateLinkService",
            f"{PRIVATE_LINK}-create makes a private link service, which lets in {reach}",
            service,
            paths=(path_of("another network", "private link service", hops.kubernetes(service.id)),),
            severity=Severity.HIGH if is_for_all else Severity.MEDIUM,
            remedy=f"Make a private link service for the subscriptions that may connect instead.\n{_CLOSED_AGAIN}",
            fill={"ANNOTATION_NAME": f"{PRIVATE_LINK}-create"},
            blames=(annotation(f"{PRIVATE_LINK}-create"), *map(annotation, names)),
        )
    other_annotations = (
        name for name in PUBLIC_SIDE if name not in ASKS_FOR_PUBLIC and not name.startswith(PRIVATE_LINK)
    )
    opened = tuple(
        name for name in switched_on(other_annotations, service.annotations) if not _is_private_range(name, service)
    )
    if opened:
        yield fails(
            service.id,
            "LoadBalancerOpened",
            f"{', '.join(opened)} opens the load balancer to more than its own network",
            service,
            severity=Severity.MEDIUM,
            remedy=_CLOSED_AGAIN,
            fill={"ANNOTATION_NAME": opened},
            blames=tuple(map(annotation, opened)),
        )


def _is_private_range(name: str, service: Service) -> bool:
    ranges = [network(text.strip()) for text in service.annotations.get(name, "").split(",") if text.strip()]
    return name == ALLOWED_RANGES and all(prefix is not None and not is_public(prefix) for prefix in ranges)


@check_each(
    "k8s-lb-status-ip", each_object(Service, "NoPublicAddress", "none was given a public address or a host name")
)
def k8s_lb_status_ip(_estate: Estate, policy: Policy, service: Service) -> Iterator[CheckResult]:
    """The address that was given decides: the annotation may have been set after it was given."""
    public = tuple(address for address in service.status.given if policy.leads_outside(address))
    if public:
        yield fails(
            service.id,
            "PublicAddressGiven",
            f"the load balancer gave it {', '.join(public)}",
            service,
            paths=(path_of(INTERNET, public[0], hops.kubernetes(service.id)),),
            blames=OF_A_BALANCER,
        )


def _asking(service: Service, policy: Policy) -> Iterator[str]:
    """The annotations that ask for a public address or name one."""
    yield from set_among(ASKS_FOR_PUBLIC, service.annotations)
    yield from (name for name in ADDRESSES if policy.leads_outside(service.annotations.get(name) or "10.0.0.1"))


def _what_is_public(service: Service, policy: Policy) -> Iterator[str]:
    internal = service.annotations.get(INTERNAL)
    if internal is None:
        yield f"a LoadBalancer without the annotation {INTERNAL}, and so public"
    elif not service.is_internal:
        yield f'{INTERNAL} is "{internal}", and only exactly "true" means private'
    for name in set_among(ASKS_FOR_PUBLIC, service.annotations):
        yield f"{name} asks for a public address"
    requested_addresses = {name: service.annotations.get(name, "") for name in ADDRESSES}
    requested_addresses["spec.loadBalancerIP"] = service.spec.load_balancer_ip or ""
    for name, address in requested_addresses.items():
        if address and policy.leads_outside(address):
            yield f"{name} asks for the address {address}, which is not private"
