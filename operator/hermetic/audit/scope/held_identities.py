"""Which identities a node or a pod of the cluster can hold, and which only the control plane has.

A process on a node gets tokens of the kubelet's identity, of add-ons' identities and of every other identity attached
to the scale sets; a pod also gets those of an identity that trusts the cluster's token issuer. The identity of the
control plane is on no node: AKS gives it Contributor on the node resource group, and needs it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hermetic.audit.cluster.members import instance_nics_of, scale_sets_of
from hermetic.audit.estate.arm_ids import is_arm_id, name_of, type_of
from hermetic.audit.estate.azure.cluster_identities import (
    ClusterIdentities,
    FederatedCredential,
    IssuingCluster,
    OidcIssuer,
    UserAssignedIdentity,
)
from hermetic.audit.estate.azure.machines import VirtualMachine
from hermetic.audit.estate.azure.vnet import ScaleSet
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Observation, missing, unreadable
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.reachable_networks import throughout, where_readable
from hermetic.errors import FactDamaged

CONTROL_PLANE = "identity"
KUBELET = "identityprofile.kubeletidentity"


@dataclass(frozen=True, slots=True)
class Identities:
    """Object ids in lower case, each with what names it. `unread_holders` name one that could not be read."""

    holders: Mapping[str, str]
    control_plane: Mapping[str, str]
    unread_holders: tuple[str, ...]
    names_the_kubelet: bool
    observations: tuple[Observation, ...]


@derived
def identities_of(estate: Estate) -> Identities:
    """The identities that the cluster and its scale sets name."""
    cluster, sets = estate.one(ClusterIdentities, estate.cluster), scale_sets_of(estate)
    observations: list[Observation] = [cluster, sets]
    named = list(cluster.value.named()) if cluster.value is not None else []
    of_nodes = [
        (holder_name, principal) for holder_name, principal in named if not _is_of_the_control_plane(holder_name)
    ]
    of_nodes += [
        pair
        for scale_set in sets
        for pair in _attached(estate, f"scale set {scale_set.name or scale_set.id}", scale_set, observations)
    ]
    for machine in standing_machines(estate, observations):
        of_nodes += _attached(estate, f"machine {machine.name or machine.id}", machine, observations)
    # Where several places name one identity, the first by name is kept, independent of the order of lists and fields.
    holders = {
        principal.lower(): holder_name
        for holder_name, principal in sorted(of_nodes, key=_place, reverse=True)
        if principal
    }
    control = {
        principal.lower(): holder_name
        for holder_name, principal in sorted(named, key=_place, reverse=True)
        if principal and principal.lower() not in holders
    }
    return Identities(
        holders,
        control,
        tuple(sorted(holder_name for holder_name, principal in of_nodes if principal is None)),
        any(holder_name.lower() == KUBELET and principal for holder_name, principal in named),
        tuple(observations),
    )


def _place(named: tuple[str, str | None]) -> tuple[bool, str]:
    """Sort key: machines before fields of the cluster, since they show which pool has the identity."""
    holder_name, _ = named
    return not holder_name.startswith(("scale set ", "machine ")), holder_name


def _is_of_the_control_plane(holder_name: str) -> bool:
    return holder_name.partition(".")[0].lower() == CONTROL_PLANE


def standing_machines(estate: Estate, observations: list[Observation]) -> Iterator[VirtualMachine]:
    """The nodes that are standalone VMs: of a pool of virtual machines, or of a flexible scale set."""
    nics = instance_nics_of(estate)
    observations.append(nics)
    ids: dict[str, str] = {}
    for nic in nics:
        try:
            machine = nic.virtual_machine.id if nic.virtual_machine is not None else ""
        except FactDamaged as damage:
            observations.append(unreadable(damage))
            continue
        if type_of(machine).lower() == VirtualMachine.TYPE.lower():
            ids[machine.lower()] = machine
    for _, machine in sorted(ids.items()):
        observation = estate.one(VirtualMachine, machine)
        observations.append(observation)
        if observation.value is not None:
            yield observation.value


def _attached(
    estate: Estate, holder_name: str, holder: ScaleSet | VirtualMachine, observations: list[Observation]
) -> Iterator[tuple[str, str | None]]:
    """Identities of a scale set or VM. One whose object id is not in the answer is read by its ARM id."""
    try:
        identity = holder.identity
        if identity is None:
            return
        if identity.principal_id is not None:
            yield holder_name, identity.principal_id or None
        for arm_id, attached in (identity.user_assigned_identities or {}).items():
            yield f"{holder_name}: {name_of(arm_id)}", attached.principal_id or _by_id(estate, arm_id, observations)
    except FactDamaged:
        yield holder_name, None


def _by_id(estate: Estate, arm_id: str, observations: list[Observation]) -> str | None:
    identity = estate.one(UserAssignedIdentity, arm_id)
    observations.append(identity)
    return (identity.value.principal_id if identity.value is not None else None) or None


def federated(
    estate: Estate, policy: Policy, principals: Iterable[str], control_plane: Mapping[str, str]
) -> tuple[Mapping[str, str], tuple[Observation, ...]]:
    """Those of the principals that a pod gets by its service account token, and the observations that this rests on.

    User-assigned identities are read in the subscriptions that are searched. App registrations are in Entra ID, which
    is not read.
    """
    principal_set = set(principals)
    issuer, observations = _issuer(estate)
    if not principal_set or issuer is None:
        return {}, observations if principal_set else ()
    trusted: dict[str, str] = {}
    listed: list[Observation] = list(observations)
    for principal, arm_id in _arm_ids(estate, policy, principal_set, control_plane, listed):
        credentials = estate.every(FederatedCredential, arm_id)
        listed.append(credentials)
        if any(_trusts(credential, issuer) for credential in credentials):
            trusted[principal] = f"{name_of(arm_id)}, which trusts the cluster's token issuer,"
    return trusted, tuple(listed)


def _issuer(estate: Estate) -> tuple[str | None, tuple[Observation, ...]]:
    """The cluster's token issuer, normalised; None where no outside service can verify its tokens."""
    cluster = estate.one(IssuingCluster, estate.cluster)
    profile = (cluster.value.oidc_issuer_profile if cluster.value is not None else None) or OidcIssuer()
    if profile.issuer_url:
        return _spelt(profile.issuer_url), (cluster,)
    if profile.enabled:
        return None, (
            cluster,
            missing(f"{estate.cluster}: its token issuer is on, and its address is not in the answer"),
        )
    return None, (cluster,)


def _arm_ids(
    estate: Estate,
    policy: Policy,
    principals: set[str],
    control_plane: Mapping[str, str],
    observations: list[Observation],
) -> Iterator[tuple[str, str]]:
    """Principals that are user-assigned identities, with their ARM ids. A system-assigned one has no federation."""
    for principal in sorted(principals & control_plane.keys()):
        arm_id = control_plane[principal][len(f"{CONTROL_PLANE}.userAssignedIdentities.") :]
        if is_arm_id(arm_id):
            yield principal, arm_id
    other_principals = principals - control_plane.keys()
    if other_principals:
        every = where_readable(estate, policy, UserAssignedIdentity)
        by_principal = {
            principal_id: identity.id for identity in every if (principal_id := _principal(identity, observations))
        }
        # A principal that is in no list may be an identity of a peer's subscription that could not be read.
        is_resolved = other_principals <= by_principal.keys()
        observations.append(every if is_resolved else throughout(estate, policy, UserAssignedIdentity))
        yield from (
            (principal, by_principal[principal]) for principal in sorted(other_principals & by_principal.keys())
        )


def _principal(identity: UserAssignedIdentity, observations: list[Observation]) -> str:
    try:
        return (identity.principal_id or "").lower()
    except FactDamaged as damage:
        observations.append(unreadable(damage))
        return ""


def _trusts(credential: FederatedCredential, issuer: str) -> bool:
    """Whether it trusts this issuer; True where its issuer is not in the answer."""
    return not credential.issuer or _spelt(credential.issuer) == issuer


def _spelt(url: str) -> str:
    return url.strip().rstrip("/").lower()
