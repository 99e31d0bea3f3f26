"""Registries, storage accounts and file shares in scope: those that the nodes use, and no others.

These are the bootstrap registry, the targets of private endpoints in reach, and, with source kube, the registries of
running images and the shares of volumes. A name that no resource in our subscriptions has is a problem of the listing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hermetic.audit.cluster_scope import node_group_of, whole_or_unknown
from hermetic.audit.estate.arm_ids import group_of, same_id
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.azure.storage import FileShare, StorageAccount
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.images import MIRROR
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.volumes import PersistentVolume
from hermetic.audit.estate.observation import Listing, Observation, Seen
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.estate.resource import Resource
from hermetic.audit.evaluation import CheckResult, does_not_apply, unknown, whatever_is_damaged
from hermetic.audit.policy import Policy
from hermetic.audit.private_links import targets_of
from hermetic.audit.reachable_networks import throughout
from hermetic.audit.volumes_in_azure import VolumeStorage, first_label, storage_in, storage_of
from hermetic.audit.workloads import pods_and_templates


def only_caches_for_aks(estate: Estate, registry: Registry) -> tuple[Observation, ...] | None:
    """Evidence that AKS manages this registry and that pods pull only Microsoft's mirrored images from it; or None.

    Where the audit has no source kube, it is enough that AKS manages the registry.

    AKS creates it in the node resource group, with its private endpoint, its zone and its cache rule, and reconciles
    it: users must not change it. What AKS sets for the export policy is not documented.
    """
    group = node_group_of(estate)
    cluster = estate.one(ManagedCluster, estate.cluster)
    profile = cluster.value.bootstrap_profile if cluster.value is not None else None
    named = (profile.container_registry_id if profile is not None else None) or ""
    if not group or not same_id(group_of(registry.id), group) or not same_id(named, registry.id):
        return None
    if "kube" not in estate.sources:
        return (cluster,)
    pods = estate.every(Pod, EVERYWHERE)
    host = f"{(registry.login_server or '').lower()}/"
    images = {one.image.lower() for pod in pods for one in pod.containers}
    is_theirs = any(one.startswith(host) and not one.startswith(host + MIRROR) for one in images)
    return None if is_theirs or host == "/" or pods.problem is not None else (cluster, pods)


R = TypeVar("R", bound=Resource)

REGISTRY_HOSTS = (".azurecr.io", ".azurecr.us", ".azurecr.cn")


@derived
def registry_ids(estate: Estate, policy: Policy) -> Listing[str]:
    """ARM ids of the registries in scope."""
    targets = targets_of(estate, policy, Registry.TYPE)
    cluster = estate.one(ManagedCluster, estate.cluster)
    profile = cluster.value.bootstrap_profile if cluster.value is not None else None
    bootstrap = (profile.container_registry_id,) if profile is not None and profile.container_registry_id else ()
    known = Listing(
        targets.target,
        (*targets.items, *bootstrap),
        (*targets.evidence, *cluster.evidence),
        targets.problem or cluster.problem,
    )
    return _with(known, _registries_of_pods(estate, policy))


@derived
def account_ids(estate: Estate, policy: Policy) -> Listing[str]:
    """ARM ids of the storage accounts in scope."""
    return _with(targets_of(estate, policy, StorageAccount.TYPE), _used_by_volumes(estate, policy, StorageAccount))


def _registries_of_pods(estate: Estate, policy: Policy) -> Listing[str]:
    if "kube" not in estate.sources:
        return Listing(estate.cluster)
    pods = estate.every(Pod, EVERYWHERE)
    hosts = {container.image.split("/")[0].lower() for pod in pods for container in pod.containers}
    wanted = {one for one in hosts if one.endswith(REGISTRY_HOSTS)}
    nothing: Listing[Registry] = Listing(estate.cluster)
    every = throughout(estate, policy, Registry) if wanted else nothing
    by_host = {(one.login_server or "").lower(): one.id for one in every}
    found = tuple(by_host[one] for one in sorted(wanted & by_host.keys()))
    lost = wanted - by_host.keys()
    problem = pods.problem or (_lost(lost, every) if lost else None)
    return Listing(estate.cluster, found, (*pods.evidence, *every.evidence), problem)


@derived
def _share_ids(estate: Estate, policy: Policy) -> Listing[str]:
    return _with(targets_of(estate, policy, FileShare.TYPE), _used_by_volumes(estate, policy, FileShare))


def _used_by_volumes(estate: Estate, policy: Policy, kind: type[Resource]) -> Listing[str]:
    """Accounts, or shares without one, that volumes name. An unknown or absent name is a problem of both listings."""
    volumes = _volumes(estate)
    wanted = {name for volume in volumes for name in volume.accounts}
    gap = volumes.problem or _nameless(volumes)
    if not wanted:
        return Listing(estate.cluster, (), volumes.evidence, gap)
    accounts, shares = throughout(estate, policy, StorageAccount), throughout(estate, policy, FileShare)
    known_accounts = {one.name.lower(): one.id for one in accounts}
    known_shares = {first_label(one.host_name): one.id for one in shares}
    known = known_accounts if kind is StorageAccount else known_shares
    found = tuple(known[one] for one in sorted(wanted & known.keys()))
    evidence = (*volumes.evidence, *accounts.evidence, *shares.evidence)
    lost = wanted - known_accounts.keys() - known_shares.keys()
    return Listing(estate.cluster, found, evidence, gap or (_lost(lost, accounts, shares) if lost else None))


def _nameless(volumes: Iterable[VolumeStorage]) -> Problem | None:
    """The problem of volumes in Azure storage that do not name their account; None without any."""
    names = {one.name for one in volumes if one.is_in_azure and not one.accounts}
    if not names:
        return None
    words = f"{', '.join(sorted(names))}: names no storage account; a secret may, and is not read"
    return Problem(UnreadReason.UNREADABLE, words)


def _volumes(estate: Estate) -> Listing[VolumeStorage]:
    """Volumes of the cluster, and volumes that pods define inline."""
    if "kube" not in estate.sources:
        return Listing(estate.cluster)
    volumes, pods = estate.every(PersistentVolume, EVERYWHERE), pods_and_templates(estate)
    inline = tuple(one for pod in pods for one in storage_in(pod))
    found = (*map(storage_of, volumes), *inline)
    # pods without inline volumes add no evidence
    evidence = (*volumes.evidence, *(pods.evidence if inline else ()))
    return Listing(estate.cluster, found, evidence, volumes.problem or pods.problem)


def _lost(names: Iterable[str], *lists: Observation) -> Problem:
    """Why names were not found: a list is incomplete, or no resource of ours has them."""
    problem = next((observation.problem for observation in lists if observation.problem is not None), None)
    words = f"{', '.join(sorted(names))}: in use, and in none of the subscriptions that are read"
    return problem or Problem(UnreadReason.NOT_FOUND, words)


def _with(one: Listing[str], other: Listing[str]) -> Listing[str]:
    ids = {arm_id.lower(): arm_id for arm_id in (*one, *other)}
    return Listing(
        one.target,
        tuple(ids[key] for key in sorted(ids)),
        (*one.evidence, *other.evidence),
        one.problem or other.problem,
    )


def _each(
    kind: type[R], ids_of: Callable[[Estate, Policy], Listing[str]]
) -> Callable[[Estate, Policy, Callable[[Seen[R]], Iterable[CheckResult]]], Iterator[CheckResult]]:
    """For `check_each`: evaluate all of a kind in scope."""
    what = kind.TYPE.rpartition("/")[2]

    def each(
        estate: Estate, policy: Policy, evaluate: Callable[[Seen[R]], Iterable[CheckResult]]
    ) -> Iterator[CheckResult]:
        ids = ids_of(estate, policy)
        for one in ids:
            seen = estate.one(kind, one)
            if seen.value is None:
                yield unknown(one, "NotSeen", f"it is in use, and could not be read ({what})", seen)
            else:
                yield from whatever_is_damaged(one, evaluate(seen))
        if ids.items:
            yield from whole_or_unknown(estate.cluster, f"{what} in use", ids)
        else:
            yield does_not_apply(estate.cluster, "NoneInUse", f"nothing here leads to {what}", ids)

    return each


each_registry = _each(Registry, registry_ids)
each_account = _each(StorageAccount, account_ids)
each_share = _each(FileShare, _share_ids)
"""File shares that have no storage account."""
