"""Every kind that can be queried, and the questions of the cluster's checks: what a collector needs to read."""

from __future__ import annotations

from hermetic.audit.estate.kubernetes import alternative_paths, mesh
from hermetic.audit.estate.kubernetes.admin_policies import (
    AdminNetworkPolicy,
    BaselineAdminNetworkPolicy,
    ClusterNetworkPolicy,
)
from hermetic.audit.estate.kubernetes.calls import (
    ApiService,
    ConfigMap,
    CsiDriver,
    CustomResourceDefinition,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
)
from hermetic.audit.estate.kubernetes.nodes import (
    AksNodeClass,
    Namespace,
    Node,
    StaticGatewayConfiguration,
)
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE, KubernetesObject
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import (
    CalicoGlobalNetworkPolicy,
    CalicoGlobalNetworkSet,
    CalicoNetworkPolicy,
    CalicoNetworkSet,
    CiliumClusterwideNetworkPolicy,
    CiliumNetworkPolicy,
    NetworkPolicy,
)
from hermetic.audit.estate.kubernetes.routes import ROUTES
from hermetic.audit.estate.kubernetes.services import (
    EndpointSlice,
    Gateway,
    GatewayClass,
    Ingress,
    IngressClass,
    Service,
)
from hermetic.audit.estate.kubernetes.storage import PersistentVolume, StorageClass, VolumeSnapshotClass
from hermetic.audit.estate.kubernetes.templates import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from hermetic.audit.estate.questions import Question

COREDNS, COREDNS_CUSTOM = "kube-system/coredns", "kube-system/coredns-custom"
NODE_LOCAL_DNS = "kube-system/node-local-dns"

KINDS: tuple[type[KubernetesObject], ...] = (
    Service,
    EndpointSlice,
    Ingress,
    IngressClass,
    Gateway,
    GatewayClass,
    *ROUTES,
    NetworkPolicy,
    CiliumNetworkPolicy,
    CiliumClusterwideNetworkPolicy,
    CalicoNetworkPolicy,
    CalicoGlobalNetworkPolicy,
    CalicoNetworkSet,
    CalicoGlobalNetworkSet,
    Pod,
    Node,
    Namespace,
    DaemonSet,
    AksNodeClass,
    StaticGatewayConfiguration,
    StorageClass,
    PersistentVolume,
    CsiDriver,
    ValidatingWebhookConfiguration,
    MutatingWebhookConfiguration,
    CustomResourceDefinition,
    ApiService,
    ConfigMap,
    AdminNetworkPolicy,
    BaselineAdminNetworkPolicy,
    ClusterNetworkPolicy,
    alternative_paths.CiliumEgressGatewayPolicy,
    alternative_paths.CiliumLocalRedirectPolicy,
    alternative_paths.CiliumEnvoyConfig,
    alternative_paths.CiliumClusterwideEnvoyConfig,
    alternative_paths.CiliumExternalWorkload,
    alternative_paths.CalicoEgressGatewayPolicy,
    alternative_paths.CalicoExternalNetwork,
    alternative_paths.CalicoBgpPeer,
    alternative_paths.TigeraEgressGateway,
    alternative_paths.NetworkAttachmentDefinition,
    alternative_paths.PodNetwork,
    alternative_paths.EnvoyFilter,
    mesh.ServiceEntry,
    mesh.WorkloadEntry,
    mesh.MeshGateway,
    mesh.Sidecar,
    mesh.VirtualService,
    mesh.RequestAuthentication,
    mesh.WasmPlugin,
    VolumeSnapshotClass,
    Deployment,
    StatefulSet,
    ReplicaSet,
    ReplicationController,
    Job,
    CronJob,
)
BY_TYPE = {kind.TYPE.lower(): kind for kind in KINDS}

# Queried only together with Azure, by checks that compare the two.
BESIDE_AZURE = frozenset({Namespace, AksNodeClass})

# The questions of checks that need the cluster alone. The ConfigMaps of the resolvers have lists of their own: a caller
# who may not list all ConfigMaps may still read those.
ASKED: tuple[tuple[type[KubernetesObject], str], ...] = (
    *((kind, EVERYWHERE) for kind in KINDS if kind not in BESIDE_AZURE),
    (ConfigMap, COREDNS),
    (ConfigMap, COREDNS_CUSTOM),
    (ConfigMap, NODE_LOCAL_DNS),
)


def question(kind: type[KubernetesObject], scope: str) -> Question:
    """The question for all objects of a kind in a scope."""
    return Question(kind.SOURCE, "list", kind.TYPE, scope, kind.API_VERSION)
