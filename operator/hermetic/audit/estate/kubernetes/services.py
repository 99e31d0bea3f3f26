"""What leads into the cluster, and what a name inside it can lead out to."""

from __future__ import annotations

from typing import ClassVar

from hermetic.api.public_services import given, ingress_class, is_internal
from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.resource import Part


class Address(Part):
    """An address that a load balancer gave: one of the two."""

    ip: str | None = None
    hostname: str | None = None


class LoadBalancerStatus(Part):
    """Every address that was given so far."""

    ingress: list[Address] | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """Every address or host name."""
        return tuple(one for one in given((each.ip, each.hostname) for each in self.ingress or ()) if one)


class ServicePort(Part):
    """A port, and the port of every node that leads to it."""

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


class ServiceStatus(Part):
    """What became of it."""

    load_balancer: LoadBalancerStatus | None = None


class Service(KubernetesObject):
    """v1/services."""

    TYPE: ClassVar[str] = "v1/services"
    KIND: ClassVar[str] = "Service"

    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def is_load_balancer(self) -> bool:
        """Whether a cloud is asked for an address."""
        return self.spec.type == "LoadBalancer"

    @property
    def is_internal(self) -> bool:
        """Whether its load balancer is asked to be private."""
        return is_internal(self.annotations)

    @property
    def given(self) -> tuple[str, ...]:
        """Every address or host name that its load balancer gave."""
        balancer = self.status.load_balancer
        return balancer.given if balancer else ()

    @property
    def node_ports(self) -> tuple[int, ...]:
        """Ports of every node that lead to it."""
        return tuple(port.node_port for port in self.spec.ports or () if port.node_port)


class SliceEndpoint(Part):
    """One place behind a Service."""

    addresses: list[str] | None = None


class EndpointSlice(KubernetesObject):
    """discovery.k8s.io/v1/endpointslices. `address_type` is IPv4, IPv6 or FQDN; open."""

    TYPE: ClassVar[str] = "discovery.k8s.io/v1/endpointslices"
    KIND: ClassVar[str] = "EndpointSlice"

    address_type: str | None = None
    endpoints: list[SliceEndpoint] | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses, in order."""
        return tuple(address for endpoint in self.endpoints or () for address in endpoint.addresses or ())

    @property
    def service(self) -> str:
        """Name of the Service in the same namespace; "" where it serves none."""
        return self.labels.get("kubernetes.io/service-name", "")


class IngressSpec(Part):
    """Which class serves it."""

    ingress_class_name: str | None = None


class IngressStatus(Part):
    """What became of it."""

    load_balancer: LoadBalancerStatus | None = None


class Ingress(KubernetesObject):
    """networking.k8s.io/v1/ingresses."""

    TYPE: ClassVar[str] = "networking.k8s.io/v1/ingresses"
    KIND: ClassVar[str] = "Ingress"

    spec: IngressSpec = IngressSpec()
    status: IngressStatus = IngressStatus()

    @property
    def class_name(self) -> str:
        """The class by field, or by the annotation that came before it."""
        return ingress_class(self.spec.ingress_class_name, self.annotations)

    @property
    def given(self) -> tuple[str, ...]:
        """Every address or host name that it was given."""
        balancer = self.status.load_balancer
        return balancer.given if balancer else ()


class IngressClassSpec(Part):
    """Who serves a class, by a name such as "k8s.io/ingress-nginx"."""

    controller: str | None = None


class IngressClass(KubernetesObject):
    """networking.k8s.io/v1/ingressclasses."""

    TYPE: ClassVar[str] = "networking.k8s.io/v1/ingressclasses"
    KIND: ClassVar[str] = "IngressClass"
    NAMESPACED: ClassVar[bool] = False

    spec: IngressClassSpec = IngressClassSpec()


class GatewayAddress(Part):
    """`type` is IPAddress, Hostname, or a name of its controller's own; `value` may be either."""

    type: str | None = None
    value: str | None = None


class GatewaySpec(Part):
    """Which class serves it, and which addresses it asks for."""

    gateway_class_name: str | None = None
    addresses: list[GatewayAddress] | None = None


class GatewayStatus(Part):
    """What became of it."""

    addresses: list[GatewayAddress] | None = None


class Gateway(KubernetesObject):
    """gateway.networking.k8s.io/v1/gateways."""

    TYPE: ClassVar[str] = "gateway.networking.k8s.io/v1/gateways"
    KIND: ClassVar[str] = "Gateway"

    spec: GatewaySpec = GatewaySpec()
    status: GatewayStatus = GatewayStatus()

    @property
    def given(self) -> tuple[str, ...]:
        """Every address or host name that it was given, or asks for."""
        asked, given = self.spec.addresses or (), self.status.addresses or ()
        return tuple(dict.fromkeys(one.value for one in (*given, *asked) if one.value))


class GatewayClassSpec(Part):
    """Who serves a class."""

    controller_name: str | None = None


class GatewayClass(KubernetesObject):
    """gateway.networking.k8s.io/v1/gatewayclasses."""

    TYPE: ClassVar[str] = "gateway.networking.k8s.io/v1/gatewayclasses"
    KIND: ClassVar[str] = "GatewayClass"
    NAMESPACED: ClassVar[bool] = False

    spec: GatewayClassSpec = GatewayClassSpec()
