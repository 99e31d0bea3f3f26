"""Whether as many instances are listed as Azure counts: one that no list shows may differ from what is evaluated.

An instance keeps the model that it was made of until it is upgraded (VirtualMachineScaleSetVM.latestModelApplied).
Azure counts twice: the pool (AgentPool.count) and its scale set (sku.capacity). Where these or the lists differ, the
answers describe different moments or leave something out, and the two cannot be distinguished. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from hermetic.audit.estate.azure.aks import AgentPool
from hermetic.audit.estate.azure.vnet import ScaleSet
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.errors import FactDamaged

AGAIN = "; where it is scaling, audit again when that is done"


def is_made_of_a_scale_set(pool: AgentPool) -> bool:
    """Whether a pool has a scale set of its own; one without machines may have lost it."""
    return (pool.type or "").lower() not in {"virtualmachines", "availabilityset"} and pool.count != 0


def of_instances(scale_set: ScaleSet, instance_count: int, entry: str) -> Problem | None:
    """Why the instances of a scale set may not all have been seen: `instance_count` of them have `entry` in a list."""
    capacity = _capacity(scale_set)
    if capacity is None:
        return _problem(f"{scale_set.id}: the answer has no sku.capacity, so how many instances it has is not known")
    if instance_count == capacity:
        return None
    detail = f"{scale_set.id}: capacity {capacity}, and {instance_count} instances have {entry} in the list{AGAIN}"
    return _problem(detail, f"the scale set {scale_set.name}")


def of_pools(pools: Iterable[AgentPool], sets: Iterable[ScaleSet]) -> Problem | None:
    """Why scale sets may not hold every node that pools count; None where their capacity suffices.

    A pool is compared with the scale sets that AKS tagged with its name, and all pools without one together with all
    scale sets without one. A stopped pool keeps its count and has no running machine.
    """
    counted: dict[str, int] = {}
    for pool in pools:
        if is_made_of_a_scale_set(pool) and not pool.is_stopped:
            counted[pool.name.lower()] = pool.count or 0
    capacities = dict.fromkeys((*counted, ""), 0)
    tagged = set()
    for scale_set in sets:
        name = scale_set.pool.lower() if scale_set.pool.lower() in counted else ""
        tagged.add(name)
        capacities[name] += _capacity(scale_set) or 0
    short = {name: count for name, count in counted.items() if name in tagged and count > capacities[name]}
    untagged_count = sum(count for name, count in counted.items() if name not in tagged)
    if not short and untagged_count <= capacities[""]:
        return None
    name, count, capacity = next(
        ((pool_name, count, capacities[pool_name]) for pool_name, count in sorted(short.items())),
        ("", untagged_count, capacities[""]),
    )
    demand = f"pool {name} counts {count} nodes" if name else f"pools count {untagged_count} nodes"
    detail = f"{demand}, and the capacity of their scale sets is {capacity}{AGAIN}"
    return _problem(detail, f"the pool {name}" if name else "the pools")


def of_machines(group: str, pools: Iterable[AgentPool], sets: Iterable[ScaleSet], machine_count: int) -> Problem | None:
    """Why machines of their own may be missing: `machine_count` of them have an interface that is listed.

    `sets` are flexible scale sets. A pool or a scale set without a number of machines is a problem.
    """
    counts = [(f"pool {pool.name}", pool.machine_count) for pool in pools if _is_made_of_machines(pool)]
    counts += [(f"the flexible scale set {scale_set.name}", _capacity(scale_set)) for scale_set in sets]
    uncounted = sorted(name for name, count in counts if count is None)
    if uncounted:
        return _problem(f"{group}: the answer does not contain the number of machines of {uncounted[0]}")
    counted = [(name, count) for name, count in counts if count]
    if sum(count for _, count in counted) <= machine_count:
        return None
    description = ", ".join(f"{name} has {count} machines" for name, count in counted)
    return _problem(f"{group}: {description}, and interfaces of {machine_count} machines are listed")


def _is_made_of_machines(pool: AgentPool) -> bool:
    return (pool.type or "").lower() == "virtualmachines"


def _capacity(scale_set: ScaleSet) -> int | None:
    """Its capacity; None where the answer has none, or none that can be read."""
    try:
        return scale_set.sku.capacity if scale_set.sku is not None else None
    except FactDamaged:
        return None


def _problem(detail: str, whose: str = "") -> Problem:
    """`whose` machines are counted: the same remedy for all that rests on them makes them one cause in reports."""
    remedy = f"Audit again when Azure lists every machine of {whose}: one that no list shows may have an egress path."
    return Problem(UnreadReason.UNREADABLE, detail, remedy=remedy if whose else "")
