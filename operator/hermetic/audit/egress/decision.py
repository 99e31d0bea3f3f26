"""The decision for one interface: whether a packet to the internet leaves, by which ways, and what masks them.

    internet egress = (a method, or a user-defined default route that leads on, or default outbound access)
                      and none of: a route to `None`, rules that deny, a standard internal load balancer
                          (that one stops default outbound access only)

A mask is reported and never makes the answer CLOSED.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from hermetic.audit.cluster.members import subnets_by_id
from hermetic.audit.egress.masks import masks_of
from hermetic.audit.egress.methods import Methods, methods_of
from hermetic.audit.estate.arm_ids import parent_of
from hermetic.audit.estate.azure.balancing import LoadBalancer
from hermetic.audit.estate.azure.vnet import NicFields
from hermetic.audit.estate.estate import Estate
from hermetic.audit.model import hops
from hermetic.audit.model.hops import DEFAULT_OUTBOUND, INTERNET, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.subnet_context import SubnetContext, surroundings
from hermetic.audit.scope.balancers import public_frontends
from hermetic.errors import FactDamaged


class Egress(StrEnum):
    """What becomes of a packet to the internet."""

    OPEN = "open"
    MASKED = "masked"
    CLOSED = "closed"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Decision:
    """`paths` go hop by hop, `masks` describes what stops all of them today."""

    egress: Egress
    paths: tuple[Path, ...] = ()
    masks: tuple[str, ...] = ()


def internet_egress(estate: Estate, policy: Policy, nic: NicFields, reported: bool | None) -> Decision:
    """The decision for one interface. `reported` is its reported default outbound state, None where it is not reported.

    Raises FactDamaged where a field that decides cannot be read.
    """
    methods = methods_of(estate, policy)
    decisions = [_in_subnet(estate, methods, nic, reported, around) for around in _around(estate, nic)]
    if not decisions:
        return Decision(Egress.UNSURE)
    paths = tuple(dict.fromkeys(path for decision in decisions for path in decision.paths))
    worst = min((decision.egress for decision in decisions), key=tuple(Egress).index)
    if worst is Egress.CLOSED and any(decision.egress is Egress.UNSURE for decision in decisions):
        worst = Egress.UNSURE
    masks = (
        tuple(dict.fromkeys(mask for decision in decisions for mask in decision.masks))
        if worst is Egress.MASKED
        else ()
    )
    return Decision(worst, paths, masks)


def _around(estate: Estate, nic: NicFields) -> Iterator[SubnetContext]:
    ours = subnets_by_id(estate)
    for subnet_id in nic.subnet_ids:
        scoped = ours.get(subnet_id.lower())
        if scoped is not None and scoped.observation.value is not None:
            yield surroundings(estate, scoped, scoped.observation.value)


def _in_subnet(
    estate: Estate, methods: Methods, nic: NicFields, reported: bool | None, around: SubnetContext
) -> Decision:
    by_default = reported is True or not around.is_private
    explicit = (*_by_method(methods, around), *_by_route(around))
    paths = (
        *explicit,
        *((path_of(hops.subnet(around.subnet.name), DEFAULT_OUTBOUND, INTERNET),) if by_default else ()),
    )
    if paths:
        masks = masks_of(around)
        if not explicit and is_behind_internal_balancers_only(estate, nic):
            masks = (*masks, "membership in the pool of an internal load balancer")
        return Decision(Egress.MASKED if masks else Egress.OPEN, paths, masks)
    is_sure = methods.are_all_seen and reported is False and around.are_routes_seen
    return Decision(Egress.CLOSED if is_sure else Egress.UNSURE)


def _by_method(methods: Methods, around: SubnetContext) -> Iterator[Path]:
    for method in methods.of(around.id):
        yield path_of(hops.subnet(around.subnet.name), method.hop, INTERNET)


def _by_route(around: SubnetContext) -> Iterator[Path]:
    for outbound_route in around.outbound_routes:
        if outbound_route.leads_on:
            yield path_of(hops.subnet(around.subnet.name), *outbound_route.path)


def is_behind_internal_balancers_only(estate: Estate, nic: NicFields) -> bool:
    """Whether only standard internal load balancers serve the interface, which turns off default outbound access.

    Deleting the last of them restores it, so this is reported as a mask and never as closed.
    """
    pools = {pool.id for part in nic.ip_configurations for pool in part.load_balancer_backend_address_pools}
    balancers = [
        estate.one(LoadBalancer, balancer_id).value for balancer_id in sorted({parent_of(pool) for pool in pools})
    ]
    try:
        return bool(balancers) and all(
            balancer is not None and _is_internal_standard(balancer) for balancer in balancers
        )
    except FactDamaged:
        return False


def _is_internal_standard(balancer: LoadBalancer) -> bool:
    is_standard = balancer.sku is not None and (balancer.sku.name or "").lower() == "standard"
    return is_standard and not public_frontends(balancer)
