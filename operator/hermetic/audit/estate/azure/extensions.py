"""Resources that extend a cluster: extensions, Flux, Azure Arc, trusted access, identities, fleets."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import (
    CONNECTED_CLUSTERS,
    CONTAINER_SERVICE,
    FLEETS,
    KUBERNETES_CONFIGURATION,
    MESH_MEMBERSHIPS,
)
from hermetic.audit.estate.resource import Part, Resource, arm


@arm("Microsoft.KubernetesConfiguration/extensions", KUBERNETES_CONFIGURATION)
class Extension(Resource):
    extension_type: str | None = None


@arm("Microsoft.KubernetesConfiguration/fluxConfigurations", KUBERNETES_CONFIGURATION)
class FluxConfiguration(Resource):
    pass


@arm("Microsoft.Kubernetes/connectedClusters", CONNECTED_CLUSTERS)
class ConnectedCluster(Resource):
    """A cluster with an outbound connection to Azure Arc."""


@arm("Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings", CONTAINER_SERVICE)
class TrustedAccess(Resource):
    source_resource_id: str | None = None


class BoundIdentity(Part):
    """The managed identity that a binding gives to pods."""

    resource_id: str | None = None


@arm("Microsoft.ContainerService/managedClusters/identityBindings", CONTAINER_SERVICE)
class IdentityBinding(Resource):
    managed_identity_profile: BoundIdentity | None = None


@arm("Microsoft.ContainerService/managedClusters/meshMemberships", MESH_MEMBERSHIPS)
class MeshMembership(Resource):
    """The cluster in a mesh that Azure manages."""

    managed_mesh_id: str | None = None


@arm("Microsoft.ContainerService/fleets", FLEETS)
class Fleet(Resource):
    """With a hub profile, objects of the hub are propagated to its members."""

    hub_profile: Part | None = None


@arm("Microsoft.ContainerService/fleets/members", FLEETS)
class FleetMember(Resource):
    cluster_resource_id: str | None = None
