"""Shared disks: what a pod writes on one, a machine outside the cluster reads, without a packet."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.disks.export import disks_of
from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import instances_of, node_group_of, scale_sets_of
from hermetic.audit.cluster.resource_lookup import each_of
from hermetic.audit.estate.arm_ids import group_of, is_below, name_of, subscription_of
from hermetic.audit.estate.azure.machines import Machine
from hermetic.audit.estate.azure.storage import Disk
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.evaluation.each_resource import whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model.hops import POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.held_identities import standing_machines


@check("disk-shared")
def disk_shared(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """Disks of the cluster, and every other disk that is attached to a node."""
    disks, attached = disks_of(estate), _attached(estate)
    listed = {disk.id.lower() for disk in disks}
    observed = [Lookup(disk.id, disk, disk.evidence) for disk in disks]
    observed += [estate.one(Disk, disk) for disk in attached[0] if disk.lower() not in listed]
    for disk in observed:
        if disk.value is None:
            yield unknown(disk.target, "DiskNotSeen", "it is attached to a node, and could not be read", disk)
        else:
            yield from whatever_is_damaged(disk.target, _sharing(estate, disk.value))
    observations = (disks, *attached[1])
    yield from whole_or_unknown(estate.cluster, "disks of the cluster", *observations)
    if not observed:
        yield passes(estate.cluster, "NoDisk", "no disk is kept for the cluster or attached to a node", *observations)


def _attached(estate: Estate) -> tuple[tuple[str, ...], tuple[Observation, ...]]:
    """Ids of the data disks of every node, and the observations that decide whether more exist."""
    observations: list[Observation] = []
    machines: list[Machine] = list(standing_machines(estate, observations))
    for scale_set in scale_sets_of(estate):
        instances = instances_of(estate, scale_set)
        observations.append(instances)
        machines += instances
    ids = each_of(machines, lambda machine: machine.data_disk_ids, observations)
    return tuple({disk.lower(): disk for disk in ids}.values()), (scale_sets_of(estate), *observations)


def _sharing(estate: Estate, disk: Disk) -> Iterator[CheckResult]:
    group, machines, shares = node_group_of(estate), disk.machine_ids, disk.max_shares or 1
    outside = [machine for machine in machines if not group or not is_below(machine, group)]
    if outside:
        message = f"it is attached to machines that are not nodes: {', '.join(outside)}"
        path = path_of(POD, f"disk {disk.name or name_of(disk.id)}", f"machine {name_of(outside[0])}")
        yield fails(disk.id, "AttachedOutside", message, disk, paths=(path,), fill=_placeholders(outside[0]))
    elif shares > 1 and not machines and (disk.disk_state or "").lower() not in {"unattached", "reserved"}:
        message = f"{shares} machines may attach it at once, and the answer names none of them"
        yield unknown(disk.id, "MachinesNotNamed", message, disk)
    elif shares > 1:
        yield passes(disk.id, "SharedByNodes", f"{shares} machines may attach it; only nodes have it attached", disk)
    else:
        yield passes(disk.id, "NotShared", "one machine at a time may attach it", disk)


def _placeholders(machine: str) -> dict[str, str]:
    """What the remedy needs of the machine to detach the disk from."""
    return {
        "MACHINE_SUBSCRIPTION": subscription_of(machine),
        "MACHINE_GROUP": name_of(group_of(machine)),
        "MACHINE_NAME": name_of(machine),
    }
