"""Resources that extend a cluster: extensions, Flux, Azure Arc, trusted access, identities, fleets."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import (
    CONNECTED_CLUSTERS,
    CONTAINER_SERVICE,
    FLEETS,
    KUBERNETES_CONFIGURATION,
    MESH_MEMBERSHIPS,
)
from hermetic.audit.estate.resource import Part, Resource


class Extension(Resource):
    """Microsoft.KubernetesConfiguration/extensions."""

    TYPE: ClassVar[str] = "Microsoft.KubernetesConfiguration/extensions"
    API_VERSION: ClassVar[str] = KUBERNETES_CONFIGURATION

    extension_type: str | None = None


class FluxConfiguration(Resource):
    """Microsoft.KubernetesConfiguration/fluxConfigurations."""

    TYPE: ClassVar[str] = "Microsoft.KubernetesConfiguration/fluxConfigurations"
    API_VERSION: ClassVar[str] = KUBERNETES_CONFIGURATION


class ConnectedCluster(Resource):
    """Microsoft.Kubernetes/connectedClusters: a cluster with an outbound connection to Azure Arc."""

    TYPE: ClassVar[str] = "Microsoft.Kubernetes/connectedClusters"
    API_VERSION: ClassVar[str] = CONNECTED_CLUSTERS


class TrustedAccess(Resource):
    """Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings"
    API_VERSION: ClassVar[str] = CONTAINER_SERVICE

    source_resource_id: str | None = None


class BoundIdentity(Part):
    """The managed identity that a binding gives to pods."""

    resource_id: str | None = None


class IdentityBinding(Resource):
    """Microsoft.ContainerService/managedClusters/identityBindings."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/managedClusters/identityBindings"
    API_VERSION: ClassVar[str] = CONTAINER_SERVICE

    managed_identity_profile: BoundIdentity | None = None


class MeshMembership(Resource):
    """Microsoft.ContainerService/managedClusters/meshMemberships: the cluster in a mesh that Azure manages."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/managedClusters/meshMemberships"
    API_VERSION: ClassVar[str] = MESH_MEMBERSHIPS

    managed_mesh_id: str | None = None


class Fleet(Resource):
    """Microsoft.ContainerService/fleets; with a hub profile, objects of the hub are propagated to its members."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/fleets"
    API_VERSION: ClassVar[str] = FLEETS

    hub_profile: Part | None = None


class FleetMember(Resource):
    """Microsoft.ContainerService/fleets/members."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/fleets/members"
    API_VERSION: ClassVar[str] = FLEETS

    cluster_resource_id: str | None = None
