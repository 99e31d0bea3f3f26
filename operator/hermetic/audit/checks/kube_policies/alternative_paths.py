"""Objects that route packets outside the pod's own network, or make the mesh let them out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hermetic.api.field_managers import ANNOTATIONS, DATA, SPEC
from hermetic.api.ip_ranges import is_address
from hermetic.audit.checks.family import check
from hermetic.audit.checks.kube_policies.callers import caller_listings, caller_results
from hermetic.audit.checks.kube_policies.devices import device_listings, device_results
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.cluster.workloads import pods_and_templates
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes import alternative_paths as kinds
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.corefile import bare_host
from hermetic.audit.estate.kubernetes.mesh import (
    DestinationRule,
    MeshGateway,
    ProxyConfig,
    RequestAuthentication,
    ServiceEntry,
    Sidecar,
    VirtualService,
    WasmPlugin,
    WorkloadEntry,
)
from hermetic.audit.estate.kubernetes.mesh_config import NOT_READ, OF_A_POD, SHARED, MeshConfig
from hermetic.audit.estate.kubernetes.names import is_inside, is_outside
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.served import SERVED, ServedGroup
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.evaluation.each_object import counted, not_known, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import holds_outside, network
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.model.hops import POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

GROUP = "networking.istio.io"
REGISTRY_ONLY = "REGISTRY_ONLY"
_EDIT = """
Set outboundTrafficPolicy.mode to REGISTRY_ONLY, and let every provider and address of the key mesh be one inside. With
the Istio add-on of AKS, set it in istio-shared-configmap-REVISION: AKS reverts every change of its own ConfigMap.
Warning: with REGISTRY_ONLY, pods of the mesh reach no destination that the mesh does not know.
kubectl --namespace NAMESPACE edit configmap NAME
"""
_WHERE_IS_IT = """
Find the control plane of the mesh, in this cluster or outside of it, and see what its settings let out. Where Istio is
gone, delete its CustomResourceDefinitions:
kubectl get customresourcedefinitions --output name
"""


def is_there(estate: Estate) -> bool:
    """Whether the API server serves Istio's kinds; True where that is not known."""
    groups = estate.every(ServedGroup, SERVED.target)
    return groups.problem is not None or any(group.id == GROUP for group in groups)


# Where the mesh of Istio and that of the add-on of AKS have their control plane.
_OF_A_CONTROL_PLANE = frozenset({"istio-system", "aks-istio-system"})
_ISTIOD = re.compile(r"istiod(-.+)?")


def _namespaces_of_control_planes(estate: Estate) -> frozenset[str]:
    """The namespaces from which a control plane reads its ConfigMap: its own alone.

    Source: istio/istio, pilot/pkg/bootstrap/mesh.go, which reads the ConfigMap of the namespace of its pod.
    """
    namespaces = set(_OF_A_CONTROL_PLANE)
    for pod in pods_and_templates(estate):
        try:
            if _ISTIOD.fullmatch(pod.workload_name):
                namespaces.add(pod.namespace)
        except FactDamaged:  # reported by the checks of pods
            namespaces.add(pod.namespace)
    return frozenset(namespaces)


def evaluate_settings(estate: Estate, maps: Listing[ConfigMap]) -> Iterator[CheckResult]:
    """Evaluate the mesh ConfigMaps that a control plane reads, and the case that there is none."""
    services, read = _short_names(estate), _namespaces_of_control_planes(estate)
    settings = {
        (config_map.namespace, config_map.metadata.name): config_map
        for config_map in maps
        if config_map.mesh is not None and config_map.namespace in read
    }

    def evaluate(config_map: ConfigMap) -> Iterator[CheckResult]:
        mesh = config_map.mesh or MeshConfig()
        yield from _evaluate_addresses(config_map, mesh, services)
        # AKS reads its own ConfigMap first, then the user's.
        revision = config_map.metadata.name.removeprefix("istio-")
        shared = settings.get((config_map.namespace, f"{SHARED}{revision}"))
        is_shared = config_map.metadata.name.startswith(SHARED)
        mode = mesh.mode or (shared.mesh.mode if shared is not None and shared.mesh is not None else "")
        is_open = mode != REGISTRY_ONLY and not mesh.unread
        if is_open and not (is_shared and not mesh.mode):
            yield _allows_any(config_map, mode)

    yield from objections(settings.values(), evaluate)
    if not settings and maps.problem is None and is_there(estate):
        message = "Istio's kinds are served, and no ConfigMap istio or istio-REVISION holds the settings of the mesh"
        yield unknown(estate.cluster, "MeshConfigNotSeen", message, maps, severity=Severity.MEDIUM, remedy=_WHERE_IS_IT)


def _short_names(estate: Estate) -> frozenset[str]:
    return frozenset(f"{service.metadata.name}.{service.namespace}" for service in everywhere(estate, Service))


def _evaluate_addresses(config_map: ConfigMap, mesh: MeshConfig, services: frozenset[str]) -> Iterator[CheckResult]:
    outside = [
        host
        for host in mesh.addresses
        if not (is_inside(host) or host in services or _is_of_own_namespace(host, config_map.namespace))
    ]
    if outside:
        message = f"the mesh is configured to call {', '.join(outside[:3])}"
        path = path_of("proxy of the mesh", outside[0])
        yield fails(config_map.id, "MeshEgress", message, config_map, paths=(path,), remedy=_EDIT, blames=(DATA,))
    elif mesh.unread:
        yield unknown(config_map.id, "MeshConfigNotRead", mesh.unread, config_map)


def _is_of_own_namespace(host: str, namespace: str) -> bool:
    """Whether a host is a Service of the control plane's namespace, also one that does not exist.

    The mesh of AKS has zipkin.aks-istio-system by default, without such a Service (MicrosoftDocs/azure-docs, issue
    123395). Such a name is public nowhere while the namespace has a hyphen: a top-level domain has letters alone, or
    begins with xn--.
    """
    name, _, last = host.partition(".")
    return bool(name) and last == namespace and "-" in last and not last.startswith("xn--")


def _allows_any(config_map: ConfigMap, mode: str) -> CheckResult:
    setting = f"outboundTrafficPolicy.mode is {mode}" if mode else "outboundTrafficPolicy.mode is not set: ALLOW_ANY"
    message = f"{setting}; proxies let everything through that the mesh does not know"
    return fails(config_map.id, "AllowAny", message, config_map, severity=Severity.MEDIUM, remedy=_EDIT, blames=(DATA,))


# What Cilium's operator makes CiliumEnvoyConfigs for, and no object of another kind.
_BY_GATEWAYS = frozenset({("gateway.networking.k8s.io", "Gateway"), ("networking.k8s.io", "Ingress"), ("", "Service")})
ALLOW_ANY = "ALLOW_ANY"


@dataclass(frozen=True, slots=True)
class _Way:
    """What an object of a kind does; Unknown where that depends on something that the audit does not read."""

    kind: type[KubernetesObject]
    does: str
    verdict: Verdict = Verdict.FAIL
    severity: Severity = Severity.HIGH


WAYS = (
    _Way(kinds.CiliumEgressGatewayPolicy, "sends the traffic of the pods that it selects out by a gateway node"),
    _Way(kinds.CiliumExternalWorkload, "lets a machine outside take part in the cluster's network"),
    _Way(kinds.CalicoEgressGatewayPolicy, "sends the traffic of pods out by egress gateways"),
    _Way(kinds.CalicoExternalNetwork, "joins the pods' network with one outside"),
    _Way(kinds.TigeraEgressGateway, "runs a gateway by which pods leave with addresses of its own"),
    _Way(kinds.PodNetwork, "gives pods an interface in another virtual network"),
    _Way(kinds.CalicoBgpPeer, "takes routes from a router, which may hold a default route", Verdict.UNKNOWN),
    _Way(
        kinds.NetworkAttachmentDefinition,
        "gives pods a second interface, to which policies do not apply",
        Verdict.UNKNOWN,
    ),
    _Way(kinds.CiliumEnvoyConfig, "gives Envoy destinations of its own", Verdict.UNKNOWN),
    _Way(kinds.CiliumClusterwideEnvoyConfig, "gives Envoy destinations of its own", Verdict.UNKNOWN),
    _Way(
        kinds.CiliumLocalRedirectPolicy,
        "redirects traffic for an address or a Service to pods of the node",
        Verdict.UNKNOWN,
        Severity.MEDIUM,
    ),
    _Way(
        kinds.EnvoyFilter,
        "changes the proxies of the mesh by hand, their destinations included",
        Verdict.UNKNOWN,
        Severity.MEDIUM,
    ),
)


@check("k8s-other-ways")
def k8s_other_ways(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """No object of these kinds exists."""
    listings = tuple(everywhere(estate, alternative.kind) for alternative in WAYS)
    results = tuple(
        result
        for alternative, listing in zip(WAYS, listings, strict=True)
        for result in objections(listing, partial(_is, alternative))
    )
    nodes = everywhere(estate, Node)
    of_nodes = tuple(objections(nodes, _of_node))
    results = (*results, *of_nodes, *device_results(estate), *caller_results(estate, policy))
    observations = (*listings, nodes, *device_listings(estate), *caller_listings(estate))
    fine = "no object sends packets of pods by a gateway, a second network, a device or a proxy of its own"
    yield from settled(estate, results, "NoOtherWay", fine, *observations)


_NO_VIRTUAL_NODES = """
Turn virtual nodes off.
Warning: pods that run in container instances end.
az aks disable-addons --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP --name CLUSTER_NAME \\
--addons virtual-node
"""
_NO_MACHINE_ELSEWHERE = """
See what the network of the machine lets out, and accept the node by an exception. Otherwise take the node out:
kubectl cordon NAME
Warning: pods that run on the node end.
kubectl delete node NAME
"""


def _of_node(node: Node) -> Iterator[CheckResult]:
    """A node that is no machine of Azure."""
    if node.is_virtual:
        message = "it is a virtual kubelet: its pods run in container instances, outside of the node subnets"
        path = path_of(POD, hops.kubernetes(node.id), "container instances", hops.INTERNET)
        yield fails(node.id, "VirtualNode", message, node, paths=(path,), remedy=_NO_VIRTUAL_NODES)
    elif node.spec.provider_id and not node.machine:
        message = (
            f"its machine {node.spec.provider_id} is not in Azure: the audit does not read what its network lets out"
        )
        yield unknown(node.id, "MachineElsewhere", message, node, remedy=_NO_MACHINE_ELSEWHERE)


def _is(alternative: _Way, kubernetes_object: KubernetesObject) -> Iterator[CheckResult]:
    owner = kubernetes_object.metadata.controller
    is_made = owner is not None and (owner.api_version.rpartition("/")[0], owner.kind) in _BY_GATEWAYS
    if is_made and alternative.kind is kinds.CiliumEnvoyConfig:
        return  # made for a Gateway, an Ingress or a Service, which other checks evaluate
    if alternative.verdict is Verdict.FAIL:
        path = path_of(POD, hops.kubernetes(kubernetes_object.id), "outside of the cluster's network")
        yield fails(
            kubernetes_object.id,
            "OtherWay",
            alternative.does,
            kubernetes_object,
            paths=(path,),
            severity=alternative.severity,
            blames=(SPEC,),
        )
    else:
        message = f"{alternative.does}: where that leads is not read"
        yield unknown(
            kubernetes_object.id, "OtherWayNotRead", message, kubernetes_object, severity=alternative.severity
        )


# ------------------------------------------------------------------ Istio


@check("k8s-mesh-egress")
def k8s_mesh_egress(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Nothing in the mesh names a destination outside, and no proxy is set to let everything through."""
    entries, workloads = everywhere(estate, ServiceEntry), everywhere(estate, WorkloadEntry)
    gateways, sidecars = everywhere(estate, MeshGateway), everywhere(estate, Sidecar)
    services, maps = everywhere(estate, VirtualService), everywhere(estate, ConfigMap)
    tokens, plugins = everywhere(estate, RequestAuthentication), everywhere(estate, WasmPlugin)
    rules, proxies = everywhere(estate, DestinationRule), everywhere(estate, ProxyConfig)
    results = (
        *objections(entries, _evaluate_entry),
        *objections(workloads, _evaluate_workload),
        *objections(gateways, _evaluate_gateway),
        *objections(sidecars, _evaluate_sidecar),
        *objections(services, _evaluate_service),
        *objections(tokens, _evaluate_tokens),
        *objections(plugins, partial(_evaluate_plugin, policy)),
        *objections(rules, _evaluate_rule),
        *objections(proxies, _evaluate_proxies),
        *(result for listing in (entries, workloads, sidecars, services) for result in objections(listing, not_known)),
        *evaluate_settings(estate, maps),
    )
    fine = f"{counted(len(entries), 'ServiceEntry', 'ServiceEntries')}: nothing in the mesh names a destination outside"
    observations: tuple[Observation, ...] = (
        *(entries, workloads, gateways, sidecars, services),
        *(tokens, plugins, rules, proxies),
    )
    if is_there(estate):  # without Istio there is no mesh that a ConfigMap or an annotation configures
        pods = pods_and_templates(estate)
        results = (*results, *objections(pods, partial(_evaluate_pod, _short_names(estate))))
        observations = (*observations, maps, pods, estate.every(ServedGroup, SERVED.target))
    yield from settled(estate, results, "MeshInside", fine, *observations)


def _evaluate_entry(entry: ServiceEntry) -> Iterator[CheckResult]:
    outside = [destination for destination in entry.leads_to if _is_outside(destination)]
    if outside:
        yield _leads_out(entry, f"makes {', '.join(outside[:3])} a destination of the mesh", outside[0])
    elif not entry.leads_to and not entry.spec.workload_selector:
        yield unknown(entry.id, "DestinationNotSeen", "names no destination that the audit can read", entry)


def _evaluate_workload(entry: WorkloadEntry) -> Iterator[CheckResult]:
    address = entry.spec.address or ""
    if address and _is_outside(address):
        yield _leads_out(entry, f"makes {address} a workload of the mesh", address)


def _evaluate_gateway(gateway: MeshGateway) -> Iterator[CheckResult]:
    chosen = [value for value in (gateway.spec.selector or {}).values() if "egress" in value.lower()]
    if chosen:
        yield _leads_out(gateway, f"opens ports on the egress gateway {chosen[0]}", chosen[0])


def _evaluate_sidecar(sidecar: Sidecar) -> Iterator[CheckResult]:
    outbound = sidecar.spec.outbound_traffic_policy
    if outbound is None:
        return
    proxy = outbound.egress_proxy.host if outbound.egress_proxy is not None else ""
    if proxy:
        yield _leads_out(sidecar, f"sends what the mesh does not know to {proxy}", proxy)
    elif outbound.mode == ALLOW_ANY:
        message = (
            f"outboundTrafficPolicy.mode is {ALLOW_ANY}: proxies let everything through that the mesh does not know"
        )
        yield fails(sidecar.id, "AllowAny", message, sidecar, severity=Severity.MEDIUM, blames=(SPEC,))


def _evaluate_service(service: VirtualService) -> Iterator[CheckResult]:
    outside = [destination for destination in service.leads_to if _is_outside(destination)]
    if outside:
        yield _leads_out(service, f"sends traffic to {', '.join(outside[:3])}", outside[0])


def _evaluate_tokens(tokens: RequestAuthentication) -> Iterator[CheckResult]:
    outside = [url for url in tokens.fetches if _is_outside(bare_host(url))]
    if outside:
        yield _leads_out(tokens, f"has keys fetched from {', '.join(outside[:3])}", bare_host(outside[0]))


def _evaluate_plugin(policy: Policy, plugin: WasmPlugin) -> Iterator[CheckResult]:
    """Code that each proxy fetches itself: it must come from an approved registry or from inside."""
    host = plugin.host
    approved = frozenset(registry.lower() for registry in policy.allowed_registries)
    if host and host not in approved and (is_outside(host) or (approved and not is_inside(host))):
        yield _leads_out(plugin, f"runs code in proxies that they fetch from {host}", host)


def _evaluate_rule(rule: DestinationRule) -> Iterator[CheckResult]:
    outside = [destination for destination in rule.tunnels_to if _is_outside(destination)]
    if outside:
        yield _leads_out(rule, f"makes proxies open tunnels to {', '.join(outside[:3])}", outside[0])


def _evaluate_proxies(config: ProxyConfig) -> Iterator[CheckResult]:
    if config.hosts:
        yield _leads_out(config, f"configures proxies to call {', '.join(config.hosts[:3])}", config.hosts[0])


def _evaluate_pod(services: frozenset[str], pod: Pod) -> Iterator[CheckResult]:
    outside = [host for host in pod.annotations.get(OF_A_POD, "").split() if host not in services]
    if pod.has_ended or not outside:
        return
    if NOT_READ in outside:
        message = f"its annotation {OF_A_POD} cannot be read"
        remedy = f"Write the annotation {OF_A_POD} of the pod template as YAML without addresses."
        yield unknown(pod.workload, "ProxyConfigNotRead", message, pod, remedy=remedy)
    else:
        message = f"its annotation {OF_A_POD} configures its proxy to call {', '.join(outside[:3])}"
        path = path_of(hops.kubernetes(pod.workload), "proxy of the mesh", outside[0])
        remedy = f"Take the annotation {OF_A_POD} out of the pod template."
        yield fails(pod.workload, "MeshEgress", message, pod, paths=(path,), remedy=remedy, blames=(ANNOTATIONS,))


def _leads_out(kubernetes_object: KubernetesObject, message: str, target: str) -> CheckResult:
    return fails(
        kubernetes_object.id,
        "MeshEgress",
        message,
        kubernetes_object,
        paths=(path_of(POD, "proxy of the mesh", target),),
        blames=(SPEC,),
    )


def _is_outside(destination: str) -> bool:
    """Whether a name, an address or a range is outside; a Unix socket of the node is not."""
    if destination.startswith("unix:"):
        return False
    prefix = network(destination)
    if prefix is not None and not is_address(destination):
        return holds_outside(prefix)
    return not is_inside(destination)
