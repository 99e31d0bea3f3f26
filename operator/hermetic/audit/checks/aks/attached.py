"""What can be attached to the cluster: extensions, Arc, trusted services, virtual nodes."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster_scope import of_cluster
from hermetic.audit.estate.arm_ids import group_of, name_of, same_id
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.aks_profiles import AddOn
from hermetic.audit.estate.azure.extensions import ConnectedCluster, Extension, FluxConfiguration, TrustedAccess
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Namespace
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.evaluation import Judgement, fails, passes
from hermetic.audit.hops import INTERNET, NODE, POD, Hop, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_or_none, throughout
from hermetic.audit.topology import PlaceKind

ARC_NAMESPACE = "azure-arc"


@check("aks-extensions")
def aks_extensions(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Fails for every extension and every Flux configuration."""

    def extension(one: Extension) -> Iterator[Judgement]:
        words = f"extension {one.name} ({one.extension_type or 'type not named'}) is installed"
        yield fails(one.id, "Extension", words, one)

    def flux(one: FluxConfiguration) -> Iterator[Judgement]:
        yield fails(one.id, "FluxConfiguration", f"Flux configuration {one.name} pulls from a repository", one)

    found, configured = estate.every(Extension, estate.cluster), estate.every(FluxConfiguration, estate.cluster)
    none = "no extension and no Flux configuration"
    yield from each_or_none(estate.cluster, found, extension, none, configured)
    yield from each_or_none(estate.cluster, configured, flux, none, found)


@check("aks-arc")
def aks_arc(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """A connected cluster in the cluster's resource group or with its name; with source `kube`, Arc's namespace."""
    group, name = group_of(estate.cluster), name_of(estate.cluster).lower()

    def judge(one: ConnectedCluster) -> Iterator[Judgement]:
        path = path_of(NODE, "azure arc agents", INTERNET)
        yield fails(one.id, "ArcConnected", "agents in the cluster dial out to Azure Arc", one, paths=(path,))

    every = throughout(estate, policy, ConnectedCluster)
    ours = every.where(lambda one: same_id(group_of(one.id), group) or name_of(one.id).lower() == name)
    yield from each_or_none(estate.cluster, ours, judge, "no connected cluster of this name or group")
    if "kube" in estate.sources:
        yield _in_the_cluster(estate)


def _in_the_cluster(estate: Estate) -> Judgement:
    namespaces = estate.every(Namespace, EVERYWHERE)
    if any(one.metadata.name == ARC_NAMESPACE for one in namespaces):
        words = f"namespace {ARC_NAMESPACE} is there: agents dial out"
        path = path_of(NODE, "azure arc agents", INTERNET)
        return fails(estate.cluster, "ArcNamespace", words, namespaces, paths=(path,))
    return passes(estate.cluster, "NoArcNamespace", "no namespace of Azure Arc", namespaces)


@check("aks-trusted-access")
def aks_trusted_access(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Azure services that reach the API server by trusted access, bypassing the network."""

    def judge(one: TrustedAccess) -> Iterator[Judgement]:
        words = f"{one.source_resource_id or 'a service not named'} reaches the API server by trusted access"
        yield fails(one.id, "TrustedAccess", words, one)

    bindings = estate.every(TrustedAccess, estate.cluster)
    yield from each_or_none(estate.cluster, bindings, judge, "no trusted access")


@check_each("aks-virtual-nodes", of_cluster)
def aks_virtual_nodes(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[Judgement]:
    """Virtual nodes run pods in container instances, in another subnet with its own way out."""
    addons = cluster.addon_profiles or {}
    addon = next((one for name, one in addons.items() if name.lower() == "aciconnectorlinux"), AddOn())
    if addon.enabled:
        path = path_of(POD, Hop(PlaceKind.SUBNET, "container instances subnet"), INTERNET)
        words = "virtual nodes are on: pods run outside the node subnets"
        yield fails(estate.cluster, "VirtualNodes", words, cluster, paths=(path,))
    else:
        yield passes(estate.cluster, "NoVirtualNodes", "virtual nodes are off", cluster)
