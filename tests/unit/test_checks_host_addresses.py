"""Addresses that the host of a machine answers: neither inside nor public, and found wherever an object names one.

Sources: learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16; AKS release notes of 2026-04-02 (an
admission policy against Services that lead to the WireServer's address).
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.calico_policies import CalicoGlobalNetworkSet, CalicoNetworkPolicy
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.cilium_policies import CiliumNetworkPolicy
from hermetic.audit.estate.kubernetes.mesh import ServiceEntry, WorkloadEntry
from hermetic.audit.estate.kubernetes.policies import AdminNetworkPolicy, ClusterNetworkPolicy, NetworkPolicy
from hermetic.audit.estate.kubernetes.services import EndpointSlice, Service
from hermetic.audit.model.findings import Severity, Verdict
from tests.kubernetes_estates import container, findings, manifest, pod, sealed_cluster

HOST, METADATA = "168.63.129.16", "169.254.169.254"
DNS = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]


def kubernetes(cidr: str, ports: Any = None, *excepted: str) -> Any:
    """A NetworkPolicy that lets traffic go to a range, at these ports."""
    rule = {"to": [{"ipBlock": {"cidr": cidr, "except": list(excepted)}}], **({"ports": ports} if ports else {})}
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [rule]}
    return manifest(NetworkPolicy, "p", "team", spec=spec)


def cilium(**rule: Any) -> Any:
    """A CiliumNetworkPolicy of one egress rule."""
    return manifest(CiliumNetworkPolicy, "p", "team", spec={"endpointSelector": {}, "egress": [rule]})


def calico(**rule: Any) -> Any:
    """A NetworkPolicy of Calico's, of one egress rule."""
    return manifest(CalicoNetworkPolicy, "p", "team", spec={"egress": [{"action": "Allow", **rule}]})


def admin(kind: Any, **rule: Any) -> Any:
    """A policy of administrators, of one egress rule."""
    return manifest(kind, "p", spec={"egress": [{"to": [{"networks": [f"{HOST}/32"]}], **rule}]})


def endpoint_slice(address: str, *ports: dict[str, Any]) -> Any:
    """A slice of Service team/wire that leads to an address."""
    labels = {"kubernetes.io/service-name": "wire"}
    fields = {"addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": list(ports)}
    return manifest(EndpointSlice, "wire-x", "team", labels=labels, **fields)


def corefile(line: str) -> Any:
    """AKS's own ConfigMap for a team's zones, with one line in a server block."""
    return manifest(ConfigMap, "coredns-custom", "kube-system", data={"x.server": f"x.example:53 {{\n    {line}\n}}"})


POLICIES_OPEN: dict[str, tuple[Any, Severity]] = {
    "every port": (kubernetes(f"{HOST}/32"), Severity.HIGH),
    "WireServer": (kubernetes(f"{HOST}/32", [{"port": 80}]), Severity.HIGH),
    "host plug-in": (kubernetes(f"{HOST}/32", [{"port": 32526, "protocol": "TCP"}]), Severity.HIGH),
    "DNS and more": (kubernetes(f"{HOST}/32", [*DNS, {"port": 80}]), Severity.HIGH),
    "a span from DNS": (kubernetes(f"{HOST}/32", [{"port": 53, "endPort": 80}]), Severity.HIGH),
    "a port by name": (kubernetes(f"{HOST}/32", [{"port": "dns"}]), Severity.HIGH),
    "as IPv6": (kubernetes(f"::ffff:{HOST}/128", [{"port": 80}]), Severity.HIGH),
    "metadata": (kubernetes(f"{METADATA}/32"), Severity.MEDIUM),
    "metadata at the port of DNS": (kubernetes(f"{METADATA}/32", DNS), Severity.MEDIUM),
    "link-local range": (kubernetes("169.254.0.0/16"), Severity.MEDIUM),
    "a part of it": (kubernetes("169.254.128.0/17", None, "169.254.169.0/25"), Severity.MEDIUM),
    "cilium": (cilium(toCIDR=[HOST + "/32"]), Severity.HIGH),
    "cilium, WireServer": (cilium(toCIDR=[HOST], toPorts=[{"ports": [{"port": "80"}]}]), Severity.HIGH),
    "cilium, no ports": (cilium(toCIDRSet=[{"cidr": f"{HOST}/32"}], toPorts=[{}]), Severity.HIGH),
    "calico": (calico(destination={"nets": [f"{HOST}/32"]}), Severity.HIGH),
    "calico, ports": (calico(protocol="TCP", destination={"nets": [HOST], "ports": [53, "80:90"]}), Severity.HIGH),
    "admin": (admin(AdminNetworkPolicy, action="Allow"), Severity.HIGH),
    "admin, port": (admin(AdminNetworkPolicy, action="Allow", ports=[{"portNumber": {"port": 80}}]), Severity.HIGH),
    "cluster": (
        admin(ClusterNetworkPolicy, action="Accept", protocols=[{"tcp": {"destinationPort": {"number": 80}}}]),
        Severity.HIGH,
    ),
}
POLICIES_FINE: dict[str, Any] = {
    "DNS": kubernetes(f"{HOST}/32", DNS),
    "DNS, one port": kubernetes(f"{HOST}/32", [{"port": 53, "endPort": 53}]),
    "node-local DNS": kubernetes("169.254.20.10/32"),
    "LocalDNS": kubernetes("169.254.10.0/24", DNS),
    "link-local without metadata": kubernetes("169.254.0.0/16", None, f"{METADATA}/32"),
    "cilium": cilium(toCIDR=[f"{HOST}/32"], toPorts=[{"ports": [{"port": "53", "protocol": "ANY"}]}]),
    "calico": calico(protocol="UDP", destination={"nets": [f"{HOST}/32"], "ports": [53]}),
    "admin": admin(AdminNetworkPolicy, action="Allow", ports=[{"portNumber": {"protocol": "UDP", "port": 53}}]),
    "admin, denied": admin(AdminNetworkPolicy, action="Deny"),
    "cluster": admin(ClusterNetworkPolicy, action="Accept", protocols=[{"udp": {"destinationPort": {"number": 53}}}]),
}


@pytest.mark.parametrize("case", POLICIES_OPEN)
def test_policy_that_allows_a_host_address_fails(case: str) -> None:
    policy, severity = POLICIES_OPEN[case]
    (finding,) = findings("k8s-policy-allow-all", [*sealed_cluster(), policy])
    assert (finding.verdict, finding.reason, finding.severity) == (Verdict.FAIL, "HostAddressAllowed", severity)


@pytest.mark.parametrize("case", POLICIES_FINE)
def test_policy_that_allows_dns_or_local_addresses_passes(case: str) -> None:
    (finding,) = findings("k8s-policy-allow-all", [*sealed_cluster(), POLICIES_FINE[case]])
    assert finding.verdict is Verdict.PASS


def test_calico_set_with_the_host_address_makes_a_selector_unknown() -> None:
    hosts = manifest(CalicoGlobalNetworkSet, "hosts", spec={"nets": [f"{HOST}/32"]})
    rules = [hosts, calico(destination={"selector": "all()"})]
    assert {finding.verdict for finding in findings("k8s-policy-allow-all", [*sealed_cluster(), *rules])} == {
        Verdict.UNKNOWN
    }


NAMED: dict[str, tuple[str, Any]] = {
    "slice, WireServer": ("k8s-endpoints-external", endpoint_slice(HOST, {"port": 80})),
    "slice, host plug-in": ("k8s-endpoints-external", endpoint_slice(HOST, {"port": 32526, "protocol": "TCP"})),
    "slice, every port": ("k8s-endpoints-external", endpoint_slice(HOST)),
    "slice, DNS and more": ("k8s-endpoints-external", endpoint_slice(HOST, {"port": 53}, {"port": 80})),
    "slice, metadata": ("k8s-endpoints-external", endpoint_slice(METADATA, {"port": 53})),
    "external name": (
        "k8s-externalname",
        manifest(Service, "s", "team", spec={"type": "ExternalName", "externalName": HOST}),
    ),
    "external name, decimal": (
        "k8s-externalname",
        manifest(Service, "s", "team", spec={"type": "ExternalName", "externalName": "2822734096"}),
    ),
    "balancer": (
        "k8s-lb-status-ip",
        manifest(
            Service,
            "s",
            "team",
            spec={"type": "LoadBalancer"},
            status={"loadBalancer": {"ingress": [{"ip": HOST}]}},
        ),
    ),
    "mesh": ("k8s-mesh-egress", manifest(ServiceEntry, "s", "team", spec={"hosts": ["x.local"], "addresses": [HOST]})),
    "mesh, range": (
        "k8s-mesh-egress",
        manifest(ServiceEntry, "s", "team", spec={"hosts": ["x.local"], "addresses": ["169.254.0.0/16"]}),
    ),
    "mesh, workload": ("k8s-mesh-egress", manifest(WorkloadEntry, "s", "team", spec={"address": METADATA})),
    "forwarder, metadata": ("coredns-custom", corefile(f"forward . {METADATA}")),
    "forwarder, WireServer": ("coredns-custom", corefile(f"forward . {HOST}:80")),
    "forwarder, TLS": ("coredns-custom", corefile(f"forward . tls://{HOST}")),
    "forwarder, grpc": ("coredns-custom", corefile(f"grpc . {HOST}")),
    "hosts": ("coredns-custom", corefile(f"hosts {{\n {METADATA} a.example\n}}")),
    "template": ("coredns-custom", corefile(f'template IN A {{\n answer "x. 60 IN A {HOST}"\n}}')),
    "alias": ("k8s-outside-endpoint", pod("web-1", "team", spec={"hostAliases": [{"ip": HOST, "hostnames": ["a"]}]})),
    "resolver": ("k8s-outside-endpoint", pod("web-1", "team", spec={"dnsConfig": {"nameservers": [METADATA]}})),
    "probe": (
        "k8s-outside-endpoint",
        pod(
            "web-1", "team", spec={"containers": [container(livenessProbe={"httpGet": {"host": METADATA, "port": 80}})]}
        ),
    ),
}
DNS_NAMED: dict[str, tuple[str, Any]] = {
    "slice": ("k8s-endpoints-external", endpoint_slice(HOST, {"port": 53, "protocol": "UDP"}, {"port": 53})),
    "resolver": ("k8s-outside-endpoint", pod("web-1", "team", spec={"dnsConfig": {"nameservers": [HOST]}})),
    "forwarder": ("coredns-custom", corefile(f"forward . {HOST}:53 dns://{HOST}")),
}


@pytest.mark.parametrize("case", NAMED)
def test_object_that_leads_to_a_host_address_fails(case: str) -> None:
    check, planted = NAMED[case]
    assert Verdict.FAIL in {finding.verdict for finding in findings(check, [*sealed_cluster(), planted])}


@pytest.mark.parametrize("case", DNS_NAMED)
def test_object_that_leads_to_port_53_of_azures_resolver_passes(case: str) -> None:
    check, planted = DNS_NAMED[case]
    assert {finding.verdict for finding in findings(check, [*sealed_cluster(), planted])} == {Verdict.PASS}


def test_slice_of_a_pod_that_claims_the_host_address_fails() -> None:
    claiming = pod("web-1", "team", status={"phase": "Running", "podIPs": [{"ip": HOST}]})
    planted = [claiming, endpoint_slice(HOST, {"port": 80})]
    assert Verdict.FAIL in {
        finding.verdict for finding in findings("k8s-endpoints-external", [*sealed_cluster(), *planted])
    }
