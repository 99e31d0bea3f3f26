"""Kinds that the API server serves, that can let packets out, and that the audit does not read.

A kind can let packets out where an object of it decides by itself where traffic of pods or nodes goes, or what may
leave: policies, gateways, routes, meshes, tunnels, networks of pods. A kind whose objects only create other objects
that the audit reads (pods, Services, policies) cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import KINDS
from hermetic.audit.estate.kubernetes.calls import ApiService
from hermetic.audit.estate.kubernetes.served import SERVED, ServedGroup, ServedKind
from hermetic.audit.estate.observation import Listing, unreadable
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.evaluation.each_object import counted, settled
from hermetic.audit.evaluation.results import CheckResult, unknown
from hermetic.audit.model.findings import Severity
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

# Served by the API server itself, or by its aggregated servers, on every cluster.
_OF_KUBERNETES = (
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
    "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io",
    "custom.metrics.k8s.io", "discovery.k8s.io", "events.k8s.io", "external.metrics.k8s.io", "extensions",
    "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "metrics.k8s.io", "node.k8s.io", "policy",
    "rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
)  # fmt: skip

# Add-ons of AKS and common operators. Their objects configure pods, which the audit reads as pods, or name what a
# controller calls whose namespace has to have default deny (k8s-default-deny-egress leaves out pods of AKS alone): none
# of these kinds can change the egress path of another pod's packets.
_OF_OPERATORS = (
    # AKS and Azure
    "aadpodidentity.k8s.io", "approuting.kubernetes.azure.com",
    "clusterconfig.azure.com", "config.gatekeeper.sh", "constraints.gatekeeper.sh", "eraser.sh",
    "expansion.gatekeeper.sh", "karpenter.azure.com", "karpenter.sh", "kaito.sh",
    "mutations.gatekeeper.sh", "status.gatekeeper.sh",
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
    "fluxcd.controlplane.io", "helm.toolkit.fluxcd.io", "image.toolkit.fluxcd.io",
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
        {"CiliumEndpoint", "CiliumEndpointSlice", "CiliumIdentity", "CiliumNode", "CiliumPodIPPool",
         "CiliumL2AnnouncementPolicy", "CiliumLoadBalancerIPPool", "CiliumGatewayClassConfig", "CiliumCIDRGroup",
         "CiliumBGPAdvertisement", "CiliumBGPClusterConfig", "CiliumBGPNodeConfig", "CiliumBGPNodeConfigOverride",
         "CiliumBGPPeerConfig", "CiliumBGPPeeringPolicy"}
    ),
    "crd.projectcalico.org": frozenset(
        {"BlockAffinity", "CalicoNodeStatus", "ClusterInformation", "IPAMBlock", "IPAMConfig", "IPAMHandle",
         "IPReservation", "KubeControllersConfiguration", "StagedGlobalNetworkPolicy",
         "StagedKubernetesNetworkPolicy", "StagedNetworkPolicy", "Tier", "BGPConfiguration",
         "BGPFilter", "IPPool"}
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
    "networking.istio.io": frozenset({"WorkloadGroup"}),
    "security.istio.io": frozenset({"AuthorizationPolicy", "PeerAuthentication"}),
    "telemetry.istio.io": frozenset({"Telemetry"}),
    "resource.k8s.io": frozenset({"DeviceTaintRule"}),
    "keda.sh": frozenset(),
    "eventing.keda.sh": frozenset(),
    # The metrics add-on, the secrets store, Gatekeeper and Retina run where no default deny is needed.
    "azmonitoring.coreos.com": frozenset(),
    "secrets-store.csi.x-k8s.io": frozenset({"SecretProviderClassPodStatus"}),
    "externaldata.gatekeeper.sh": frozenset(),
    "retina.sh": frozenset({"MetricsConfiguration", "MetricsModule", "RetinaEndpoint"}),
    "extensions.istio.io": frozenset(),
    # They lead to a Backend of Envoy Gateway, or to a pool of pods (envoyproxy/ai-gateway, api/v1beta1).
    "aigateway.envoyproxy.io": frozenset({"AIGatewayRoute", "AIServiceBackend"}),
    "gateway.envoyproxy.io": frozenset(),
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
        "gateway.kgateway.dev", "gateway.solo.io", "gloo.solo.io", "consul.hashicorp.com",
        # A gateway to model providers: its backends name hosts outside.
        "agentgateway.dev",
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


# The API group in which Calico's aggregated server shows the objects of crd.projectcalico.org. Without that server, it
# has objects of its own, from CustomResourceDefinitions: tigera/docs, calico/operations/crd-migration.mdx.
_SHOWN_TWICE = {"projectcalico.org": "crd.projectcalico.org"}
_READ = frozenset((kind.TYPE.split("/")[0], kind.KIND) for kind in KINDS if kind.TYPE.count("/") == 2)
SHOWN = 6


@check("k8s-unread-kinds")
def k8s_unread_kinds(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every kind is read, is known to let no packet out, or is listed in the policy."""
    groups = _never_empty(estate.every(ServedGroup, SERVED.target))
    harmless = frozenset(kind.lower() for kind in policy.harmless_kinds)
    again = _shown_again(estate, frozenset(group.id for group in groups))
    results = [result for group in groups if group.id not in again for result in _results(group, harmless)]
    number = sum(len(group.kinds) for group in groups)
    fine = f"{counted(number, 'kind')} in {counted(len(groups), 'API group')}: each that can let packets out is read"
    yield from settled(estate, results, "KindsRead", fine, groups)


def _shown_again(estate: Estate, names: frozenset[str]) -> frozenset[str]:
    """The groups that an aggregated server serves out of another group, which is served too."""
    return frozenset(name for name, of in _SHOWN_TWICE.items() if {name, of} <= names and _is_aggregated(estate, name))


def _is_aggregated(estate: Estate, group: str) -> bool:
    """Whether a Service of the cluster serves every version of a group; an APIService is named VERSION.GROUP."""
    listing = everywhere(estate, ApiService)
    of_group = [api_service for api_service in listing if api_service.metadata.name.partition(".")[2] == group]
    try:
        return bool(of_group) and all(api_service.spec.service is not None for api_service in of_group)
    except FactDamaged:
        return False


def _results(group: ServedGroup, harmless: frozenset[str]) -> Iterator[CheckResult]:
    name = group.id
    if name in HARMLESS_GROUPS or f"{name}/*".lower() in harmless:
        return
    try:
        unread = [served_kind for served_kind in group.kinds if not _is_settled(name, served_kind, harmless)]
        stale = list(group.stale)
    except FactDamaged as damage:
        yield unknown(f"API group {name}", "Unreadable", damage.message, unreadable(damage))
        return
    if name in EGRESS_GROUPS:
        yield from (_egress(group, served_kind) for served_kind in unread)
    elif unread:
        yield _unknown(group, unread)
    if stale:
        message = f"its server did not list what it serves in {', '.join(stale)}"
        severity = None if name in EGRESS_GROUPS else Severity.MEDIUM
        yield unknown(f"API group {name}", "GroupNotSeen", message, group, severity=severity)


def _is_settled(group: str, served_kind: ServedKind, harmless: frozenset[str]) -> bool:
    is_known = (group, served_kind.kind) in _READ or served_kind.kind in HARMLESS_KINDS.get(
        _SHOWN_TWICE.get(group, group), ()
    )
    return is_known or f"{group}/{served_kind.kind}".lower() in harmless


def _egress(group: ServedGroup, served_kind: ServedKind) -> CheckResult:
    return unknown(
        f"apiextensions.k8s.io/v1/CustomResourceDefinition {served_kind.plural}.{group.id}",
        "EgressKindNotRead",
        f"{group.id}/{served_kind.kind} is served, can decide which packets leave, and is not read",
        group,
    )


def _unknown(group: ServedGroup, unread: list[ServedKind]) -> CheckResult:
    some = ", ".join(served_kind.kind for served_kind in unread[:SHOWN]) + (" and more" if len(unread) > SHOWN else "")
    return unknown(
        f"API group {group.id}",
        "KindsNotKnown",
        f"{group.id} ({some}) is served, and this release does not know what its objects do",
        group,
        severity=Severity.MEDIUM,
    )


def _never_empty(groups: Listing[ServedGroup]) -> Listing[ServedGroup]:
    if groups.problem is not None or groups.items:
        return groups
    problem = Problem(UnreadReason.UNREADABLE, "no API group in the answer, and every API server has some")
    return Listing(groups.target, (), groups.evidence, problem)
