"""Istio's objects that concern destinations outside of the mesh."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from hermetic.api.image_references import registry_of
from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.corefile import bare_host
from hermetic.audit.estate.kubernetes.mesh_config import hosts_outside_of
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Trimmed, WithUnreadFields, api_object
from hermetic.audit.estate.resource import Part


class MeshEndpoint(WithUnreadFields):
    """An address or a name."""

    HARMLESS: ClassVar = frozenset({"labels", "locality", "network", "ports", "serviceAccount", "weight"})
    address: str | None = None


class ServiceEntrySpec(WithUnreadFields):
    """`location` is MESH_EXTERNAL (also where absent) or MESH_INTERNAL; `resolution` NONE, STATIC, DNS; open."""

    HARMLESS: ClassVar = frozenset({"exportTo", "location", "ports", "resolution", "subjectAltNames"})
    hosts: list[str] | None = None
    addresses: list[str] | None = None
    endpoints: list[MeshEndpoint] | None = None
    workload_selector: FreeMap[Any] | None = None


@api_object("networking.istio.io/v1/serviceentries", "ServiceEntry")
class ServiceEntry(KubernetesObject):
    spec: ServiceEntrySpec = ServiceEntrySpec()

    @property
    def leads_to(self) -> tuple[str, ...]:
        """The destinations of its traffic: its endpoints, or else its hosts and addresses."""
        endpoints = tuple(endpoint.address for endpoint in self.spec.endpoints or () if endpoint.address)
        return endpoints or (*(self.spec.hosts or ()), *(self.spec.addresses or ()))


@api_object("networking.istio.io/v1/workloadentries", "WorkloadEntry")
class WorkloadEntry(KubernetesObject):
    spec: MeshEndpoint = MeshEndpoint()


class MeshGatewaySpec(Part):
    """The selector of the proxies that serve it."""

    selector: FreeMap[str] | None = None


@api_object("networking.istio.io/v1/gateways", "Gateway")
class MeshGateway(KubernetesObject):
    spec: MeshGatewaySpec = MeshGatewaySpec()


class MeshDestination(Part):
    """A name of the mesh's registry."""

    host: str = ""


class OutboundTrafficPolicy(WithUnreadFields):
    """`mode` is ALLOW_ANY or REGISTRY_ONLY; open."""

    mode: str | None = None
    egress_proxy: MeshDestination | None = None


class SidecarSpec(WithUnreadFields):
    """The outbound traffic policy of sidecars for destinations that the mesh does not know."""

    HARMLESS: ClassVar = frozenset({"egress", "inboundConnectionPool", "ingress", "workloadSelector"})
    outbound_traffic_policy: OutboundTrafficPolicy | None = None


@api_object("networking.istio.io/v1/sidecars", "Sidecar")
class Sidecar(KubernetesObject):
    spec: SidecarSpec = SidecarSpec()


class MeshRoute(Part):
    destination: MeshDestination = MeshDestination()


class MeshMirror(Part):
    """A destination that gets a copy of the traffic."""

    destination: MeshDestination | None = None


class MeshRule(WithUnreadFields):
    """One rule: its destinations, and those of copies."""

    HARMLESS: ClassVar = frozenset(
        {"corsPolicy", "delegate", "directResponse", "fault", "headers", "match", "mirrorPercent", "mirrorPercentage",
         "mirror_percent", "name", "redirect", "retries", "rewrite", "timeout"}
    )  # fmt: skip
    route: list[MeshRoute] | None = None
    mirror: MeshDestination | None = None
    mirrors: list[MeshMirror] | None = None


class VirtualServiceSpec(WithUnreadFields):
    HARMLESS: ClassVar = frozenset({"exportTo", "gateways", "hosts"})
    http: list[MeshRule] | None = None
    tls: list[MeshRule] | None = None
    tcp: list[MeshRule] | None = None


@api_object("networking.istio.io/v1/virtualservices", "VirtualService")
class VirtualService(KubernetesObject):
    spec: VirtualServiceSpec = VirtualServiceSpec()

    @property
    def leads_to(self) -> Iterator[str]:
        """Every host that traffic or a copy of it goes to."""
        for rules in (self.spec.http, self.spec.tls, self.spec.tcp):
            for rule in rules or ():
                yield from (route.destination.host for route in rule.route or ())
                yield from (mirror.host for mirror in (rule.mirror,) if mirror is not None)
                yield from (mirror.destination.host for mirror in rule.mirrors or () if mirror.destination is not None)


class Tunnel(Part):
    """The destination that proxies wrap a connection for, whatever host the rule is for."""

    target_host: str = ""


class PortTrafficPolicy(Part):
    tunnel: Tunnel | None = None


class TrafficPolicy(PortTrafficPolicy):
    """Of a destination or a subset of it, and of single ports."""

    port_level_settings: list[PortTrafficPolicy] | None = None


class MeshSubset(Part):
    traffic_policy: TrafficPolicy | None = None


class DestinationRuleSpec(Part):
    traffic_policy: TrafficPolicy | None = None
    subsets: list[MeshSubset] | None = None


@api_object("networking.istio.io/v1/destinationrules", "DestinationRule")
class DestinationRule(KubernetesObject):
    spec: DestinationRuleSpec = DestinationRuleSpec()

    @property
    def tunnels_to(self) -> Iterator[str]:
        """Every destination of a tunnel. Source: istio.io/docs/reference/config/networking/destination-rule."""
        for policy in (self.spec.traffic_policy, *(subset.traffic_policy for subset in self.spec.subsets or ())):
            if policy is not None:
                every = (policy, *(policy.port_level_settings or ()))
                yield from (settings.tunnel.target_host for settings in every if settings.tunnel is not None)


class ProxyConfigSpec(Trimmed):
    """Environment variables of proxies; kept are the hosts outside among their values, which may be secret."""

    environment_variables: FreeMap[str] | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Reduce each value to the hosts outside that it names."""
        variables = fields.get("environmentVariables")
        if not isinstance(variables, Mapping):
            return fields
        named = {name: " ".join(hosts_outside_of({name: value})) for name, value in variables.items()}
        return {**fields, "environmentVariables": {name: hosts for name, hosts in named.items() if hosts}}


@api_object("networking.istio.io/v1beta1/proxyconfigs", "ProxyConfig")
class ProxyConfig(KubernetesObject):
    spec: ProxyConfigSpec = ProxyConfigSpec()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts outside that its variables name."""
        return tuple(host for hosts in (self.spec.environment_variables or {}).values() for host in hosts.split())


class JwtRule(Part):
    """An accepted issuer of tokens. Without keys in the rule itself, istiod fetches them."""

    issuer: str = ""
    jwks_uri: str = ""
    jwks: str = ""


class RequestAuthenticationSpec(Part):
    jwt_rules: list[JwtRule] | None = None


@api_object("security.istio.io/v1/requestauthentications", "RequestAuthentication")
class RequestAuthentication(KubernetesObject):
    spec: RequestAuthenticationSpec = RequestAuthenticationSpec()

    @property
    def fetches(self) -> Iterator[str]:
        """Every URL that keys are fetched from: that of the keys, or else the issuer, whose metadata names it."""
        for rule in self.spec.jwt_rules or ():
            if url := rule.jwks_uri or ("" if rule.jwks else rule.issuer):
                yield url


class WasmPluginSpec(Part):
    """The source of the code: a URL (oci, http, https, file), or an image without a scheme."""

    url: str = ""


@api_object("extensions.istio.io/v1alpha1/wasmplugins", "WasmPlugin")
class WasmPlugin(KubernetesObject):
    spec: WasmPluginSpec = WasmPluginSpec()

    @property
    def host(self) -> str:
        """The host that the code is fetched from; "" for a local file, and without a source."""
        scheme, mark, remainder = self.spec.url.partition("://")
        if scheme.lower() == "file" or not self.spec.url:
            return ""
        return bare_host(
            self.spec.url if scheme.lower() in {"http", "https"} else registry_of(remainder if mark else scheme)
        )
