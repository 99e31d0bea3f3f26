"""Links (SAS) to disks and snapshots: each gives access to all data on one, bypassing the networks."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import network_ids_of, whole_or_unknown
from hermetic.audit.disks import disks_of, snapshots_of
from hermetic.audit.estate.arm_ids import parent_of, type_of
from hermetic.audit.estate.azure.storage import Disk, DiskAccess, Exportable
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes, whatever_is_damaged
from hermetic.audit.findings import Severity
from hermetic.audit.hops import INTERNET, POD, Path, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.private_links import networks_unseen, others_of
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
def disk_export(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Every disk and snapshot in scope; system disks are reported per scale set, since AKS creates them all alike."""
    disks, snapshots = disks_of(estate), snapshots_of(estate)
    for one in (*disks, *snapshots):
        yield from whatever_is_damaged(one.id or estate.cluster, _export(estate, policy, one))
    what = "disks and snapshots of the cluster"
    if disks.items or snapshots.items:
        yield from whole_or_unknown(estate.cluster, what, disks, snapshots)
    else:
        yield passes(estate.cluster, "NoDisk", "no disk is kept for the cluster, and no snapshot", disks, snapshots)


def _export(estate: Estate, policy: Policy, one: Exportable) -> Iterator[Judgement]:
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
        yield cannot_say(resource, "PolicyUnknown", words, one, remedy=remedy)
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


def _through_an_access(estate: Estate, policy: Policy, one: Exportable, resource: str) -> Iterator[Judgement]:
    access = one.disk_access_id or ""
    if not access:
        yield cannot_say(resource, "AccessNotNamed", f"{one.name}: exported privately, and not said by which", one)
        return
    if not policy.owns(access, estate.cluster, *network_ids_of(estate)):
        words = f"{one.name}: exported through {access}, which is not ours"
        yield fails(resource, "AccessNotOurs", words, one, paths=_paths(one), severity=Severity.HIGH)
        return
    seen = estate.one(DiskAccess, access)
    connections = seen.value.private_endpoint_connections if seen.value is not None else None
    if connections is None:
        yield cannot_say(resource, "AccessNotSeen", f"{access}: the answer lists no private endpoints", seen, one)
        return
    others, unseen = others_of(estate, policy, connections), networks_unseen(estate)
    observations: tuple[Observation, ...] = (one, seen)
    if others.connected and not unseen:
        for other in others.connected:
            words = f"{one.name}: a private endpoint that is not ours reads it: {other.words}"
            fill, high = {"LINK_ID": other.link}, Severity.HIGH
            yield fails(
                resource, "Stranger", words, *observations, paths=_paths(one), severity=high, remedy=REJECT, fill=fill
            )
    elif others.connected or others.odd:
        words = f"{one.name}: {'; '.join((*(other.words for other in others.connected), *others.odd))}"
        yield cannot_say(resource, "WhoseNotSeen", words, *unseen, *observations)
    for damage in others.damage:
        yield cannot_say(resource, "Unreadable", damage.problem.detail, damage)
    for other in others.waiting:
        words = f"{one.name}: a private endpoint that is not ours waits for approval: {other.words}"
        yield fails(resource, "StrangerWaits", words, *observations, remedy=REJECT, fill={"LINK_ID": other.link})
    if not others:
        yield passes(
            resource, "OursOnly", f"exported through {access} only, by private endpoints of ours", *observations
        )
