"""Who of the cluster may do more than pull: a registry that pods can push to is a drop box."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.cluster_identities import ClusterIdentities
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
KUBELET = "identityprofile.kubeletidentity"


def push(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Every role that an identity of the cluster has at the registry or above it."""

    def judge(seen: Seen[Registry]) -> Iterator[Judgement]:
        yield _judge(estate, seen)

    yield from each_registry(estate, policy, judge)


def _judge(estate: Estate, seen: Seen[Registry]) -> Judgement:
    cluster = estate.one(ClusterIdentities, estate.cluster)
    assignments = estate.every(RoleAssignment, seen.target)
    named = list(cluster.value.named()) if cluster.value is not None else []
    identities = {object_id.lower(): place for place, object_id in named if object_id}
    looks = (seen, cluster, assignments)
    more = [
        f"{identities[one.principal_id.lower()]} has role {name_of(one.role_definition_id or 'not named')}"
        for one in assignments
        if one.principal_id
        and one.principal_id.lower() in identities
        and name_of(one.role_definition_id or "").lower() not in HARMLESS_ROLES
    ]
    odd = sorted(place for place, object_id in named if object_id is None)
    if more:
        path = "pod -> instance metadata -> registry"
        return fails(seen.target, "MoreThanPull", "; ".join(more), *looks, paths=(path,))
    if odd:
        return cannot_say(seen.target, "IdentityNotRead", f"no identity can be read in {', '.join(odd)}", *looks)
    if cluster.value is not None and not any(place.lower() == KUBELET and object_id for place, object_id in named):
        return cannot_say(seen.target, "KubeletNotNamed", "the cluster does not name its kubelet's identity", *looks)
    words = "identities that the cluster names have no role that writes; roles of groups are not resolved"
    return passes(seen.target, "PullOnly", words, *looks)
