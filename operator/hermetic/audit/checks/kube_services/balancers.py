"""Load balancers: their settings, and the addresses that they were given."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import annotation
from hermetic.api.public_services import ASKS_FOR_PUBLIC, INTERNAL, PREFIX, set_among
from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.evaluation import CheckResult, fails, unknown
from hermetic.audit.hops import INTERNET, path_of
from hermetic.audit.kube_findings import each_object
from hermetic.audit.policy import Policy

OF_A_BALANCER = (annotation(INTERNAL), ("spec", "type"))
"""The fields that make a load balancer public or private."""
ADDRESSES = (f"{PREFIX}azure-load-balancer-ipv4", f"{PREFIX}azure-load-balancer-ipv6")


@check_each("k8s-public-lb", each_object(Service, "AllInternal", "every load balancer among them is internal"))
def k8s_public_lb(_estate: Estate, policy: Policy, service: Service) -> Iterator[CheckResult]:
    """Only the annotation value "true" makes it private; every other value, and none, is public."""
    if not service.is_load_balancer:
        return
    why = tuple(_what_is_public(service, policy))
    if why:
        yield fails(
            service.id,
            "LoadBalancerNotInternal",
            "; ".join(why),
            service,
            paths=(path_of(INTERNET, hops.load_balancer("public load balancer"), hops.kubernetes(service.id)),),
            blames=(*map(annotation, set_among(ASKS_FOR_PUBLIC, service.annotations)), *OF_A_BALANCER),
        )
    elif service.spec.load_balancer_class:
        yield unknown(
            service.id,
            "LoadBalancerClassUnknown",
            f"loadBalancerClass {service.spec.load_balancer_class}: Azure's controller leaves it to another one, "
            "which may give it a public side",
            service,
            remedy="Remove spec.loadBalancerClass, or accept the controller by an exception.",
        )


@check_each(
    "k8s-lb-status-ip", each_object(Service, "NoPublicAddress", "none was given a public address or a host name")
)
def k8s_lb_status_ip(_estate: Estate, policy: Policy, service: Service) -> Iterator[CheckResult]:
    """The address that was given decides: the annotation may have been set after it was given."""
    public = tuple(one for one in service.status.given if policy.is_public(one))
    if public:
        yield fails(
            service.id,
            "PublicAddressGiven",
            f"the load balancer gave it {', '.join(public)}",
            service,
            paths=(path_of(INTERNET, public[0], hops.kubernetes(service.id)),),
            blames=OF_A_BALANCER,
        )


def _what_is_public(service: Service, policy: Policy) -> Iterator[str]:
    internal = service.annotations.get(INTERNAL)
    if internal is None:
        yield f"a LoadBalancer without the annotation {INTERNAL}, and so public"
    elif not service.is_internal:
        yield f'{INTERNAL} is "{internal}", and only exactly "true" means private'
    for name in set_among(ASKS_FOR_PUBLIC, service.annotations):
        yield f"{name} asks for a public address"
    asked = {name: service.annotations.get(name, "") for name in ADDRESSES}
    asked["spec.loadBalancerIP"] = service.spec.load_balancer_ip or ""
    for name, address in asked.items():
        if address and policy.is_public(address):
            yield f"{name} asks for the public address {address}"
