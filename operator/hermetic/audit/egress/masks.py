"""Masks: what stops packets today although a method would let them out. One change removes a mask, so it is no Pass."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.cluster.members import ScopedSubnet, subnets_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.rules.subnet_context import SubnetContext, surroundings
from hermetic.errors import FactDamaged


def masks_of(around: SubnetContext) -> tuple[str, ...]:
    """A phrase for each thing that by itself stops every method of the subnet. Raises FactDamaged."""
    return tuple(_masks(around))


def _masks(around: SubnetContext) -> Iterator[str]:
    if around.drops(4) and (around.drops(6) or not around.rule_context.has_v6):
        table = around.table
        yield f"the route 0.0.0.0/0 -> None in {name_of(table.target) if table else ''}"
    if around.is_sealed_by_rules():
        groups = sorted({name_of(group.target) for layers in around.combinations for group in layers.groups})
        yield f"the outbound rules of {', '.join(groups)}"


def masked(estate: Estate, scoped: ScopedSubnet, subnet: Subnet) -> str:
    """The end of a message: what masks a method of this subnet, or that nothing does."""
    return estate.once(("masked", scoped.id.lower()), lambda: _masked(estate, scoped, subnet))


def is_masked(estate: Estate, scoped: ScopedSubnet, subnet: Subnet) -> bool:
    """Whether a mask stops every method of this subnet today; False where that cannot be read."""
    return estate.once(("is masked", scoped.id.lower()), lambda: _is_masked(estate, scoped, subnet))


def _is_masked(estate: Estate, scoped: ScopedSubnet, subnet: Subnet) -> bool:
    try:
        return bool(masks_of(surroundings(estate, scoped, subnet)))
    except FactDamaged:
        return False


def _masked(estate: Estate, scoped: ScopedSubnet, subnet: Subnet) -> str:
    try:
        return describe(masks_of(surroundings(estate, scoped, subnet)))
    except FactDamaged:
        return "the audit could not read whether anything masks it"


@derived
def masks_of_nodes(estate: Estate) -> tuple[str, ...]:
    """The masks of all subnets of nodes and pods; empty where one of them has none.

    For methods that apply to nodes in any subnet: a public address, a rule of a load balancer. A subnet that was not
    read, or that may be missing from the list, counts as one without a mask.
    """
    subnets, observations = subnets_of(estate)
    subnet_masks: list[tuple[str, ...]] = []
    for scoped in (scoped for scoped in subnets if not scoped.is_for_the_api_server_only):
        if scoped.observation.value is None:
            return ()
        try:
            subnet_masks.append(masks_of(surroundings(estate, scoped, scoped.observation.value)))
        except FactDamaged:
            return ()
    if not all(subnet_masks) or any(observation.problem is not None for observation in observations):
        return ()
    return tuple(dict.fromkeys(mask for masks in subnet_masks for mask in masks))


def describe(masks: tuple[str, ...]) -> str:
    """Masks as the end of a message."""
    if not masks:
        return "nothing masks it"
    return f"masked today by {' and '.join(masks)}, so a single change opens it"
