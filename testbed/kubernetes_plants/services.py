"""Services, endpoints, ingresses and machines that have a public side, or lead to one."""

from __future__ import annotations

from testbed.kubernetes_plants.pieces import NAMESPACE, OUTSIDE, PUBLIC_IP, closed_namespace, manifest, node, put
from testbed.kubernetes_plants.plant import Manifest, Manifests, plant

CLOUD = "cloud-provider-azure: load balancer annotations"
INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"
PREFIX = "service.beta.kubernetes.io/"
BALANCED = {"type": "LoadBalancer", "selector": {"app": "shop"}, "ports": [{"port": 443}]}


def service(manifests: Manifests, spec: Manifest, **fields: Manifest) -> str:
    """The Service planted/shop."""
    return put(manifests, manifest("v1", "Service", "shop", closed_namespace(manifests), spec=spec, **fields))


@plant("k8s-public-lb", "critical", CLOUD)
def balancer_without_annotation(manifests: Manifests) -> str:
    """A Service of type LoadBalancer says nothing, and gets a public address."""
    return service(manifests, dict(BALANCED))


@plant("k8s-public-lb", "critical", CLOUD)
def balancer_internal_misspelt(manifests: Manifests) -> str:
    """The private annotation is "True", and only "true" counts."""
    return service(manifests, dict(BALANCED), annotations={INTERNAL: "True"})


@plant("k8s-public-lb", "critical", CLOUD)
def balancer_with_named_public_address(manifests: Manifests) -> str:
    """An internal load balancer that names a public IP as well."""
    return service(manifests, dict(BALANCED), annotations={INTERNAL: "true", f"{PREFIX}azure-pip-name": "shop"})


@plant("k8s-public-lb", "critical", CLOUD)
def balancer_with_prefix(manifests: Manifests) -> str:
    """An internal load balancer that takes its address from a public prefix."""
    named = {INTERNAL: "true", f"{PREFIX}azure-pip-prefix-id": "/subscriptions/x/publicIPPrefixes/p"}
    return service(manifests, dict(BALANCED), annotations=named)


@plant("k8s-public-lb", "high", "cloud-provider-azure: Private Link Service integration")
def balancer_that_every_subscription_may_connect_to(manifests: Manifests) -> str:
    """An internal load balancer has a private link service that every subscription sees and that approves all."""
    link = {f"{PREFIX}azure-pls-{name}": "*" for name in ("visibility", "auto-approval")}
    annotations = {INTERNAL: "true", f"{PREFIX}azure-pls-create": "true", **link}
    return service(manifests, dict(BALANCED), annotations=annotations)


@plant("k8s-public-lb", "medium", CLOUD)
def balancer_that_lets_in_every_address(manifests: Manifests) -> str:
    """The security group lets every address in to an internal load balancer."""
    annotations = {INTERNAL: "true", f"{PREFIX}azure-allowed-ip-ranges": "0.0.0.0/0"}
    return service(manifests, dict(BALANCED), annotations=annotations)


@plant("k8s-lb-status-ip", "critical", CLOUD)
def balancer_that_was_given_a_public_address(manifests: Manifests) -> str:
    """The private annotation came after the public address was made."""
    status: Manifest = {"loadBalancer": {"ingress": [{"ip": PUBLIC_IP}]}}
    return service(manifests, dict(BALANCED), annotations={INTERNAL: "true"}, status=status)


@plant("k8s-externalips", "high", "Kubernetes: Service, external IPs; CVE-2020-8554")
def external_address_claimed(manifests: Manifests) -> str:
    """A Service draws the traffic for a public address to its pods."""
    return service(manifests, {"type": "ClusterIP", "externalIPs": [PUBLIC_IP], "ports": [{"port": 443}]})


@plant("k8s-externalname", "medium", "Kubernetes: Service, ExternalName")
def alias_of_a_name_outside(manifests: Manifests) -> str:
    """A name inside that is an alias of one outside."""
    return service(manifests, {"type": "ExternalName", "externalName": OUTSIDE})


@plant("k8s-externalname", "medium", "Kubernetes: Service, ExternalName")
def public_zone_that_looks_private(manifests: Manifests) -> str:
    """A zone that any customer can register, with privatelink in its name."""
    return service(manifests, {"type": "ExternalName", "externalName": "acct.privatelink.example.com"})


def endpoints(manifests: Manifests, address_type: str, address: str) -> str:
    """A slice of the Service planted/shop."""
    labels = {"kubernetes.io/service-name": "shop"}
    places = [{"addresses": [address]}]
    namespace = closed_namespace(manifests)
    service(manifests, {"type": "ClusterIP", "ports": [{"port": 443}]})
    fields: Manifest = {"labels": labels, "addressType": address_type, "endpoints": places}
    return put(manifests, manifest("discovery.k8s.io/v1", "EndpointSlice", "shop-1", namespace, **fields))


@plant("k8s-endpoints-external", "high", "Kubernetes: Services without selectors")
def endpoint_with_public_address(manifests: Manifests) -> str:
    """A Service without a selector leads to a public address."""
    return endpoints(manifests, "IPv4", PUBLIC_IP)


@plant("k8s-endpoints-external", "high", "Kubernetes: Services without selectors")
def endpoint_with_public_ipv6_address(manifests: Manifests) -> str:
    """A Service without a selector leads to a public IPv6 address."""
    return endpoints(manifests, "IPv6", "2001:db8::7")


@plant("k8s-endpoints-external", "high", "Kubernetes: EndpointSlices, address types")
def endpoint_with_name_outside(manifests: Manifests) -> str:
    """A Service without a selector leads to a name outside."""
    return endpoints(manifests, "FQDN", OUTSIDE)


@plant("k8s-node-externalip", "critical", "AKS: Use instance-level public IPs")
def machine_with_external_address(manifests: Manifests) -> str:
    """A machine has an external address."""
    machine = node(manifests)
    machine["status"]["addresses"] = [*machine["status"]["addresses"], {"type": "ExternalIP", "address": PUBLIC_IP}]
    return f"v1/Node {machine['metadata']['name']}"


@plant("k8s-nodeport", "medium", "Kubernetes: Service, NodePort", also=("k8s-node-externalip",))
def node_port_on_a_public_machine(manifests: Manifests) -> str:
    """A node port is open on a machine with an external address."""
    machine_with_external_address(manifests)
    return service(manifests, {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]})


def ingress(manifests: Manifests, class_name: str, **fields: Manifest) -> str:
    """The Ingress planted/shop."""
    spec = {"ingressClassName": class_name}
    namespace = closed_namespace(manifests)
    return put(manifests, manifest("networking.k8s.io/v1", "Ingress", "shop", namespace, spec=spec, **fields))


@plant("k8s-ingress-gateway", "high", "Kubernetes: Ingress, status")
def ingress_with_public_address(manifests: Manifests) -> str:
    """An Ingress was given a public address."""
    return ingress(manifests, "nginx", status={"loadBalancer": {"ingress": [{"ip": PUBLIC_IP}]}})


@plant("k8s-ingress-gateway", "high", "AKS: Application Gateway Ingress Controller")
def ingress_by_application_gateway(manifests: Manifests) -> str:
    """An Ingress of the class that Application Gateway serves, without its private front."""
    return ingress(manifests, "azure-application-gateway")


@plant("k8s-ingress-gateway", "high", "Gateway API: Gateway status")
def gateway_with_public_address(manifests: Manifests) -> str:
    """A Gateway was given a public address."""
    fields: Manifest = {
        "spec": {"gatewayClassName": "internal"},
        "status": {"addresses": [{"type": "IPAddress", "value": PUBLIC_IP}]},
    }
    closed_namespace(manifests)
    return put(manifests, manifest("gateway.networking.k8s.io/v1", "Gateway", "shop", NAMESPACE, **fields))


@plant("k8s-ingress-gateway", "high", "Gateway API: Gateway, addresses")
def gateway_that_asks_for_a_public_address(manifests: Manifests) -> str:
    """A Gateway asks for a public address, and has none yet."""
    spec: Manifest = {"gatewayClassName": "internal", "addresses": [{"type": "IPAddress", "value": PUBLIC_IP}]}
    closed_namespace(manifests)
    return put(manifests, manifest("gateway.networking.k8s.io/v1", "Gateway", "shop", NAMESPACE, spec=spec))


@plant("k8s-externalname", "high", "Cilium: Cluster Mesh, global services")
def service_of_other_clusters(manifests: Manifests) -> str:
    """Pods of other clusters answer for a Service."""
    return service(manifests, {"type": "ClusterIP"}, annotations={"service.cilium.io/global": "true"})


GATEWAY_API = "Kubernetes Gateway API: HTTPBackendRef"


def route(manifests: Manifests, kind: str, version: str, rule: Manifest) -> str:
    """A route of one rule."""
    some = manifest(
        f"gateway.networking.k8s.io/{version}", kind, "out", closed_namespace(manifests), spec={"rules": [rule]}
    )
    return put(manifests, some)


def relay(manifests: Manifests) -> Manifest:
    """A Service that stands for a name outside, as a backend."""
    spec = {"type": "ExternalName", "externalName": OUTSIDE}
    put(manifests, manifest("v1", "Service", "relay", closed_namespace(manifests), spec=spec))
    return {"name": "relay", "port": 443}


@plant("k8s-gateway-routes", "high", GATEWAY_API)
def route_to_a_name_outside(manifests: Manifests) -> str:
    """A gateway sends requests to a Service that stands for a name outside."""
    return route(manifests, "HTTPRoute", "v1", {"backendRefs": [relay(manifests)]})


@plant("k8s-gateway-routes", "high", "Kubernetes Gateway API: HTTPRequestMirrorFilter")
def route_that_copies_outside(manifests: Manifests) -> str:
    """A gateway sends a copy of each call to a Service that stands for a name outside."""
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": relay(manifests)}}
    return route(manifests, "GRPCRoute", "v1", {"filters": [mirror]})


@plant("k8s-gateway-routes", "high", GATEWAY_API, also=("k8s-endpoints-external",))
def route_to_a_public_address(manifests: Manifests) -> str:
    """A gateway sends connections to a Service whose slice holds a public address."""
    namespace = closed_namespace(manifests)
    labels = {"kubernetes.io/service-name": "far"}
    put(manifests, manifest("v1", "Service", "far", namespace, spec={"type": "ClusterIP"}))
    fields = {"addressType": "IPv4", "endpoints": [{"addresses": [PUBLIC_IP]}]}
    put(manifests, manifest("discovery.k8s.io/v1", "EndpointSlice", "far-1", namespace, labels=labels, **fields))
    return route(manifests, "TCPRoute", "v1alpha2", {"backendRefs": [{"name": "far", "port": 443}]})


@plant("k8s-gateway-routes", "high", "Kubernetes: Ingress")
def ingress_to_a_name_outside(manifests: Manifests) -> str:
    """A controller sends requests to a Service that stands for a name outside."""
    backend = {"service": {"name": relay(manifests)["name"], "port": {"number": 443}}}
    return put(manifests, manifest("networking.k8s.io/v1", "Ingress", "out", closed_namespace(manifests), spec={
        "ingressClassName": "nginx", "defaultBackend": backend,
    }))  # fmt: skip


@plant("k8s-gateway-routes", "high", "ingress-nginx: Annotations")
def ingress_that_copies_outside(manifests: Manifests) -> str:
    """A controller sends a copy of each request to a URL outside."""
    backend = {"service": {"name": "inside", "port": {"number": 80}}}
    copies = {"nginx.ingress.kubernetes.io/mirror-target": f"https://{OUTSIDE}$request_uri"}
    return put(manifests, manifest(
        "networking.k8s.io/v1", "Ingress", "copies", closed_namespace(manifests), annotations=copies,
        spec={"ingressClassName": "nginx", "defaultBackend": backend},
    ))  # fmt: skip


@plant("k8s-gateway-routes", "high", "Istio: Kubernetes Gateway API", verdict="Unknown")
def route_to_a_backend_of_a_project(manifests: Manifests) -> str:
    """A gateway sends requests to a backend of a kind that is not read."""
    backend = {"group": "gateway.kgateway.dev", "kind": "Backend", "name": "out"}
    return route(manifests, "TLSRoute", "v1alpha2", {"backendRefs": [backend]})
