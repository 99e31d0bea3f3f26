"""Known API groups and their effect on a packet's way out, by their projects' own documents.

A kind can let packets out where an object of it decides by itself where traffic of pods or nodes goes, or what may
leave: policies, gateways, routes, meshes, tunnels, networks of pods. A kind whose objects only create other objects
that the audit reads (pods, Services, policies) cannot.
"""

from __future__ import annotations

from collections.abc import Mapping

# Served by the API server itself, or by its aggregated servers, on every cluster.
_OF_KUBERNETES = (
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
    "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io",
    "custom.metrics.k8s.io", "discovery.k8s.io", "events.k8s.io", "external.metrics.k8s.io", "extensions",
    "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "metrics.k8s.io", "node.k8s.io", "policy",
    "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
)  # fmt: skip

# Add-ons of AKS and common operators. Their objects configure pods, which the audit reads as pods: none of these kinds
# can change the way out of another pod's packets.
_OF_OPERATORS = (
    # AKS and Azure
    "aadpodidentity.k8s.io", "approuting.kubernetes.azure.com", "azmonitoring.coreos.com",
    "clusterconfig.azure.com", "config.gatekeeper.sh", "constraints.gatekeeper.sh", "eraser.sh",
    "expansion.gatekeeper.sh", "externaldata.gatekeeper.sh", "karpenter.azure.com", "karpenter.sh", "kaito.sh",
    "mutations.gatekeeper.sh", "retina.sh", "secrets-store.csi.x-k8s.io", "status.gatekeeper.sh",
    "syncset.gatekeeper.sh", "templates.gatekeeper.sh", "connection.gatekeeper.sh",
    # Kubernetes SIGs
    "autoscaling.k8s.io", "autoscaling.x-k8s.io", "groupsnapshot.storage.k8s.io", "jobset.x-k8s.io",
    "kueue.x-k8s.io", "visibility.kueue.x-k8s.io", "leaderworkerset.x-k8s.io", "nfd.k8s-sigs.io",
    "node-feature-discovery.k8s-sigs.io", "scheduling.x-k8s.io", "snapshot.storage.k8s.io", "wgpolicyk8s.io",
    "populator.storage.k8s.io", "inference.networking.k8s.io", "inference.networking.x-k8s.io",
    # GPUs
    "nvidia.com", "resource.nvidia.com", "configuration.net.nvidia.com", "mellanox.com",
    # delivery, metrics, certificates, secrets, policies on objects
    "argoproj.io", "cert-manager.io", "acme.cert-manager.io", "external-secrets.io", "generators.external-secrets.io",
    "fluxcd.controlplane.io", "helm.toolkit.fluxcd.io", "image.toolkit.fluxcd.io", "keda.sh", "eventing.keda.sh",
    "kustomize.toolkit.fluxcd.io", "kyverno.io", "policies.kyverno.io", "reports.kyverno.io", "monitoring.coreos.com",
    "notification.toolkit.fluxcd.io", "openreports.io", "source.extensions.fluxcd.io", "source.toolkit.fluxcd.io",
    "trust.cert-manager.io", "velero.io", "aquasecurity.github.io", "openebs.io", "acstor.io",
    "containerstorage.azure.com",
    # serving and batch
    "ray.io", "kubeflow.org", "serving.kserve.io", "sparkoperator.k8s.io", "batch.volcano.sh", "scheduling.volcano.sh",
    "hermetic.dev",
)  # fmt: skip

HARMLESS_GROUPS = frozenset((*_OF_KUBERNETES, *_OF_OPERATORS))

# In groups that decide where packets go, the kinds that do not, because
# they select or describe (identities, endpoints, nodes), lead in and not out, or lead to what the audit reads.
HARMLESS_KINDS: Mapping[str, frozenset[str]] = {
    "networking.k8s.io": frozenset({"IPAddress", "ServiceCIDR"}),
    "gateway.networking.k8s.io": frozenset(
        {"ReferenceGrant", "BackendTLSPolicy", "ListenerSet"}
    ),
    "gateway.networking.x-k8s.io": frozenset({"XBackendTrafficPolicy", "XListenerSet"}),
    "cilium.io": frozenset(
        {"CiliumEndpoint", "CiliumEndpointSlice", "CiliumIdentity", "CiliumNode", "CiliumNodeConfig", "CiliumPodIPPool",
         "CiliumL2AnnouncementPolicy", "CiliumLoadBalancerIPPool", "CiliumGatewayClassConfig", "CiliumCIDRGroup",
         "CiliumBGPAdvertisement", "CiliumBGPClusterConfig", "CiliumBGPNodeConfig", "CiliumBGPNodeConfigOverride",
         "CiliumBGPPeerConfig", "CiliumBGPPeeringPolicy"}
    ),
    "crd.projectcalico.org": frozenset(
        {"BlockAffinity", "CalicoNodeStatus", "ClusterInformation", "IPAMBlock", "IPAMConfig", "IPAMHandle",
         "IPReservation", "KubeControllersConfiguration", "StagedGlobalNetworkPolicy",
         "StagedKubernetesNetworkPolicy", "StagedNetworkPolicy", "Tier", "FelixConfiguration", "BGPConfiguration",
         "BGPFilter", "IPPool", "HostEndpoint"}
    ),
    "operator.tigera.io": frozenset(
        {"APIServer", "Goldmane", "ImageSet", "Installation", "TigeraStatus", "Whisker", "GatewayAPI",
         "ManagementCluster", "ManagementClusterConnection", "Istio"}
    ),
    "egressgateway.kubernetes.azure.com": frozenset(
        {"GatewayLBConfiguration", "GatewayStatus", "GatewayVMConfiguration", "PodEndpoint"}
    ),
    "acn.azure.com": frozenset({"ClusterSubnetState", "NodeNetworkConfig", "NodeInfo", "OverlayExtensionConfig"}),
    "multitenancy.acn.azure.com": frozenset({"NodeInfo", "MultitenantPodNetworkConfig", "PodNetworkInstance"}),
    "networking.istio.io": frozenset({"DestinationRule", "ProxyConfig", "WorkloadGroup"}),
    "security.istio.io": frozenset({"AuthorizationPolicy", "PeerAuthentication"}),
    "telemetry.istio.io": frozenset({"Telemetry"}),
    "extensions.istio.io": frozenset(),
}  # fmt: skip

# Groups with kinds that decide where packets go or what may leave: an unread kind is Unknown with severity high.
EGRESS_GROUPS = frozenset(
    {
        *HARMLESS_KINDS,
        # policies
        "policy.networking.k8s.io", "projectcalico.org", "policy.linkerd.io", "kuma.io", "network.openshift.io",
        "k8s.ovn.org", "kubeovn.io", "crd.antrea.io", "controlplane.antrea.io", "security.antrea.io",
        "isovalent.com", "network.alibabacloud.com", "vpcresources.k8s.aws", "networking.k8s.aws",
        # gateways, proxies, tunnels
        "gateway.envoyproxy.io", "gateway.kgateway.dev", "gateway.solo.io", "gloo.solo.io", "consul.hashicorp.com",
        "egressgateway.spidernet.io", "getambassador.io", "k8s.ngrok.com", "ingress.k8s.ngrok.com",
        "ngrok.k8s.ngrok.com", "linkerd.io", "tailscale.com", "traefik.io", "traefik.containo.us", "skupper.io",
        "submariner.io", "networking.cfargotunnel.com", "netbird.io", "wgpolicy.io", "wireguard.kilo.squat.ai",
        "kilo.squat.ai", "liqo.io", "net.liqo.io", "networking.liqo.io", "kubeedge.io", "networking.aks.azure.com",
        # networks of pods, other clusters
        "k8s.cni.cncf.io", "whereabouts.cni.cncf.io", "sriovnetwork.openshift.io",
        "multicluster.x-k8s.io", "multicluster.linkerd.io", "networking.fleet.azure.com",
        "networking.gke.io", "net.gke.io", "spiderpool.spidernet.io",
    }
)  # fmt: skip
