"""Disks and snapshots in scope: those in the resource group of the nodes, and those that volumes refer to.

They are taken from the lists of resource groups. A volume whose disk is in no list is a problem of the listing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hermetic.audit.cluster_scope import cluster_of, node_group_of
from hermetic.audit.estate.arm_ids import group_of, is_arm_id, is_below, type_of
from hermetic.audit.estate.azure.storage import Disk, DiskSnapshot, Exportable
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.volumes import PersistentVolume
from hermetic.audit.estate.observation import Listing, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.errors import FactDamaged

DISK_DRIVER = "disk.csi.azure.com"

R = TypeVar("R", bound=Exportable)


def disks_of(estate: Estate) -> Listing[Disk]:
    """Every disk in the node resource group, and the disks of volumes in any resource group."""
    return estate.once("disks", lambda: _disks(estate))


def snapshots_of(estate: Estate) -> Listing[DiskSnapshot]:
    """Every snapshot in the node resource group; in groups of volumes, those of disks in scope or of unknown source."""
    return estate.once("snapshots", lambda: _snapshots(estate))


def _disks(estate: Estate) -> Listing[Disk]:
    volumes = _disk_ids_of_volumes(estate)
    wanted = {one.lower() for one in volumes}
    group, listed = node_group_of(estate), _listed(estate, Disk, volumes)
    found = tuple(one for one in listed if is_below(one.id, group) or one.id.lower() in wanted)
    lost = sorted(wanted - {one.id.lower() for one in found})
    problem = listed.problem or volumes.problem
    if problem is None and lost:
        problem = Problem(UnreadReason.NOT_FOUND, f"{', '.join(lost)}: volumes lead there, and no list shows it")
    return Listing(estate.cluster, found, (*listed.evidence, *volumes.evidence), problem)


def _snapshots(estate: Estate) -> Listing[DiskSnapshot]:
    disks, group = {one.id.lower() for one in disks_of(estate)}, node_group_of(estate)
    listed = _listed(estate, DiskSnapshot, _disk_ids_of_volumes(estate))
    return listed.where(lambda one: is_below(one.id, group) or _source(one) in disks | {None})


def _source(snapshot: DiskSnapshot) -> str | None:
    """The id of the disk it was made of; None where unknown."""
    try:
        made_of = snapshot.creation_data.source_resource_id if snapshot.creation_data is not None else None
    except FactDamaged:
        return None
    return made_of.lower() if made_of else None


def _listed(estate: Estate, kind: type[R], volumes: Iterable[str]) -> Listing[R]:
    group = node_group_of(estate)
    if not group:
        cluster = cluster_of(estate)
        words = f"{estate.cluster}: names no node resource group"
        return Listing(estate.cluster, (), cluster.evidence, cluster.problem or Problem(UnreadReason.UNREADABLE, words))
    groups = {one.lower(): one for one in (group, *(group_of(one) for one in volumes))}
    return merged(estate.cluster, *(estate.every(kind, one) for _, one in sorted(groups.items())))


def _disk_ids_of_volumes(estate: Estate) -> Listing[str]:
    """Disk ids from the volumes: the volume handle of the disk driver is the id of the disk."""
    if "kube" not in estate.sources:
        return Listing(estate.cluster)
    volumes = estate.every(PersistentVolume, EVERYWHERE)
    found, problem = dict[str, str](), volumes.problem
    for volume in volumes:
        try:
            named = _disk_of(volume)
        except FactDamaged as broken:
            problem = problem or Problem(UnreadReason.UNREADABLE, broken.message)
            continue
        if named is not None and is_arm_id(named) and type_of(named).lower() == Disk.TYPE.lower():
            found.setdefault(named.lower(), named)
        elif named is not None:
            words = f"PersistentVolume {volume.metadata.name}: {named!r} is not the id of a disk"
            problem = problem or Problem(UnreadReason.UNREADABLE, words)
    return Listing(estate.cluster, tuple(found[one] for one in sorted(found)), volumes.evidence, problem)


def _disk_of(volume: PersistentVolume) -> str | None:
    """The disk id of a volume of a disk driver, "" where it has none; None for every other volume."""
    csi, old = volume.spec.csi, volume.spec.azure_disk
    if csi is not None and csi.driver == DISK_DRIVER:
        return csi.volume_handle or ""
    return (old.disk_uri or "") if old is not None else None
