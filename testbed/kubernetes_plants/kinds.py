"""Objects of kinds that a cluster may be given: policies, gateways, meshes; and kinds that are not read."""

from __future__ import annotations

from testbed.kubernetes_plants.pieces import OUTSIDE, PUBLIC_IP, closed_namespace, manifest, put
from testbed.kubernetes_plants.plant import Manifest, Manifests, plant

NETWORK_POLICY_API = "SIG Network: Network Policy API"
ISTIO = "Istio: Traffic management reference"
OTHER = "k8s-other-ways"


def administrators_policy(manifests: Manifests, kind: str, version: str, rule: Manifest) -> str:
    """A policy for every namespace."""
    spec = {"subject": {"namespaces": {}}, "priority": 10, "egress": [rule]}
    return put(manifests, manifest(f"policy.networking.k8s.io/{version}", kind, "default", spec=spec))


@plant("k8s-policy-allow-all", "high", NETWORK_POLICY_API)
def administrators_policy_that_allows_everything(manifests: Manifests) -> str:
    """A policy that comes before every NetworkPolicy allows every address."""
    rule = {"action": "Allow", "to": [{"networks": ["0.0.0.0/0"]}]}
    return administrators_policy(manifests, "AdminNetworkPolicy", "v1alpha1", rule)


@plant("k8s-policy-allow-all", "high", NETWORK_POLICY_API)
def baseline_that_allows_a_public_range(manifests: Manifests) -> str:
    """The policy for pods that no other selects allows a public range."""
    rule = {"action": "Allow", "to": [{"networks": ["203.0.113.0/24"]}]}
    return administrators_policy(manifests, "BaselineAdminNetworkPolicy", "v1alpha1", rule)


@plant("k8s-policy-allow-all", "high", NETWORK_POLICY_API)
def cluster_policy_that_accepts_names(manifests: Manifests) -> str:
    """A policy of the administrators' tier accepts names outside."""
    rule = {"action": "Accept", "to": [{"domainNames": [f"*.{OUTSIDE}"]}]}
    return administrators_policy(manifests, "ClusterNetworkPolicy", "v1alpha2", rule)


@plant(OTHER, "high", "Cilium: Egress gateway")
def cilium_egress_gateway(manifests: Manifests) -> str:
    """Cilium sends pods out by a gateway node."""
    spec = {
        "selectors": [{"podSelector": {}}],
        "destinationCIDRs": ["0.0.0.0/0"],
        "egressGateway": {"interface": "eth1"},
    }
    return put(manifests, manifest("cilium.io/v2", "CiliumEgressGatewayPolicy", "out", spec=spec))


@plant(OTHER, "high", "Cilium: External workloads")
def machine_in_the_clusters_network(manifests: Manifests) -> str:
    """A machine outside takes part in the cluster's network."""
    return put(manifests, manifest("cilium.io/v2", "CiliumExternalWorkload", "vm", spec={}))


@plant(OTHER, "high", "Cilium: Envoy configuration", verdict="Unknown")
def envoy_with_destinations_of_its_own(manifests: Manifests) -> str:
    """Envoy is given a cluster by hand."""
    spec = {"resources": [{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "out"}]}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("cilium.io/v2", "CiliumEnvoyConfig", "out", namespace, spec=spec))


@plant(OTHER, "medium", "Cilium: Local redirect policy", verdict="Unknown")
def traffic_redirected_on_the_node(manifests: Manifests) -> str:
    """Traffic for an address is redirected to a pod."""
    spec = {"redirectFrontend": {"addressMatcher": {"ip": "169.254.169.254"}}}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("cilium.io/v2", "CiliumLocalRedirectPolicy", "out", namespace, spec=spec))


@plant(OTHER, "high", "Calico Enterprise: Egress gateways")
def calico_egress_gateway(manifests: Manifests) -> str:
    """Calico runs an egress gateway."""
    namespace = closed_namespace(manifests)
    spec = {"replicas": 1, "ipPools": [{"cidr": "10.9.0.0/31"}]}
    return put(manifests, manifest("operator.tigera.io/v1", "EgressGateway", "out", namespace, spec=spec))


@plant(OTHER, "high", "Calico: BGP peer", verdict="Unknown")
def router_that_gives_routes(manifests: Manifests) -> str:
    """Machines take routes from a router."""
    spec = {"peerIP": "10.1.9.9", "asNumber": 64512}
    return put(manifests, manifest("crd.projectcalico.org/v1", "BGPPeer", "out", spec=spec))


@plant(OTHER, "high", "Kubernetes Network Plumbing Working Group: NetworkAttachmentDefinition", verdict="Unknown")
def second_interface(manifests: Manifests) -> str:
    """Pods can have a second interface."""
    namespace = closed_namespace(manifests)
    spec = {"config": '{"type": "macvlan", "master": "eth0"}'}
    return put(manifests, manifest("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "out", namespace, spec=spec))


DRANET = "AKS: Managed DRANET"


@plant(OTHER, "high", DRANET)
def network_device_of_a_pod(manifests: Manifests) -> str:
    """A claim gives a pod a network interface of its machine."""
    selectors = [{"cel": {"expression": 'device.driver == "dra.net"'}}]
    put(manifests, manifest("resource.k8s.io/v1", "DeviceClass", "nic", spec={"selectors": selectors}))
    request = {"name": "nic", "exactly": {"deviceClassName": "nic"}}
    namespace, spec = closed_namespace(manifests), {"devices": {"requests": [request]}}
    return put(manifests, manifest("resource.k8s.io/v1", "ResourceClaim", "nic", namespace, spec=spec))


@plant(OTHER, "high", "Kubernetes: Dynamic Resource Allocation", verdict="Unknown")
def device_of_a_driver_that_is_not_known(manifests: Manifests) -> str:
    """A class lets pods claim devices of a driver of which nothing is known."""
    selectors = [{"cel": {"expression": 'device.driver == "fabric.example.com"'}}]
    return put(manifests, manifest("resource.k8s.io/v1", "DeviceClass", "fabric", spec={"selectors": selectors}))


def of_the_mesh(manifests: Manifests, kind: str, spec: Manifest) -> str:
    """planted/out of a kind of Istio."""
    return put(manifests, manifest("networking.istio.io/v1", kind, "out", closed_namespace(manifests), spec=spec))


@plant("k8s-mesh-egress", "high", ISTIO)
def destination_outside_of_the_mesh(manifests: Manifests) -> str:
    """A name outside is a destination of the mesh."""
    return of_the_mesh(manifests, "ServiceEntry", {"hosts": [OUTSIDE], "resolution": "DNS"})


@plant("k8s-mesh-egress", "high", ISTIO)
def workload_outside(manifests: Manifests) -> str:
    """A public address is a workload of the mesh."""
    return of_the_mesh(manifests, "WorkloadEntry", {"address": PUBLIC_IP})


@plant("k8s-mesh-egress", "high", "Istio: Egress gateways")
def egress_gateway_of_the_mesh(manifests: Manifests) -> str:
    """The mesh's egress gateway opens ports."""
    return of_the_mesh(manifests, "Gateway", {"selector": {"istio": "egressgateway"}})


@plant("k8s-mesh-egress", "high", ISTIO)
def traffic_copied_outside(manifests: Manifests) -> str:
    """A route sends a copy of each request outside."""
    return of_the_mesh(manifests, "VirtualService", {"http": [{"mirror": {"host": OUTSIDE}}]})


@plant("k8s-mesh-egress", "medium", ISTIO)
def proxies_that_let_everything_through(manifests: Manifests) -> str:
    """Proxies let through what the mesh does not know."""
    return of_the_mesh(manifests, "Sidecar", {"outboundTrafficPolicy": {"mode": "ALLOW_ANY"}})


@plant("k8s-mesh-egress", "high", "Istio: RequestAuthentication")
def keys_fetched_outside(manifests: Manifests) -> str:
    """The mesh's control plane fetches keys from a name outside."""
    spec = {"jwtRules": [{"issuer": "team", "jwksUri": f"https://{OUTSIDE}/keys"}]}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("security.istio.io/v1", "RequestAuthentication", "out", namespace, spec=spec))


@plant("k8s-mesh-egress", "high", "Istio: Wasm plugin")
def code_of_proxies_fetched_outside(manifests: Manifests) -> str:
    """Proxies fetch code from a name outside."""
    namespace, spec = closed_namespace(manifests), {"url": f"https://{OUTSIDE}/filter.wasm"}
    return put(manifests, manifest("extensions.istio.io/v1alpha1", "WasmPlugin", "out", namespace, spec=spec))


@plant("k8s-mesh-egress", "high", "Istio: tunnel to a name outside")
def tunnel_to_a_name_outside(manifests: Manifests) -> str:
    """Proxies wrap connections to a host inside, for a name outside."""
    policy = {"tunnel": {"protocol": "CONNECT", "targetHost": OUTSIDE, "targetPort": 443}}
    namespace, spec = closed_namespace(manifests), {"host": "proxy.team.svc.cluster.local", "trafficPolicy": policy}
    return put(manifests, manifest("networking.istio.io/v1", "DestinationRule", "out", namespace, spec=spec))


@plant("k8s-mesh-egress", "high", "Istio: proxies configured with a server outside")
def server_of_proxies_outside(manifests: Manifests) -> str:
    """A variable of the proxies names their certificate authority, outside."""
    namespace, spec = closed_namespace(manifests), {"environmentVariables": {"CA_ADDR": f"{OUTSIDE}:443"}}
    return put(manifests, manifest("networking.istio.io/v1beta1", "ProxyConfig", "out", namespace, spec=spec))


def definition(manifests: Manifests, group: str, plural: str, kind: str) -> str:
    """A CustomResourceDefinition."""
    versions = [{"name": "v1", "served": True, "storage": True}]
    spec = {"group": group, "names": {"plural": plural, "kind": kind}, "scope": "Namespaced", "versions": versions}
    name = f"{plural}.{group}"
    return put(manifests, manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, spec=spec))


@plant("k8s-unread-kinds", "high", "Tailscale: Kubernetes operator", verdict="Unknown")
def kind_that_opens_tunnels(manifests: Manifests) -> str:
    """A kind is served that opens tunnels to a network outside."""
    return definition(manifests, "tailscale.com", "connectors", "Connector")


@plant("k8s-unread-kinds", "high", "OVN-Kubernetes: EgressIP", verdict="Unknown")
def kind_that_gives_pods_an_address_outside(manifests: Manifests) -> str:
    """A kind is served that gives pods an address of their own outside."""
    return definition(manifests, "k8s.ovn.org", "egressips", "EgressIP")


@plant("k8s-unread-kinds", "medium", "Kubernetes: Custom resources", verdict="Unknown")
def kind_that_is_not_known(manifests: Manifests) -> str:
    """A kind is served of which nothing is known."""
    definition(manifests, "planted.example.com", "ways", "Way")
    return "API group planted.example.com"


MESH_CONFIG = "Istio: Global mesh options"


def mesh_settings(manifests: Manifests, text: str) -> str:
    """The ConfigMap of the mesh, and an object of Istio that shows that there is one."""
    of_the_mesh(manifests, "ServiceEntry", {"hosts": ["inside.planted.svc"], "resolution": "DNS"})
    return put(manifests, manifest("v1", "ConfigMap", "istio", "istio-system", data={"mesh": text}))


@plant("k8s-mesh-egress", "medium", MESH_CONFIG)
def mesh_that_lets_everything_through(manifests: Manifests) -> str:
    """The settings of the mesh leave outboundTrafficPolicy at its default."""
    return mesh_settings(manifests, "accessLogFile: /dev/stdout\n")


@plant("k8s-mesh-egress", "high", MESH_CONFIG)
def mesh_that_traces_outside(manifests: Manifests) -> str:
    """Every proxy of the mesh sends its traces outside."""
    zipkin = f"defaultConfig:\n  tracing:\n    zipkin:\n      address: {OUTSIDE}:9411\n"
    return mesh_settings(manifests, f"outboundTrafficPolicy:\n  mode: REGISTRY_ONLY\n{zipkin}")
