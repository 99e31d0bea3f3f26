"""Services, endpoints, ingresses and gateways: what is public, and what only looks so."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.services import (
    EndpointSlice,
    Gateway,
    GatewayClass,
    Ingress,
    IngressClass,
    Service,
)
from hermetic.audit.model.findings import Severity, Verdict
from tests.kubernetes_estates import CLUSTER, NODE, POLICY, findings, manifest, pod, sealed_cluster, verdicts, with_one

PREFIX = "service.beta.kubernetes.io/"
INTERNAL = {f"{PREFIX}azure-load-balancer-internal": "true"}
LLAMA = "v1/Service inference/llama"
FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


def service(annotations: dict[str, str] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> Any:
    """The Service inference/llama."""
    return manifest(Service, "llama", "inference", annotations=annotations or {}, spec=spec, status=status or {})


def balancer(annotations: dict[str, str] | None = None, **spec: Any) -> Any:
    """The Service inference/llama as a load balancer."""
    return service(annotations, type="LoadBalancer", **spec)


def given(*addresses: dict[str, str]) -> Any:
    """The Service inference/llama with these addresses."""
    return service(INTERNAL, {"loadBalancer": {"ingress": list(addresses)}}, type="LoadBalancer")


def verdict(check: str, *changes: Any) -> Verdict:
    """The verdict about the object changed, or about the cluster where nothing is said against it."""
    verdict_of = verdicts(check, [*sealed_cluster(), *changes])
    (only,) = verdict_of.values()
    return only


@pytest.mark.parametrize("value", ["True", "TRUE", "yes", "1", "", "false", " true", "true "])
def test_every_value_but_exactly_true_is_a_public_load_balancer(value: str) -> None:
    assert verdicts("k8s-public-lb", with_one(balancer({f"{PREFIX}azure-load-balancer-internal": value}))) == {
        LLAMA: OPEN
    }


@pytest.mark.parametrize("value", ["True", "TRUE", "1", "yes", "false", ""])
def test_an_annotation_that_the_cloud_provider_does_not_read_as_internal_is_public(value: str) -> None:
    """cloud-provider-azure compares the value with "true" (consts.TrueAnnotationValue), and with nothing else."""
    assert verdict("k8s-public-lb", balancer({f"{PREFIX}azure-load-balancer-internal": value})) is OPEN


def test_no_annotation_is_a_public_load_balancer_with_its_path() -> None:
    (finding,) = findings("k8s-public-lb", with_one(balancer()))
    assert (finding.verdict, finding.severity) == (OPEN, Severity.CRITICAL)
    assert finding.path_texts == (f"internet -> public load balancer -> {LLAMA}",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("azure-pip-name", "ip"),
        ("azure-pip-name-ipv6", "ip"),
        ("azure-pip-prefix-id", "/subscriptions/x"),
        ("azure-pip-prefix-id-ipv6", "/subscriptions/x"),
        ("azure-dns-label-name", "llama"),
        ("azure-additional-public-ips", "20.1.2.3"),
        ("azure-load-balancer-ipv4", "20.1.2.3"),
        ("azure-load-balancer-ipv6", "2603:1000::1"),
    ],
)
def test_an_annotation_that_asks_for_a_public_side_outweighs_internal(name: str, value: str) -> None:
    assert verdict("k8s-public-lb", balancer({**INTERNAL, f"{PREFIX}{name}": value})) is OPEN


@pytest.mark.parametrize(
    ("annotations", "severity"),
    [
        ({"azure-pls-create": "true"}, Severity.MEDIUM),
        ({"azure-pls-create": "true", "azure-pls-visibility": "*"}, Severity.HIGH),
        (
            {"azure-pls-create": "true", "azure-pls-auto-approval": "11111111-2222-3333-4444-555555555555"},
            Severity.MEDIUM,
        ),
        ({"azure-pls-create": "true", "azure-pls-auto-approval": "11111111-2222 *"}, Severity.HIGH),
        ({"azure-pls-create": "false", "azure-pls-visibility": "*"}, None),
        ({"azure-pls-visibility": "*"}, None),
    ],
)
def test_a_private_link_service_by_annotation_lets_others_in(
    annotations: dict[str, str], severity: Severity | None
) -> None:
    """cloud-provider-azure.sigs.k8s.io/topics/pls-integration: defaults, and "*" for every subscription."""
    added = {f"{PREFIX}{name}": value for name, value in annotations.items()}
    (finding,) = findings("k8s-public-lb", with_one(balancer({**INTERNAL, **added})))
    expected = FINE if severity is None else OPEN
    assert finding.verdict is expected
    assert severity in {None, finding.severity}


def test_the_deprecated_field_asks_as_the_annotation_does() -> None:
    assert verdict("k8s-public-lb", balancer(INTERNAL, loadBalancerIP="20.1.2.3")) is OPEN


@pytest.mark.parametrize(
    "changes",
    [
        balancer(INTERNAL),
        balancer({**INTERNAL, f"{PREFIX}azure-load-balancer-ipv4": "10.1.0.9"}),
        service(type="ClusterIP"),
    ],
)
def test_internal_load_balancers_and_other_types_pass(changes: Any) -> None:
    assert verdict("k8s-public-lb", changes) is FINE


def test_a_load_balancer_of_another_controller_is_not_called_private() -> None:
    assert verdict("k8s-public-lb", balancer(INTERNAL, loadBalancerClass="example.com/tunnel")) is UNSEEN


@pytest.mark.parametrize("address", [{"ip": "20.1.2.3"}, {"hostname": "x.cloudapp.azure.com"}, {"ip": "2603:1000::1"}])
def test_a_public_address_or_any_host_name_given_is_open(address: dict[str, str]) -> None:
    assert verdicts("k8s-lb-status-ip", with_one(given({"ip": "10.1.0.9"}, address))) == {LLAMA: OPEN}


@pytest.mark.parametrize("address", [{"ip": "10.1.0.9"}, {"ip": "100.64.1.1"}, {"ip": "fd00::1"}])
def test_a_private_address_given_passes(address: dict[str, str]) -> None:
    assert verdict("k8s-lb-status-ip", given(address)) is FINE


def test_external_ips_are_open_even_when_private() -> None:
    assert verdicts("k8s-externalips", with_one(service(externalIPs=["10.9.9.9"]))) == {LLAMA: OPEN}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("huggingface.co", OPEN),
        ("HUGGINGFACE.CO.", OPEN),
        ("20.1.2.3", OPEN),
        ("", OPEN),
        ("evil.svc.example.com", OPEN),
        ("db.data.svc.cluster.local", FINE),
        ("db.data.svc", FINE),
        ("contoso.privatelink.file.core.windows.net", FINE),
        ("Contoso.PrivateLink.Blob.Core.UsGovCloudApi.net.", FINE),
        ("contoso.privatelink.vaultcore.azure.cn", FINE),
        ("aks-1.privatelink.swedencentral.azmk8s.io", FINE),
        ("contoso.swedencentral.privatelink.azurecr.io", FINE),
        ("exfil.privatelink.evil.com", OPEN),
        ("privatelink.evil.com", OPEN),
        ("a.privatelink.azurecr.io.evil.com", OPEN),
        ("a.privatelink.azurecr.io.privatelink.evil.com", OPEN),
        ("privatelink.swedencentral.cloudapp.azure.com", OPEN),
        ("privatelink.a.b.azmk8s.io", OPEN),
        ("db.corp.internal", FINE),
        ("10.4.4.4", FINE),
        ("134744072", OPEN),
        ("0x8080808", OPEN),
        ("167772161", FINE),
    ],
)
def test_an_external_name_is_open_where_it_leaves_the_cluster_and_private_zones(target: str, expected: Verdict) -> None:
    assert verdict("k8s-externalname", service(type="ExternalName", externalName=target)) is expected


def endpoint_slice(*addresses: str, kind: str = "IPv4", name: str = "llama-x", service: str = "llama") -> Any:
    """A slice of the Service inference/llama."""
    return manifest(
        EndpointSlice,
        name,
        "inference",
        labels={"kubernetes.io/service-name": service} if service else {},
        addressType=kind,
        endpoints=[{"addresses": [address]} for address in addresses],
    )


@pytest.mark.parametrize(
    ("some", "expected"),
    [
        (endpoint_slice("10.1.0.4", "20.1.2.3"), OPEN),
        (endpoint_slice("2603:1000::1", kind="IPv6"), OPEN),
        (endpoint_slice("api.openai.com", kind="FQDN"), OPEN),
        (endpoint_slice("20.1.2.3", service=""), OPEN),
        (endpoint_slice("10.1.0.4"), FINE),
        (endpoint_slice("db.data.svc.cluster.local", kind="FQDN"), FINE),
        (manifest(EndpointSlice, "none", "inference", addressType="IPv4", endpoints=None), FINE),
    ],
)
def test_an_endpoint_is_open_where_its_address_is_public(some: Any, expected: Verdict) -> None:
    assert verdict("k8s-endpoints-external", some) is expected


def test_a_pod_in_a_network_of_public_addresses_is_no_endpoint_outside() -> None:
    own = pod("p", labels={}, status={"phase": "Running", "podIPs": [{"ip": "20.1.2.3"}]})
    assert verdict("k8s-endpoints-external", own, endpoint_slice("20.1.2.3")) is FINE


def test_whose_a_public_endpoint_is_cannot_be_told_without_the_pods() -> None:
    from hermetic.audit.estate.kubernetes.pods import Pod

    verdict_of = verdicts("k8s-endpoints-external", with_one(endpoint_slice("20.1.2.3")), forbidden=[Pod])
    assert set(verdict_of.values()) == {UNSEEN}


def test_another_slice_for_the_api_servers_service_is_judged_as_any_other() -> None:
    more = manifest(
        EndpointSlice,
        "more",
        "default",
        labels={"kubernetes.io/service-name": "kubernetes"},
        addressType="IPv4",
        endpoints=[{"addresses": ["20.60.1.1"]}],
    )
    verdict_of = verdicts("k8s-endpoints-external", with_one(more))
    assert verdict_of == {"discovery.k8s.io/v1/EndpointSlice default/more": OPEN}


def test_the_api_servers_own_endpoint_is_judged_elsewhere() -> None:
    own = manifest(
        EndpointSlice,
        "kubernetes",
        "default",
        labels={"kubernetes.io/service-name": "kubernetes"},
        addressType="IPv4",
        endpoints=[{"addresses": ["20.1.2.3"]}],
    )
    assert set(verdicts("k8s-endpoints-external", with_one(own)).values()) == {FINE}


def node_with(*addresses: tuple[str, str]) -> Any:
    """The node with these addresses."""
    return manifest(
        Node, NODE, status={"addresses": [{"type": kind, "address": address} for kind, address in addresses]}
    )


NODE_PORT = service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}])


def test_a_node_port_is_open_with_an_external_node() -> None:
    outside = node_with(("InternalIP", "10.1.0.4"), ("ExternalIP", "20.1.2.3"))
    assert verdicts("k8s-nodeport", [*with_one(outside), NODE_PORT]) == {LLAMA: OPEN}


def test_a_node_port_is_open_with_any_public_load_balancer() -> None:
    public = manifest(Service, "web", "default", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})
    assert verdicts("k8s-nodeport", [*with_one(public), NODE_PORT]) == {LLAMA: OPEN}


def test_a_node_port_stays_inside_where_nothing_is_public() -> None:
    assert verdict("k8s-nodeport", NODE_PORT) is FINE


def test_a_load_balancer_that_allocates_no_node_port_has_no_such_door() -> None:
    public = balancer(allocateLoadBalancerNodePorts=False, ports=[{"port": 80}])
    assert verdicts("k8s-nodeport", with_one(public)) == {CLUSTER: FINE}


@pytest.mark.parametrize(
    ("kind", "expected"), [("ExternalIP", OPEN), ("ExternalDNS", OPEN), ("InternalIP", FINE), ("Hostname", FINE)]
)
def test_an_external_address_of_a_node_is_critical(kind: str, expected: Verdict) -> None:
    address_findings = findings("k8s-node-externalip", with_one(node_with((kind, "20.1.2.3"))))
    assert [(finding.verdict, finding.severity) for finding in address_findings] == [(expected, Severity.CRITICAL)]


def ingress(class_name: str = "nginx", status: Any = None, annotations: Any = None) -> Any:
    """The Ingress inference/web."""
    return manifest(
        Ingress, "web", "inference",
        annotations=annotations or {}, spec={"ingressClassName": class_name} if class_name else {}, status=status or {},
    )  # fmt: skip


def ingress_class(name: str, controller: str) -> Any:
    """An IngressClass of this controller."""
    return manifest(IngressClass, name, spec={"controller": controller})


PRIVATE = {"appgw.ingress.kubernetes.io/use-private-ip": "true"}
BY_ANNOTATION = {"kubernetes.io/ingress.class": "azure/application-gateway"}


def address(one: dict[str, str]) -> Any:
    """A status with this address."""
    return {"loadBalancer": {"ingress": [one]}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((ingress(status=address({"ip": "20.1.2.3"})),), OPEN),
        ((ingress(status=address({"hostname": "web.example.com"})),), OPEN),
        ((ingress("agic"), ingress_class("agic", "azure/application-gateway")), OPEN),
        ((ingress("", annotations={"kubernetes.io/ingress.class": "azure/application-gateway"}),), OPEN),
        (
            (
                ingress("agic", annotations={"appgw.ingress.kubernetes.io/use-private-ip": "true"}),
                ingress_class("agic", "azure/application-gateway"),
            ),
            FINE,
        ),
        ((ingress("azure-application-gateway", annotations=PRIVATE),), FINE),
        ((ingress("azure-alb-external", annotations=PRIVATE),), OPEN),
        ((ingress("", annotations={**PRIVATE, **BY_ANNOTATION}),), FINE),
        ((ingress("agc", annotations=PRIVATE), ingress_class("agc", "alb.networking.azure.io/alb-controller")), OPEN),
        (
            (
                ingress("azure-application-gateway", annotations=PRIVATE),
                ingress_class("azure-application-gateway", "alb.networking.azure.io/alb-controller"),
            ),
            OPEN,
        ),
        ((ingress("nginx", annotations=BY_ANNOTATION), ingress_class("nginx", "k8s.io/ingress-nginx")), OPEN),
        ((ingress("azure-alb-external", annotations={**PRIVATE, **BY_ANNOTATION}),), OPEN),
        ((ingress(status=address({"ip": "10.1.0.9"})), ingress_class("nginx", "k8s.io/ingress-nginx")), FINE),
        ((ingress(), ingress_class("nginx", "k8s.io/ingress-nginx")), FINE),
        ((ingress_class("agic", "azure/application-gateway"),), FINE),
    ],
)
def test_an_ingress_is_open_by_its_address_or_its_controller(changes: tuple[Any, ...], expected: Verdict) -> None:
    assert verdict("k8s-ingress-gateway", *changes) is expected


@pytest.mark.parametrize(
    ("value", "controller", "expected"),
    [
        ("20.1.2.3", "istio.io/gateway-controller", OPEN),
        ("web.example.com", "istio.io/gateway-controller", OPEN),
        ("10.1.0.9", "istio.io/gateway-controller", FINE),
        ("10.1.0.9", "alb.networking.azure.io/alb-controller", OPEN),
    ],
)
def test_a_gateway_is_open_by_its_address_or_its_controller(value: str, controller: str, expected: Verdict) -> None:
    gateway = manifest(
        Gateway, "web", "inference",
        spec={"gatewayClassName": "c"}, status={"addresses": [{"type": "IPAddress", "value": value}]},
    )  # fmt: skip
    served = manifest(GatewayClass, "c", spec={"controllerName": controller})
    assert verdict("k8s-ingress-gateway", gateway, served) is expected


OWN_RANGE = "198.18.0.0/15"


@pytest.mark.parametrize(
    ("address", "ranges", "expected"),
    [
        ("198.18.4.7", (OWN_RANGE,), Verdict.PASS),
        ("198.18.4.7", (), Verdict.FAIL),
        ("198.20.0.1", (OWN_RANGE,), Verdict.FAIL),
        ("2001:db8::1", (OWN_RANGE,), Verdict.FAIL),
        ("lb.example.com", (OWN_RANGE,), Verdict.FAIL),
    ],
)
def test_an_address_of_a_range_of_our_own_is_private(address: str, ranges: tuple[str, ...], expected: Verdict) -> None:
    """The operator serves behind such an address, so the audit must not close the gate because of it."""
    balancer_status = {
        "loadBalancer": {"ingress": [{"ip": address} if address[0].isdigit() else {"hostname": address}]}
    }
    service = manifest(
        Service,
        "llama",
        "inference",
        annotations=INTERNAL,
        spec={"type": "LoadBalancer", "ports": [{"port": 80}]},
        status=balancer_status,
    )
    policy = POLICY.model_copy(update={"additional_private_ranges": ranges})
    service_verdicts = set(verdicts("k8s-lb-status-ip", with_one(service), policy=policy).values())
    assert service_verdicts == {expected}
