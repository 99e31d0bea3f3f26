"""Objects that open the cluster to traffic, and Services that lead to external destinations."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.public_services import given, ingress_classes, is_internal
from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.dns_ports import is_dns
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, api_object
from hermetic.audit.estate.resource import Part


class Address(Part):
    """An address of a load balancer: one of the two fields."""

    ip: str | None = None
    hostname: str | None = None


class LoadBalancerStatus(Part):
    """The addresses assigned so far."""

    ingress: list[Address] | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """Every address or host name."""
        return tuple(
            address for address in given((entry.ip, entry.hostname) for entry in self.ingress or ()) if address
        )


class ServicePort(Part):
    port: int | None = None
    node_port: int | None = None


class ServiceSpec(Part):
    """`type` is open: ClusterIP, NodePort, LoadBalancer, ExternalName. Absent is ClusterIP."""

    type: str | None = None
    cluster_ip: str | None = None
    selector: FreeMap[str] | None = None
    ports: list[ServicePort] | None = None
    external_ips: list[str] | None = None
    external_name: str | None = None
    load_balancer_ip: str | None = None
    load_balancer_class: str | None = None


class BalancedStatus(Part):
    """The status of a Service or an Ingress."""

    load_balancer: LoadBalancerStatus | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """Every address or host name of its load balancer."""
        return self.load_balancer.given if self.load_balancer else ()


@api_object("v1/services", "Service")
class Service(KubernetesObject):
    spec: ServiceSpec = ServiceSpec()
    status: BalancedStatus = BalancedStatus()

    @property
    def is_load_balancer(self) -> bool:
        """Whether it requests a load balancer of the cloud."""
        return self.spec.type == "LoadBalancer"

    @property
    def is_internal(self) -> bool:
        """Whether it requests an internal load balancer."""
        return is_internal(self.annotations)

    @property
    def node_ports(self) -> tuple[int, ...]:
        return tuple(port.node_port for port in self.spec.ports or () if port.node_port)


class SliceEndpoint(Part):
    addresses: list[str] | None = None


class SlicePort(Part):
    """A port of every endpoint; `port` absent: all ports. `protocol` absent: TCP."""

    port: int | None = None
    protocol: str | None = None


@api_object("discovery.k8s.io/v1/endpointslices", "EndpointSlice")
class EndpointSlice(KubernetesObject):
    """`address_type` is IPv4, IPv6 or FQDN; open."""

    address_type: str | None = None
    endpoints: list[SliceEndpoint] | None = None
    ports: list[SlicePort] | None = None

    @property
    def is_dns_only(self) -> bool:
        """Whether it names ports, and each is port 53 by UDP or TCP."""
        return bool(self.ports) and all(is_dns(port.port, port.protocol) for port in self.ports or ())

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses, in order."""
        return tuple(address for endpoint in self.endpoints or () for address in endpoint.addresses or ())

    @property
    def service(self) -> str:
        """Name of the Service in the same namespace; "" without one."""
        return self.labels.get("kubernetes.io/service-name", "")


class IngressService(Part):
    name: str = ""


class IngressResource(Part):
    """An object of the Ingress's namespace, of a kind of the controller's own."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""


class IngressBackend(Part):
    service: IngressService | None = None
    resource: IngressResource | None = None


class IngressPath(Part):
    backend: IngressBackend = IngressBackend()


class IngressPaths(Part):
    paths: list[IngressPath] | None = None


class IngressRule(Part):
    host: str | None = None
    http: IngressPaths | None = None


class IngressSpec(Part):
    ingress_class_name: str | None = None
    default_backend: IngressBackend | None = None
    rules: list[IngressRule] | None = None


@api_object("networking.k8s.io/v1/ingresses", "Ingress")
class Ingress(KubernetesObject):
    spec: IngressSpec = IngressSpec()
    status: BalancedStatus = BalancedStatus()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes by field and by the older annotation."""
        return ingress_classes(self.spec.ingress_class_name, self.annotations)

    @property
    def backends(self) -> Iterator[IngressBackend]:
        """Every backend of its rules, and that of all other requests."""
        if self.spec.default_backend is not None:
            yield self.spec.default_backend
        for rule in self.spec.rules or ():
            yield from (path.backend for path in (rule.http.paths or () if rule.http is not None else ()))

    @property
    def names_its_hosts(self) -> bool:
        """Whether each rule is for one host, so that the host of a request is one of these."""
        hosts = [rule.host or "" for rule in self.spec.rules or ()]
        return bool(hosts) and self.spec.default_backend is None and all(host and "*" not in host for host in hosts)


class IngressClassSpec(Part):
    """The controller of a class, such as "k8s.io/ingress-nginx"."""

    controller: str | None = None


@api_object("networking.k8s.io/v1/ingressclasses", "IngressClass", namespaced=False)
class IngressClass(KubernetesObject):
    spec: IngressClassSpec = IngressClassSpec()


class GatewayAddress(Part):
    """`type` is IPAddress, Hostname, or a controller-specific name; `value` may be either."""

    type: str | None = None
    value: str | None = None


class GatewaySpec(Part):
    """The class of a Gateway, and the addresses that it requests."""

    gateway_class_name: str | None = None
    addresses: list[GatewayAddress] | None = None


class GatewayStatus(Part):
    addresses: list[GatewayAddress] | None = None


@api_object("gateway.networking.k8s.io/v1/gateways", "Gateway")
class Gateway(KubernetesObject):
    spec: GatewaySpec = GatewaySpec()
    status: GatewayStatus = GatewayStatus()

    @property
    def given(self) -> tuple[str, ...]:
        """Every address or host name that is assigned to it, or that it requests."""
        requested, assigned = self.spec.addresses or (), self.status.addresses or ()
        return tuple(dict.fromkeys(address.value for address in (*assigned, *requested) if address.value))


class GatewayClassSpec(Part):
    controller_name: str | None = None


@api_object("gateway.networking.k8s.io/v1/gatewayclasses", "GatewayClass", namespaced=False)
class GatewayClass(KubernetesObject):
    spec: GatewayClassSpec = GatewayClassSpec()
