"""Registries, storage accounts and file shares in scope: those that the nodes use, and no others.

These are the bootstrap registry, the targets of private endpoints in reach, those that rules of the declared firewall
name by host, and, with source kube, the registries of running images and the shares of volumes. A name that no resource
in our subscriptions has is a problem of the listing.
"""

from __future__ import annotations

from collections.abc import Iterable

from hermetic.audit.cluster.members import node_group_of
from hermetic.audit.cluster.workloads import pods_and_templates
from hermetic.audit.estate.arm_ids import group_of, same_id, type_of
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.key_vaults import Vault
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.azure.storage import FileShare, StorageAccount
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.images import MIRROR
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.volumes import PersistentVolume
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.estate.resource import Resource
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.behind_firewall import own_resources_named
from hermetic.audit.scope.private_links import targets_of
from hermetic.audit.scope.reachable_networks import throughout
from hermetic.audit.scope.volumes_in_azure import VolumeStorage, first_label, storage_in, storage_of


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
    images = {container.image.lower() for pod in pods for container in pod.containers}
    is_theirs = any(image.startswith(host) and not image.startswith(host + MIRROR) for image in images)
    return None if is_theirs or host == "/" or pods.problem is not None else (cluster, pods)


REGISTRY_HOSTS = (".azurecr.io", ".azurecr.us", ".azurecr.cn")


@derived
def registry_ids(estate: Estate, policy: Policy) -> Listing[str]:
    """ARM ids of the registries in scope."""
    targets = targets_of(estate, policy, Registry.TYPE)
    cluster = estate.one(ManagedCluster, estate.cluster)
    profile = cluster.value.bootstrap_profile if cluster.value is not None else None
    bootstrap = (profile.container_registry_id,) if profile is not None and profile.container_registry_id else ()
    listing = Listing(
        targets.target,
        (*targets.items, *bootstrap),
        (*targets.evidence, *cluster.evidence),
        targets.problem or cluster.problem,
    )
    named = _named_by_rules(estate, policy, Registry)
    return _with(_with(listing, named), _registries_of_pods(estate, policy))


@derived
def account_ids(estate: Estate, policy: Policy) -> Listing[str]:
    """ARM ids of the storage accounts in scope."""
    targets = targets_of(estate, policy, StorageAccount.TYPE)
    named = _named_by_rules(estate, policy, StorageAccount)
    return _with(_with(targets, named), _used_by_volumes(estate, policy, StorageAccount))


def vault_ids(estate: Estate, policy: Policy, kind: type[Vault]) -> Listing[str]:
    """ARM ids of the key vaults, or the managed HSMs, in scope."""
    return _with(targets_of(estate, policy, kind.TYPE), _named_by_rules(estate, policy, kind))


def _named_by_rules(estate: Estate, policy: Policy, kind: type[Resource]) -> Listing[str]:
    named = own_resources_named(estate, policy)
    return named.where(lambda resource: type_of(resource).lower() == kind.TYPE.lower())


def _registries_of_pods(estate: Estate, policy: Policy) -> Listing[str]:
    if "kube" not in estate.sources:
        return Listing(estate.cluster)
    pods = estate.every(Pod, EVERYWHERE)
    hosts = {container.image.split("/")[0].lower() for pod in pods for container in pod.containers}
    registry_hosts = {host for host in hosts if host.endswith(REGISTRY_HOSTS)}
    nothing: Listing[Registry] = Listing(estate.cluster)
    every = throughout(estate, policy, Registry) if registry_hosts else nothing
    by_host = {(registry.login_server or "").lower(): registry.id for registry in every}
    ids = tuple(by_host[host] for host in sorted(registry_hosts & by_host.keys()))
    lost = registry_hosts - by_host.keys()
    problem = pods.problem or (_lost(lost, every) if lost else None)
    return Listing(estate.cluster, ids, (*pods.evidence, *every.evidence), problem)


@derived
def share_ids(estate: Estate, policy: Policy) -> Listing[str]:
    return _with(targets_of(estate, policy, FileShare.TYPE), _used_by_volumes(estate, policy, FileShare))


def _used_by_volumes(estate: Estate, policy: Policy, kind: type[Resource]) -> Listing[str]:
    """Accounts, or shares without one, that volumes name. An unknown or absent name is a problem of both listings."""
    volumes = _volumes(estate)
    account_names = {name for volume in volumes for name in volume.accounts}
    gap = volumes.problem or _nameless(volumes)
    if not account_names:
        return Listing(estate.cluster, (), volumes.evidence, gap)
    accounts, shares = throughout(estate, policy, StorageAccount), throughout(estate, policy, FileShare)
    known_accounts = {account.name.lower(): account.id for account in accounts}
    known_shares = {first_label(share.host_name): share.id for share in shares}
    ids_by_name = known_accounts if kind is StorageAccount else known_shares
    ids = tuple(ids_by_name[name] for name in sorted(account_names & ids_by_name.keys()))
    evidence = (*volumes.evidence, *accounts.evidence, *shares.evidence)
    lost = account_names - known_accounts.keys() - known_shares.keys()
    return Listing(estate.cluster, ids, evidence, gap or (_lost(lost, accounts, shares) if lost else None))


def _nameless(volumes: Iterable[VolumeStorage]) -> Problem | None:
    """The problem of volumes in Azure storage that do not name their account; None without any."""
    names = {volume.name for volume in volumes if volume.is_in_azure and not volume.accounts}
    if not names:
        return None
    message = f"{', '.join(sorted(names))}: names no storage account; a secret may, and is not read"
    return Problem(UnreadReason.UNREADABLE, message)


def _volumes(estate: Estate) -> Listing[VolumeStorage]:
    """Volumes of the cluster, and volumes that pods define inline."""
    if "kube" not in estate.sources:
        return Listing(estate.cluster)
    volumes, pods = estate.every(PersistentVolume, EVERYWHERE), pods_and_templates(estate)
    inline = tuple(volume for pod in pods for volume in storage_in(pod))
    all_volumes = (*map(storage_of, volumes), *inline)
    # pods without inline volumes add no evidence
    evidence = (*volumes.evidence, *(pods.evidence if inline else ()))
    return Listing(estate.cluster, all_volumes, evidence, volumes.problem or pods.problem)


def _lost(names: Iterable[str], *lists: Observation) -> Problem:
    """Why names were not found: a list is incomplete, or no resource of ours has them."""
    problem = next((observation.problem for observation in lists if observation.problem is not None), None)
    message = f"{', '.join(sorted(names))}: in use, and in none of the subscriptions that are read"
    return problem or Problem(UnreadReason.NOT_FOUND, message)


def _with(listing: Listing[str], other: Listing[str]) -> Listing[str]:
    ids = {arm_id.lower(): arm_id for arm_id in (*listing, *other)}
    return Listing(
        listing.target,
        tuple(ids[key] for key in sorted(ids)),
        (*listing.evidence, *other.evidence),
        listing.problem or other.problem,
    )
