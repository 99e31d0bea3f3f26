"""The custom kinds that AKS and its add-ons bring with them: served from the first day, mostly without an object.

Each project's own definitions name them: cilium/cilium pkg/k8s/apis/cilium.io/client/crds (1.17), projectcalico/calico
manifests (3.30) and tigera/operator pkg/crds/operator, Azure/azure-container-networking crd, the charts of the add-ons.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.textbook.objects import Manifest, definition

Kinds = Mapping[str, tuple[str, ...]]

EVERYWHERE: Kinds = {"snapshot.storage.k8s.io/v1": ("VolumeSnapshot", "VolumeSnapshotClass", "VolumeSnapshotContent")}
OF_PLUGINS: Mapping[str, Kinds] = {
    "cilium": {
        "cilium.io/v2": (
            "CiliumClusterwideEnvoyConfig", "CiliumClusterwideNetworkPolicy", "CiliumEgressGatewayPolicy",
            "CiliumEndpoint", "CiliumEnvoyConfig", "CiliumExternalWorkload", "CiliumIdentity",
            "CiliumLocalRedirectPolicy", "CiliumNetworkPolicy", "CiliumNode", "CiliumNodeConfig",
            "CiliumBGPAdvertisement", "CiliumBGPClusterConfig", "CiliumBGPNodeConfig", "CiliumBGPNodeConfigOverride",
            "CiliumBGPPeerConfig",
        ),
        "cilium.io/v2alpha1": (
            "CiliumCIDRGroup", "CiliumEndpointSlice", "CiliumGatewayClassConfig", "CiliumL2AnnouncementPolicy",
            "CiliumLoadBalancerIPPool", "CiliumPodIPPool", "CiliumBGPPeeringPolicy",
        ),
        "acn.azure.com/v1alpha": ("ClusterSubnetState", "NodeNetworkConfig"),
        "acn.azure.com/v1alpha1": ("OverlayExtensionConfig",),
    },
    "npm": {"acn.azure.com/v1alpha": ("ClusterSubnetState", "NodeNetworkConfig")},
    "calico": {
        "crd.projectcalico.org/v1": (
            "BGPConfiguration", "BGPFilter", "BGPPeer", "BlockAffinity", "CalicoNodeStatus", "ClusterInformation",
            "FelixConfiguration", "GlobalNetworkPolicy", "GlobalNetworkSet", "HostEndpoint", "IPAMBlock", "IPAMConfig",
            "IPAMHandle", "IPPool", "IPReservation", "KubeControllersConfiguration", "NetworkPolicy", "NetworkSet",
            "StagedGlobalNetworkPolicy", "StagedKubernetesNetworkPolicy", "StagedNetworkPolicy", "Tier",
        ),
        "operator.tigera.io/v1": (
            "APIServer", "GatewayAPI", "Goldmane", "ImageSet", "Installation", "ManagementClusterConnection",
            "TigeraStatus", "Whisker",
        ),
        "policy.networking.k8s.io/v1alpha1": ("AdminNetworkPolicy", "BaselineAdminNetworkPolicy"),
    },
}  # fmt: skip
MONITOR: Kinds = {"azmonitoring.coreos.com/v1": ("PodMonitor", "ServiceMonitor")}
GATEKEEPER: Kinds = {
    "config.gatekeeper.sh/v1alpha1": ("Config",),
    "constraints.gatekeeper.sh/v1beta1": ("K8sAzureV2BlockDefault",),
    "externaldata.gatekeeper.sh/v1beta1": ("Provider",),
    "mutations.gatekeeper.sh/v1": ("Assign", "AssignMetadata", "ModifySet"),
    "status.gatekeeper.sh/v1beta1": ("ConstraintPodStatus", "ConstraintTemplatePodStatus"),
    "templates.gatekeeper.sh/v1": ("ConstraintTemplate",),
}
ERASER: Kinds = {"eraser.sh/v1": ("ImageJob", "ImageList")}
SECRETS_STORE: Kinds = {"secrets-store.csi.x-k8s.io/v1": ("SecretProviderClass", "SecretProviderClassPodStatus")}
SCALERS: Kinds = {
    "keda.sh/v1alpha1": ("ClusterTriggerAuthentication", "ScaledJob", "ScaledObject", "TriggerAuthentication"),
    "eventing.keda.sh/v1alpha1": ("CloudEventSource",),
    "autoscaling.k8s.io/v1": ("VerticalPodAutoscaler", "VerticalPodAutoscalerCheckpoint"),
    "karpenter.sh/v1": ("NodeClaim", "NodePool"),
    "karpenter.azure.com/v1beta1": ("AKSNodeClass",),
}
NETWORK_SECURITY: Kinds = {"retina.sh/v1alpha1": ("Capture", "MetricsConfiguration", "TracesConfiguration")}
# istio/istio manifests/charts/base/files/crd-all.gen.yaml
MESH: Kinds = {
    "networking.istio.io/v1": ("DestinationRule", "Gateway", "ServiceEntry", "Sidecar", "VirtualService",
                               "WorkloadEntry", "WorkloadGroup"),
    "networking.istio.io/v1alpha3": ("EnvoyFilter",),
    "networking.istio.io/v1beta1": ("ProxyConfig",),
    "security.istio.io/v1": ("AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"),
    "telemetry.istio.io/v1": ("Telemetry",),
    "extensions.istio.io/v1alpha1": ("WasmPlugin",),
}  # fmt: skip
GPU_OPERATOR: Kinds = {
    "nvidia.com/v1": ("ClusterPolicy",),
    "nvidia.com/v1alpha1": ("NVIDIADriver",),
    "nfd.k8s-sigs.io/v1alpha1": ("NodeFeature", "NodeFeatureGroup", "NodeFeatureRule"),
}
FLUX: Kinds = {
    "source.toolkit.fluxcd.io/v1": ("Bucket", "ExternalArtifact", "GitRepository", "HelmChart", "HelmRepository",
                                    "OCIRepository"),
    "kustomize.toolkit.fluxcd.io/v1": ("Kustomization",),
    "helm.toolkit.fluxcd.io/v2": ("HelmRelease",),
    "notification.toolkit.fluxcd.io/v1": ("Receiver",),
    "notification.toolkit.fluxcd.io/v1beta3": ("Alert", "Provider"),
}  # fmt: skip


def definitions(*some: Kinds) -> list[Manifest]:
    """The CustomResourceDefinitions of these kinds."""
    return [definition(version, kind) for kinds in some for version, named in sorted(kinds.items()) for kind in named]
