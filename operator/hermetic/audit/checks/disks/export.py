"""Links (SAS) to disks and snapshots: each gives access to all data on one, bypassing the networks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import cluster_of, network_ids_of, node_group_of
from hermetic.audit.estate.arm_ids import group_of, is_arm_id, is_below, parent_of, type_of
from hermetic.audit.estate.azure.storage import Disk, DiskAccess, DiskSnapshot, Exportable
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.volumes import PersistentVolume
from hermetic.audit.estate.observation import Listing, Lookup, Observation, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.evaluation.each_resource import whole_or_unknown
from hermetic.audit.evaluation.foreign_endpoints import results_of
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, POD, Path, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.private_links import OtherConnections, others_of
from hermetic.errors import FactDamaged

ACTIVE_LINK = {"activesas", "activesasfrozen"}
ALLOW_ALL, ALLOW_PRIVATE, DENY_ALL = "allowall", "allowprivate", "denyall"
REJECT = """\
Warning: the other side's connections end at once.
az network private-endpoint-connection reject --id LINK_ID
"""
CLOSE_SNAPSHOT = """\
Warning: exports and copies of it by a link fail from then on; an active link ends.
az snapshot update --ids SNAPSHOT_ID --network-access-policy DenyAll --public-network-access Disabled
az snapshot revoke-access --ids SNAPSHOT_ID
The flag --public-network-access is a preview of the az CLI.
"""
WITHOUT_SYSTEM_DISKS = """\
Make a pool whose system disks are ephemeral, and move the workloads there.
az aks nodepool add --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP --cluster-name CLUSTER_NAME \
--name NEW_POOL --node-osdisk-type Ephemeral
Then delete the old pool.
Warning: Workloads that still run on the old pool end.
az aks nodepool delete --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP \
--cluster-name CLUSTER_NAME --name POOL_NAME
"""
INSTANCES = "microsoft.compute/virtualmachinescalesets/virtualmachines"


@check("disk-export")
def disk_export(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every disk and snapshot in scope; system disks are reported per scale set, since AKS creates them all alike."""
    disks, snapshots = disks_of(estate), snapshots_of(estate)
    for exportable in (*disks, *snapshots):
        yield from whatever_is_damaged(exportable.id or estate.cluster, _export(estate, policy, exportable))
    subject = "disks and snapshots of the cluster"
    if disks.items or snapshots.items:
        yield from whole_or_unknown(estate.cluster, subject, disks, snapshots)
    else:
        yield passes(estate.cluster, "NoDisk", "no disk is kept for the cluster, and no snapshot", disks, snapshots)


def _export(estate: Estate, policy: Policy, exportable: Exportable) -> Iterator[CheckResult]:
    resource, severity = _named(exportable)
    remedy, paths = _remedy(exportable, severity), _paths(exportable)
    access_policy = (exportable.network_access_policy or "AllowAll").lower()
    if (exportable.disk_state or "").lower() in ACTIVE_LINK:
        message = f"{exportable.name}: a link to all that is on it is active (diskState {exportable.disk_state})"
        yield fails(resource, "LinkActive", message, exportable, paths=paths, severity=Severity.HIGH, remedy=remedy)
    if access_policy == DENY_ALL:
        yield passes(resource, "NoExport", "it cannot be exported", exportable)
    elif access_policy == ALLOW_PRIVATE:
        yield from _through_an_access(estate, policy, exportable, resource)
    elif access_policy != ALLOW_ALL:
        message = f"{exportable.name}: networkAccessPolicy {exportable.network_access_policy!r} is not known"
        yield unknown(resource, "PolicyUnknown", message, exportable, remedy=remedy)
    elif (exportable.public_network_access or "").lower() == "disabled":
        yield passes(
            resource, "PublicOff", "publicNetworkAccess is Disabled, and private access is not allowed", exportable
        )
    else:
        how = exportable.network_access_policy or "absent, which means AllowAll"
        message = f"{exportable.name}: networkAccessPolicy is {how}: a link to it works from the internet"
        yield fails(resource, "Exportable", message, exportable, paths=paths, severity=severity, remedy=remedy)


def _remedy(exportable: Exportable, severity: Severity | None) -> str:
    """The remedy for a snapshot or system disk; "" for that of the page, which is about disks of volumes."""
    if severity is Severity.LOW:
        return WITHOUT_SYSTEM_DISKS
    return "" if isinstance(exportable, Disk) else CLOSE_SNAPSHOT


def _named(exportable: Exportable) -> tuple[str, Severity | None]:
    """Resource and severity of a finding. System disks are AKS's own and hold no volume: low, by scale set."""
    try:
        if not isinstance(exportable, Disk) or not exportable.os_type:
            return exportable.id, None
        machine = exportable.managed_by or ""
    except FactDamaged:
        return exportable.id, None
    return (parent_of(machine) if type_of(machine).lower() == INSTANCES else exportable.id), Severity.LOW


def _paths(exportable: Exportable) -> tuple[Path, ...]:
    kind = "disk" if isinstance(exportable, Disk) else "snapshot"
    return (path_of(POD, f"{kind} {exportable.name}", "link", INTERNET),)


def _through_an_access(estate: Estate, policy: Policy, exportable: Exportable, resource: str) -> Iterator[CheckResult]:
    access = exportable.disk_access_id or ""
    if not access:
        yield unknown(
            resource, "AccessNotNamed", f"{exportable.name}: exported through an access that is not named", exportable
        )
        return
    if not policy.owns(access, estate.cluster, *network_ids_of(estate)):
        message = f"{exportable.name}: exported through {access}, which is not ours"
        yield fails(resource, "AccessNotOurs", message, exportable, paths=_paths(exportable), severity=Severity.HIGH)
        return
    disk_access = estate.one(DiskAccess, access)
    connections = disk_access.value.private_endpoint_connections if disk_access.value is not None else None
    if connections is None:
        yield unknown(
            resource, "AccessNotSeen", f"{access}: the answer lists no private endpoints", disk_access, exportable
        )
    else:
        yield from _connected(exportable, resource, others_of(estate, policy, connections), disk_access)


def _connected(
    exportable: Exportable, resource: str, other_connections: OtherConnections, disk_access: Lookup[DiskAccess]
) -> Iterator[CheckResult]:
    """Others that read what is exported through the access."""
    observed: tuple[Observation, ...] = (exportable, disk_access)
    high = Severity.HIGH
    yield from results_of(
        other_connections,
        resource,
        *observed,
        about=f"{exportable.name}: ",
        paths=_paths(exportable),
        of_approved=high,
        remedy=REJECT,
    )
    if not other_connections:
        message = f"exported through {disk_access.target} only, by private endpoints of ours"
        yield passes(resource, "OursOnly", message, *observed)


DISK_DRIVER = "disk.csi.azure.com"

R = TypeVar("R", bound=Exportable)


@derived
def disks_of(estate: Estate) -> Listing[Disk]:
    """Every disk in the node resource group, and the disks of volumes in any resource group.

    A volume whose disk is in no list of a resource group is a problem of the listing.
    """
    volumes = _disk_ids_of_volumes(estate)
    volume_disk_ids = {disk_id.lower() for disk_id in volumes}
    group, listed = node_group_of(estate), _listed(estate, Disk, volumes)
    disks = tuple(disk for disk in listed if is_below(disk.id, group) or disk.id.lower() in volume_disk_ids)
    lost = sorted(volume_disk_ids - {disk.id.lower() for disk in disks})
    problem = listed.problem or volumes.problem
    if problem is None and lost:
        problem = Problem(UnreadReason.NOT_FOUND, f"{', '.join(lost)}: volumes lead there, and no list shows it")
    return Listing(estate.cluster, disks, (*listed.evidence, *volumes.evidence), problem)


@derived
def snapshots_of(estate: Estate) -> Listing[DiskSnapshot]:
    """Every snapshot in the node resource group; in groups of volumes, those of disks in scope or of unknown source."""
    disks, group = {disk.id.lower() for disk in disks_of(estate)}, node_group_of(estate)
    listed = _listed(estate, DiskSnapshot, _disk_ids_of_volumes(estate))
    return listed.where(lambda snapshot: is_below(snapshot.id, group) or _source(snapshot) in disks | {None})


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
        message = f"{estate.cluster}: names no node resource group"
        return Listing(
            estate.cluster, (), cluster.evidence, cluster.problem or Problem(UnreadReason.UNREADABLE, message)
        )
    groups = {group_id.lower(): group_id for group_id in (group, *(group_of(disk_id) for disk_id in volumes))}
    return merged(estate.cluster, *(estate.every(kind, group_id) for _, group_id in sorted(groups.items())))


def _disk_ids_of_volumes(estate: Estate) -> Listing[str]:
    """Disk ids from the volumes: the volume handle of the disk driver is the id of the disk."""
    if "kube" not in estate.sources:
        return Listing(estate.cluster)
    volumes = estate.every(PersistentVolume, EVERYWHERE)
    disk_ids, problem = dict[str, str](), volumes.problem
    for volume in volumes:
        try:
            named = _disk_of(volume)
        except FactDamaged as broken:
            problem = problem or Problem(UnreadReason.UNREADABLE, broken.message)
            continue
        if named is not None and is_arm_id(named) and type_of(named).lower() == Disk.TYPE.lower():
            disk_ids.setdefault(named.lower(), named)
        elif named is not None:
            message = f"PersistentVolume {volume.metadata.name}: {named!r} is not the id of a disk"
            problem = problem or Problem(UnreadReason.UNREADABLE, message)
    return Listing(estate.cluster, tuple(disk_ids[key] for key in sorted(disk_ids)), volumes.evidence, problem)


def _disk_of(volume: PersistentVolume) -> str | None:
    """The disk id of a volume of a disk driver, "" where it has none; None for every other volume."""
    csi, old = volume.spec.csi, volume.spec.azure_disk
    if csi is not None and csi.driver == DISK_DRIVER:
        return csi.volume_handle or ""
    return (old.disk_uri or "") if old is not None else None
