"""The registry that nodes get AKS's own images from, where AKS manages it.

AKS creates it in the node resource group, with its private endpoint, its zone and its cache rule, and reconciles it:
users must not change it. What AKS sets for the export policy is not documented.
"""

from __future__ import annotations

from hermetic.audit.cluster_scope import node_group_of
from hermetic.audit.estate.arm_ids import group_of, same_id
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.images import MIRROR
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.observation import Observation


def only_caches_for_aks(estate: Estate, registry: Registry) -> tuple[Observation, ...] | None:
    """Evidence that AKS manages this registry and that pods pull only Microsoft's mirrored images from it; or None.

    Where the audit has no source kube, it is enough that AKS manages the registry.
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
