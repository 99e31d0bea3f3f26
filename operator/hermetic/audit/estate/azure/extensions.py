"""What is attached to a cluster from outside: extensions, Flux, Azure Arc, trusted services."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import CONNECTED_CLUSTERS, CONTAINER_SERVICE, KUBERNETES_CONFIGURATION
from hermetic.audit.estate.resource import Resource


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
    """Microsoft.Kubernetes/connectedClusters: a cluster that dials out to Azure Arc."""

    TYPE: ClassVar[str] = "Microsoft.Kubernetes/connectedClusters"
    API_VERSION: ClassVar[str] = CONNECTED_CLUSTERS


class TrustedAccess(Resource):
    """Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings"
    API_VERSION: ClassVar[str] = CONTAINER_SERVICE

    source_resource_id: str | None = None
