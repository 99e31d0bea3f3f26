"""Links (SAS) to disks and snapshots: each gives access to all data on one, bypassing the networks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import cluster_of, network_ids_of, node_group_of, whole_or_unknown
from hermetic.audit.estate.arm_ids import group_of, is_arm_id, is_below, parent_of, type_of
from hermetic.audit.estate.azure.storage import Disk, DiskAccess, DiskSnapshot, Exportable
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.volumes import PersistentVolume
from hermetic.audit.estate.observation import Listing, Observation, Seen, merged
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.findings import Severity
from hermetic.audit.hops import INTERNET, POD, Path, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.private_links import Others, others_of, results_of
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
Warning: What still runs on the old pool ends.
az aks nodepool delete --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP \
--cluster-name CLUSTER_NAME --name POOL_NAME
"""
INSTANCES = "microsoft.compute/virtualmachinescalesets/virtualmachines"


@check("disk-export")
def disk_export(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every disk and snapshot in scope; system disks are reported per scale set, since AKS creates them all alike."""
    disks, snapshots = disks_of(estate), snapshots_of(estate)
    for one in (*disks, *snapshots):
        yield from whatever_is_damaged(one.id or estate.cluster, _export(estate, policy, one))
    what = "disks and snapshots of the cluster"
    if disks.items or snapshots.items:
        yield from whole_or_unknown(estate.cluster, what, disks, snapshots)
    else:
        yield passes(estate.cluster, "NoDisk", "no disk is kept for the cluster, and no snapshot", disks, snapshots)


def _export(estate: Estate, policy: Policy, one: Exportable) -> Iterator[CheckResult]:
    resource, severity = _named(one)
    remedy, paths = _remedy(one, severity), _paths(one)
    access_policy = (one.network_access_policy or "AllowAll").lower()
    if (one.disk_state or "").lower() in ACTIVE_LINK:
        words = f"{one.name}: a link to all that is on it is active (diskState {one.disk_state})"
        yield fails(resource, "LinkActive", words, one, paths=paths, severity=Severity.HIGH, remedy=remedy)
    if access_policy == DENY_ALL:
        yield passes(resource, "NoExport", "it cannot be exported", one)
    elif access_policy == ALLOW_PRIVATE:
        yield from _through_an_access(estate, policy, one, resource)
    elif access_policy != ALLOW_ALL:
        words = f"{one.name}: networkAccessPolicy {one.network_access_policy!r} is not known"
        yield unknown(resource, "PolicyUnknown", words, one, remedy=remedy)
    elif (one.public_network_access or "").lower() == "disabled":
        yield passes(resource, "PublicOff", "publicNetworkAccess is Disabled, and there is no private access", one)
    else:
        how = one.network_access_policy or "absent, which means AllowAll"
        words = f"{one.name}: networkAccessPolicy is {how}: a link to it works from the internet"
        yield fails(resource, "Exportable", words, one, paths=paths, severity=severity, remedy=remedy)


def _remedy(one: Exportable, severity: Severity | None) -> str:
    """The remedy for a snapshot or system disk; "" for that of the page, which is about disks of volumes."""
    if severity is Severity.LOW:
        return WITHOUT_SYSTEM_DISKS
    return "" if isinstance(one, Disk) else CLOSE_SNAPSHOT


def _named(one: Exportable) -> tuple[str, Severity | None]:
    """Resource and severity of a finding. System disks are AKS's own and hold no volume: low, by scale set."""
    try:
        if not isinstance(one, Disk) or not one.os_type:
            return one.id, None
        machine = one.managed_by or ""
    except FactDamaged:
        return one.id, None
    return (parent_of(machine) if type_of(machine).lower() == INSTANCES else one.id), Severity.LOW


def _paths(one: Exportable) -> tuple[Path, ...]:
    kind = "disk" if isinstance(one, Disk) else "snapshot"
    return (path_of(POD, f"{kind} {one.name}", "link", INTERNET),)


def _through_an_access(estate: Estate, policy: Policy, one: Exportable, resource: str) -> Iterator[CheckResult]:
    access = one.disk_access_id or ""
    if not access:
        yield unknown(resource, "AccessNotNamed", f"{one.name}: exported through an access that is not named", one)
        return
    if not policy.owns(access, estate.cluster, *network_ids_of(estate)):
        words = f"{one.name}: exported through {access}, which is not ours"
        yield fails(resource, "AccessNotOurs", words, one, paths=_paths(one), severity=Severity.HIGH)
        return
    seen = estate.one(DiskAccess, access)
    connections = seen.value.private_endpoint_connections if seen.value is not None else None
    if connections is None:
        yield unknown(resource, "AccessNotSeen", f"{access}: the answer lists no private endpoints", seen, one)
    else:
        yield from _connected(one, resource, others_of(estate, policy, connections), seen)


def _connected(one: Exportable, resource: str, others: Others, seen: Seen[DiskAccess]) -> Iterator[CheckResult]:
    """Others that read what is exported through the access."""
    observed: tuple[Observation, ...] = (one, seen)
    high = Severity.HIGH
    yield from results_of(
        others, resource, *observed, about=f"{one.name}: ", paths=_paths(one), of_approved=high, remedy=REJECT
    )
    if not others:
        words = f"exported through {seen.target} only, by private endpoints of ours"
        yield passes(resource, "OursOnly", words, *observed)


DISK_DRIVER = "disk.csi.azure.com"

R = TypeVar("R", bound=Exportable)


@derived
def disks_of(estate: Estate) -> Listing[Disk]:
    """Every disk in the node resource group, and the disks of volumes in any resource group.

    A volume whose disk is in no list of a resource group is a problem of the listing.
    """
    volumes = _disk_ids_of_volumes(estate)
    wanted = {one.lower() for one in volumes}
    group, listed = node_group_of(estate), _listed(estate, Disk, volumes)
    found = tuple(one for one in listed if is_below(one.id, group) or one.id.lower() in wanted)
    lost = sorted(wanted - {one.id.lower() for one in found})
    problem = listed.problem or volumes.problem
    if problem is None and lost:
        problem = Problem(UnreadReason.NOT_FOUND, f"{', '.join(lost)}: volumes lead there, and no list shows it")
    return Listing(estate.cluster, found, (*listed.evidence, *volumes.evidence), problem)


@derived
def snapshots_of(estate: Estate) -> Listing[DiskSnapshot]:
    """Every snapshot in the node resource group; in groups of volumes, those of disks in scope or of unknown source."""
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
