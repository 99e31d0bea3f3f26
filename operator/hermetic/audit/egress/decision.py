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

from hermetic.audit import hops
from hermetic.audit.cluster_scope import subnets_by_id
from hermetic.audit.egress.balancers import public_frontends
from hermetic.audit.egress.masks import masks_of
from hermetic.audit.egress.methods import Methods, methods_of
from hermetic.audit.egress.subnet_context import SubnetContext, surroundings
from hermetic.audit.estate.arm_ids import parent_of
from hermetic.audit.estate.azure.balancing import LoadBalancer
from hermetic.audit.estate.azure.vnet import NicFields
from hermetic.audit.estate.estate import Estate
from hermetic.audit.hops import DEFAULT_OUTBOUND, INTERNET, Path, path_of
from hermetic.audit.policy import Policy
from hermetic.errors import FactDamaged


class Egress(StrEnum):
    """What becomes of a packet to the internet."""

    OPEN = "open"
    MASKED = "masked"
    CLOSED = "closed"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Decision:
    """`ways` are paths hop by hop, `masks` describes what stops all of them today."""

    egress: Egress
    ways: tuple[Path, ...] = ()
    masks: tuple[str, ...] = ()


def internet_egress(estate: Estate, policy: Policy, nic: NicFields, reported: bool | None) -> Decision:
    """The decision for one interface. `reported` is its reported default outbound state, None where it is not reported.

    Raises FactDamaged where a field that decides cannot be read.
    """
    methods = methods_of(estate, policy)
    found = [_in_subnet(estate, methods, nic, reported, around) for around in _around(estate, nic)]
    if not found:
        return Decision(Egress.UNSURE)
    ways = tuple(dict.fromkeys(way for one in found for way in one.ways))
    worst = min((one.egress for one in found), key=tuple(Egress).index)
    if worst is Egress.CLOSED and any(one.egress is Egress.UNSURE for one in found):
        worst = Egress.UNSURE
    masks = tuple(dict.fromkeys(mask for one in found for mask in one.masks)) if worst is Egress.MASKED else ()
    return Decision(worst, ways, masks)


def _around(estate: Estate, nic: NicFields) -> Iterator[SubnetContext]:
    ours = subnets_by_id(estate)
    for subnet_id in nic.subnet_ids:
        scoped = ours.get(subnet_id.lower())
        if scoped is not None and scoped.seen.value is not None:
            yield surroundings(estate, scoped, scoped.seen.value)


def _in_subnet(
    estate: Estate, methods: Methods, nic: NicFields, reported: bool | None, around: SubnetContext
) -> Decision:
    by_default = reported is True or not around.is_private
    explicit = (*_by_method(methods, around), *_by_route(around))
    ways = (*explicit, *((path_of(hops.subnet(around.subnet.name), DEFAULT_OUTBOUND, INTERNET),) if by_default else ()))
    if ways:
        masks = masks_of(around)
        if not explicit and is_behind_internal_balancers_only(estate, nic):
            masks = (*masks, "membership in the pool of an internal load balancer")
        return Decision(Egress.MASKED if masks else Egress.OPEN, ways, masks)
    is_sure = methods.are_all_seen and reported is False and around.are_routes_seen
    return Decision(Egress.CLOSED if is_sure else Egress.UNSURE)


def _by_method(methods: Methods, around: SubnetContext) -> Iterator[Path]:
    for method in methods.of(around.id):
        yield path_of(hops.subnet(around.subnet.name), method.hop, INTERNET)


def _by_route(around: SubnetContext) -> Iterator[Path]:
    for way in around.ways:
        if way.leads_on:
            yield path_of(hops.subnet(around.subnet.name), *way.path)


def is_behind_internal_balancers_only(estate: Estate, nic: NicFields) -> bool:
    """Whether only standard internal load balancers serve the interface, which turns off default outbound access.

    Deleting the last of them restores it, so this is reported as a mask and never as closed.
    """
    pools = {one.id for part in nic.ip_configurations for one in part.load_balancer_backend_address_pools}
    balancers = [estate.one(LoadBalancer, one).value for one in sorted({parent_of(pool) for pool in pools})]
    try:
        return bool(balancers) and all(one is not None and _is_internal_standard(one) for one in balancers)
    except FactDamaged:
        return False


def _is_internal_standard(balancer: LoadBalancer) -> bool:
    is_standard = balancer.sku is not None and (balancer.sku.name or "").lower() == "standard"
    return is_standard and not public_frontends(balancer)
