"""What can be attached to the cluster: extensions, Arc, trusted services, virtual nodes, identities, memberships."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import cluster_of, network_ids_of
from hermetic.audit.cluster.resource_lookup import in_home_subscriptions
from hermetic.audit.estate.arm_ids import group_of, name_of, same_id
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.extensions import (
    ConnectedCluster,
    Extension,
    Fleet,
    FleetMember,
    FluxConfiguration,
    IdentityBinding,
    MeshMembership,
    TrustedAccess,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Namespace
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.resource import Resource
from hermetic.audit.evaluation.each_resource import each_or_none, of_cluster, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, NODE, POD, Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.reachable_networks import where_readable

R = TypeVar("R", bound=Resource)

ARC_NAMESPACE = "azure-arc"
FLEET_NAMESPACE = "fleet-system"


@check("aks-extensions")
def aks_extensions(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """Fails for every extension and every Flux configuration."""

    def extension(resource: Extension) -> Iterator[CheckResult]:
        message = f"extension {resource.name} ({resource.extension_type or 'type not named'}) is installed"
        yield fails(resource.id, "Extension", message, resource)

    def flux(resource: FluxConfiguration) -> Iterator[CheckResult]:
        yield fails(
            resource.id, "FluxConfiguration", f"Flux configuration {resource.name} pulls from a repository", resource
        )

    extensions, configured = estate.every(Extension, estate.cluster), estate.every(FluxConfiguration, estate.cluster)
    none = "no extension and no Flux configuration"
    yield from each_or_none(estate.cluster, extensions, extension, none, configured)
    yield from each_or_none(estate.cluster, configured, flux, none, extensions)


@check("aks-arc")
def aks_arc(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A connected cluster in the cluster's resource group or with its name; with source `kube`, Arc's namespace."""
    group, name = group_of(estate.cluster), name_of(estate.cluster).lower()

    def evaluate(cluster: ConnectedCluster) -> Iterator[CheckResult]:
        path = path_of(NODE, "azure arc agents", INTERNET)
        yield fails(cluster.id, "ArcConnected", "agents in the cluster dial out to Azure Arc", cluster, paths=(path,))

    every = where_readable(estate, policy, ConnectedCluster)
    ours = every.where(lambda cluster: same_id(group_of(cluster.id), group) or name_of(cluster.id).lower() == name)
    yield from each_or_none(estate.cluster, ours, evaluate, "no connected cluster of this name or group")
    if "kube" in estate.sources:
        yield _arc_in_the_cluster(estate)


def _arc_in_the_cluster(estate: Estate) -> CheckResult:
    namespaces = estate.every(Namespace, EVERYWHERE)
    if any(namespace.metadata.name == ARC_NAMESPACE for namespace in namespaces):
        message = f"namespace {ARC_NAMESPACE} is there: agents dial out"
        path = path_of(NODE, "azure arc agents", INTERNET)
        return fails(estate.cluster, "ArcNamespace", message, namespaces, paths=(path,))
    return passes(estate.cluster, "NoArcNamespace", "no namespace of Azure Arc", namespaces)


def _each(
    kind: type[R], none: str
) -> Callable[[Estate, Policy, Callable[[R], Iterable[CheckResult]]], Iterator[CheckResult]]:
    """For `check_each`: evaluate all of a kind that the cluster has; `none` is the message where it has none."""

    def evaluate_all(
        estate: Estate, _policy: Policy, evaluate: Callable[[R], Iterable[CheckResult]]
    ) -> Iterator[CheckResult]:
        yield from each_or_none(estate.cluster, estate.every(kind, estate.cluster), evaluate, none)

    return evaluate_all


@check_each("aks-trusted-access", _each(TrustedAccess, "no trusted access"))
def aks_trusted_access(_estate: Estate, _policy: Policy, binding: TrustedAccess) -> Iterator[CheckResult]:
    """Azure services that reach the API server by trusted access, bypassing the network."""
    message = f"{binding.source_resource_id or 'a service not named'} reaches the API server by trusted access"
    yield fails(binding.id, "TrustedAccess", message, binding)


@check_each("aks-virtual-nodes", of_cluster)
def aks_virtual_nodes(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Virtual nodes run pods in container instances, in another subnet with its own egress path."""
    addons = cluster.addon_profiles or {}
    if any(addon.is_on for name, addon in addons.items() if name.lower() == "aciconnectorlinux"):
        path = path_of(POD, Hop(PlaceKind.SUBNET, "container instances subnet"), INTERNET)
        message = "virtual nodes are on: pods run outside the node subnets"
        yield fails(estate.cluster, "VirtualNodes", message, cluster, paths=(path,))
    else:
        yield passes(estate.cluster, "NoVirtualNodes", "virtual nodes are off", cluster)


@check_each("aks-identity-bindings", _each(IdentityBinding, "no identity binding"))
def aks_identity_bindings(estate: Estate, policy: Policy, binding: IdentityBinding) -> Iterator[CheckResult]:
    """Managed identities whose tokens pods get through a proxy that AKS runs."""
    ours = (estate.cluster, *network_ids_of(estate))
    profile = binding.managed_identity_profile
    identity = (profile.resource_id if profile is not None else None) or ""
    path = path_of(POD, "identity proxy of AKS", f"tokens of {name_of(identity) or 'an identity'}")
    if not identity:
        yield unknown(binding.id, "IdentityNotNamed", "the binding does not name its identity", binding)
    elif policy.owns(identity, *ours):
        message = f"pods may take on {identity}; they have its rights wherever a private endpoint leads"
        yield fails(binding.id, "IdentityBound", message, binding, paths=(path,))
    else:
        message = f"pods may take on {identity}, which is in no subscription of ours"
        yield fails(binding.id, "ForeignIdentity", message, binding, paths=(path,), severity=Severity.HIGH)


@check_each("aks-mesh-member", _each(MeshMembership, "the cluster is a member of no managed mesh"))
def aks_mesh_member(estate: Estate, policy: Policy, membership: MeshMembership) -> Iterator[CheckResult]:
    """Azure-managed meshes that the cluster is a member of."""
    ours = (estate.cluster, *network_ids_of(estate))
    mesh = membership.managed_mesh_id or ""
    path = path_of(
        POD, hops.gateway("sidecar or gateway"), f"mesh {name_of(mesh) or 'without a name'}", "other clusters"
    )
    if mesh and policy.owns(mesh, *ours):
        message = f"the cluster is a member of the mesh of {mesh}"
        yield fails(membership.id, "MemberOfMesh", message, membership, paths=(path,))
    else:
        message = f"the cluster is a member of the mesh of {mesh or 'an owner not named'}, which is not ours"
        yield fails(membership.id, "MemberOfForeignMesh", message, membership, paths=(path,), severity=Severity.HIGH)


@check("aks-fleet-member")
def aks_fleet_member(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Fleets in home subscriptions with the cluster as a member; with source `kube`, Fleet's namespace."""
    fleets = in_home_subscriptions(estate, policy, Fleet)
    is_member = False
    for fleet in fleets:
        members = estate.every(FleetMember, fleet.id)
        ours = [member for member in members if _is_us(estate, member)]
        is_member = is_member or bool(ours)
        for member in ours:
            yield from whatever_is_damaged(member.id, _member(fleet, member))
        yield from whole_or_unknown(estate.cluster, f"members of fleet {fleet.name}", members)
    if is_member:
        yield from whole_or_unknown(estate.cluster, "fleets", fleets)
    else:
        message = f"{len(fleets)} fleets in the subscriptions that are read, and none has the cluster"
        yield passes(estate.cluster, "NoFleet", message, fleets, cluster_of(estate))
    if "kube" in estate.sources:
        yield _fleet_in_the_cluster(estate)


def _is_us(estate: Estate, member: FleetMember) -> bool:
    """Whether the member is this cluster; True for a member that names no cluster."""
    return not member.cluster_resource_id or same_id(member.cluster_resource_id, estate.cluster)


def _member(fleet: Fleet, member: FleetMember) -> Iterator[CheckResult]:
    if not member.cluster_resource_id:
        yield unknown(member.id, "ClusterNotNamed", "the member does not name its cluster", member, fleet)
    elif fleet.hub_profile is not None:
        message = f"the cluster is a member of fleet {fleet.name}, whose hub puts objects into it"
        path = path_of(hops.peer(f"hub of fleet {fleet.name}"), "fleet agent", "cluster")
        yield fails(member.id, "MemberOfHub", message, member, fleet, paths=(path,), severity=Severity.HIGH)
    else:
        message = (
            f"the cluster is a member of fleet {fleet.name}: it is upgraded from there, and may be joined to others"
        )
        yield fails(member.id, "MemberOfFleet", message, member, fleet)


def _fleet_in_the_cluster(estate: Estate) -> CheckResult:
    namespaces = estate.every(Namespace, EVERYWHERE)
    if any(namespace.metadata.name == FLEET_NAMESPACE for namespace in namespaces):
        message = f"namespace {FLEET_NAMESPACE} is there: the agent of a fleet's hub puts objects into the cluster"
        path = path_of(hops.peer("hub of a fleet"), "fleet agent", "cluster")
        return fails(estate.cluster, "FleetNamespace", message, namespaces, paths=(path,), severity=Severity.HIGH)
    return passes(estate.cluster, "NoFleetNamespace", "no namespace of a fleet's agent", namespaces)
