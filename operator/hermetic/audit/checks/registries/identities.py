"""Who of the cluster may do more than pull: a registry that pods can push to is a drop box."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.cluster_features import ClusterFeatures
from hermetic.audit.estate.azure.registries import Registry, RoleAssignment
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.look import Seen
from hermetic.audit.judging import Judgement, cannot_say, fails, passes
from hermetic.audit.policy import Policy
from hermetic.audit.stores import each_registry

# Roles that write nothing to a registry; those without "pull" come from a group or subscription above it.
HARMLESS_ROLES = {
    "7f951dda-4ed3-4680-a7ca-43fe172d538d": "AcrPull",
    "b93aa761-3e63-49ed-ac28-beffa264f7ac": "Container Registry Repository Reader",
    "acdd72a7-3385-48ef-bd42-f606fba81ae7": "Reader",
    "4d97b98b-1d4f-4787-a291-c67834d212e7": "Network Contributor",
    "f1a07417-d97a-45cb-824c-7a7467783830": "Managed Identity Operator",
    "b12aa53e-6015-4669-85d0-8515ebb3ae7f": "Private DNS Zone Contributor",
}
KUBELET = "kubeletidentity"


def push(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Every role that an identity of the cluster has at the registry or above it."""

    def judge(seen: Seen[Registry]) -> Iterator[Judgement]:
        yield _judge(estate, seen)

    yield from each_registry(estate, policy, judge)


def _judge(estate: Estate, seen: Seen[Registry]) -> Judgement:
    cluster = estate.one(ClusterFeatures, estate.cluster)
    assignments = estate.every(RoleAssignment, seen.target)
    identities = _identities(cluster.value)
    looks = (seen, cluster, assignments)
    more = [
        f"{identities[one.principal_id.lower()]} has role {name_of(one.role_definition_id or 'not named')}"
        for one in assignments
        if one.principal_id
        and one.principal_id.lower() in identities
        and name_of(one.role_definition_id or "").lower() not in HARMLESS_ROLES
    ]
    if more:
        path = "pod -> instance metadata -> registry"
        return fails(seen.target, "MoreThanPull", "; ".join(more), *looks, paths=(path,))
    if KUBELET not in {name.partition(" ")[0] for name in identities.values()} and cluster.value is not None:
        return cannot_say(seen.target, "KubeletNotNamed", "the cluster does not name its kubelet's identity", *looks)
    words = "identities that the cluster names have no role that writes; roles of groups are not resolved"
    return passes(seen.target, "PullOnly", words, *looks)


def _identities(cluster: ClusterFeatures | None) -> dict[str, str]:
    """Object ids in lower case of every identity that the cluster's body names, and what each is for."""
    if cluster is None:
        return {}
    own = cluster.identity
    found = [(own.principal_id, "control plane")] if own is not None else []
    found += [
        (one.principal_id, "control plane")
        for one in ((own.user_assigned_identities or {}) if own is not None else {}).values()
    ]
    found += [
        (addon.identity.object_id, f"add-on {name}")
        for name, addon in (cluster.addon_profiles or {}).items()
        if addon.identity is not None
    ]
    found += [(one.object_id, name.lower()) for name, one in (cluster.identity_profile or {}).items()]
    return {object_id.lower(): name for object_id, name in found if object_id}
