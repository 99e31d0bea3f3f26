"""Every Kubernetes kind that Hermetic reads or writes, with its REST coordinates, so that none needs discovery."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: `group` is "" for the core group; `plural` is the resource name in URLs and RBAC rules.

    `part` names a subset of the objects of a kind that is listed, watched and stored separately.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    part: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str = "") -> str:
        """The URL path of the collection, or of one object when a name is given."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


GROUP = "hermetic.dev"
VERSION = "v1alpha1"

MODEL_DEPLOYMENT = Kind(GROUP, VERSION, "ModelDeployment", "modeldeployments")
EGRESS_AUDIT = Kind(GROUP, VERSION, "EgressAudit", "egressaudits", namespaced=False)
THE_EGRESS_AUDIT = "cluster"
"""Name of the one EgressAudit of a cluster."""
EGRESS_ATTESTATION = Kind(GROUP, VERSION, "EgressAttestation", "egressattestations", namespaced=False)

SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
SERVICE = Kind("", "v1", "Service", "services")
PERSISTENT_VOLUME_CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
PERSISTENT_VOLUME = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets")
JOB = Kind("batch", "v1", "Job", "jobs")
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
POD_DISRUPTION_BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
HORIZONTAL_POD_AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")

POD = Kind("", "v1", "Pod", "pods")
# Pods without the label by which the others are watched; among them pods of ours whose label was removed.
UNLABELLED_POD = Kind("", "v1", "Pod", "pods", part="unlabelled")
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
CORE_EVENT = Kind("", "v1", "Event", "events")
EVENT = Kind("events.k8s.io", "v1", "Event", "events")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")

# Objects of any owner that can lead traffic to a model's pods. Routes of the Gateway API are optional, in any of the
# versions that a cluster may serve.
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
INGRESS = Kind("networking.k8s.io", "v1", "Ingress", "ingresses")
GATEWAY = Kind("gateway.networking.k8s.io", "v1", "Gateway", "gateways")
HTTP_ROUTE = Kind("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
ROUTES = (
    HTTP_ROUTE,
    *(Kind("gateway.networking.k8s.io", version, "GRPCRoute", "grpcroutes") for version in ("v1alpha2", "v1")),
    *(
        Kind("gateway.networking.k8s.io", version, "TLSRoute", "tlsroutes")
        for version in ("v1alpha2", "v1alpha3", "v1")
    ),
    *(Kind("gateway.networking.k8s.io", version, "TCPRoute", "tcproutes") for version in ("v1alpha2", "v1")),
    *(Kind("gateway.networking.k8s.io", version, "UDPRoute", "udproutes") for version in ("v1alpha2", "v1")),
)
# Optional: of the OpenReports project, where the cluster has it.
CLUSTER_REPORT = Kind("openreports.io", "v1alpha1", "ClusterReport", "clusterreports", namespaced=False)

BY_KIND = {
    kind.kind: kind
    for kind in (
        MODEL_DEPLOYMENT,
        EGRESS_AUDIT,
        EGRESS_ATTESTATION,
        SERVICE_ACCOUNT,
        NETWORK_POLICY,
        PERSISTENT_VOLUME,
        PERSISTENT_VOLUME_CLAIM,
        POD_DISRUPTION_BUDGET,
        HORIZONTAL_POD_AUTOSCALER,
        SERVICE,
        DEPLOYMENT,
        STATEFUL_SET,
        JOB,
        POD,
        NODE,
        CORE_EVENT,
        LEASE,
        CLUSTER_REPORT,
        ENDPOINT_SLICE,
        INGRESS,
        GATEWAY,
        *ROUTES,
    )
}
# For kinds that have several versions.
BY_API_VERSION = {(kind.api_version, kind.kind): kind for kind in (SERVICE, ENDPOINT_SLICE, INGRESS, GATEWAY, *ROUTES)}
