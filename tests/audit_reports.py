"""Reports as an audit would hand them over, and the pages of the checks that they name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from hermetic.audit.checks.registry import PAGES
from hermetic.audit.model.findings import AcceptedException, CheckPage, Evidence, Finding, Severity, Verdict
from hermetic.audit.result.report import Report
from tests.drawn_paths import hops
from tests.scenarios import CLUSTER

STARTED = datetime(2026, 11, 24, 12, 0, 3, tzinfo=UTC)
FINISHED = datetime(2026, 11, 24, 12, 1, 14, tzinfo=UTC)
GROUP = CLUSTER.partition("/providers/")[0]
NETWORK = f"{GROUP}/providers/Microsoft.Network"
VNET = f"{NETWORK}/virtualNetworks/vnet-spoke"
NODES, PODS = f"{VNET}/subnets/snet-nodes", f"{VNET}/subnets/snet-pods"
HUB_PEERING = f"{VNET}/virtualNetworkPeerings/to-hub"
OTHER_PEERING = f"{VNET}/virtualNetworkPeerings/to-shared-services"
FIREWALL = f"{NETWORK.replace('rg-gpu', 'rg-hub')}/azureFirewalls/afw-hub"
SCRIPT = "<script>alert(1)</script>"

_TITLES = {
    "subnet-default-outbound": (
        "A. Outbound methods",
        "critical",
        "Subnets of the cluster have no default outbound access",
    ),
    "subnet-nat-gateway": ("A. Outbound methods", "critical", "No NAT gateway is attached to a subnet of the cluster"),
    "nic-default-outbound": ("A. Outbound methods", "critical", "No network interface kept a hidden public address"),
    "nodepool-node-public-ip": ("A. Outbound methods", "critical", "No pool gives its nodes public addresses"),
    "lb-outbound-rule": ("A. Outbound methods", "critical", "No load balancer translates outbound traffic of nodes"),
    "route-default-internet": ("B. Routes", "critical", "No user route sends everything to the internet"),
    "route-table-missing": ("B. Routes", "low", "Every subnet has a route table that drops what is not meant"),
    "effective-routes": ("B. Routes", "critical", "The routes in force lead nowhere outside"),
    "peering-any": ("C. VNet topology", "high", "Only listed networks are peered"),
    "firewall-in-path": ("C. VNet topology", "high", "No firewall stands between the cluster and the internet"),
    "cluster-dual-stack": ("D. IPv6", "high", "The cluster speaks IPv4 only"),
    "nsg-internet-deny": ("E. Network security groups", "high", "A security rule denies the internet before any allow"),
    "nsg-platform-dns": ("E. Network security groups", "medium", "The platform's resolver is closed to nodes"),
    "svc-endpoint-storage": ("F. Service endpoints", "critical", "No subnet reaches storage past its routes"),
    "aks-network-policy": ("H. Cluster", "high", "A policy engine enforces network policies"),
    "aks-node-rg-lockdown": ("H. Cluster", "medium", "Other accounts cannot change the node resource group"),
    "k8s-default-deny-egress": ("I. Kubernetes", "high", "Every namespace denies egress by default"),
}


def pages() -> Mapping[str, CheckPage]:
    """The pages of the checks in these reports, a short version of the real ones."""
    return {
        check: CheckPage(
            id=check,
            title=title,
            severity=Severity(severity),
            why=f"Where this does not hold, a machine of the cluster may find an egress path. Wanted: {title}.",
            reads=("the resource as Azure Resource Manager returns it",),
            remedy=f"hermetic explain {check}",
            source="Azure: Outbound connectivity",
            family=family,
            action=PAGES[check].action,
        )
        for check, (family, severity, title) in _TITLES.items()
    }


def seen(resource: str, version: str = "2025-05-01", status: int = 200) -> Evidence:
    """What Azure Resource Manager answered when it was asked for the resource."""
    request = f"GET {resource}?api-version={version}"
    body = hashlib.sha256(request.encode()).hexdigest()
    return Evidence(request, status, body if status == 200 else None)


def finding(check: str, resource: str, verdict: Verdict, reason: str, message: str, **fields: object) -> Finding:
    """One finding with the severity of its check and one look as evidence; `fields` replaces what it is given."""
    plain = Finding(check, resource, verdict, Severity(_TITLES[check][1]), reason, message, evidence=(seen(resource),))
    return replace(plain, **fields)  # type: ignore[arg-type]


def a_failing_report() -> Report:
    """An estate with two egress paths, one thing that could not be seen, one accepted hub and some warnings."""
    return Report(
        cluster=CLUSTER,
        sources=("azure",),
        profile="sealed",
        started_at=STARTED,
        finished_at=FINISHED,
        findings=(*_fails(), *_undecided(), *_passes()),
        not_asked={"kube": ("k8s-public-lb", "k8s-externalips"), "probe": ("dns-recursion", "probe-tcp")},
        notes=("The exception for peering-any on to-shared-services expired on 2026-10-31 and is ignored.",),
        tool_version="0.1.0",
    )


def a_sealed_report() -> Report:
    """An estate without an egress path."""
    return replace(a_failing_report(), findings=tuple(_passes()), notes=())


def an_empty_report() -> Report:
    """An audit that looked at nothing."""
    return replace(a_failing_report(), findings=(), notes=(), not_asked={})


def a_hostile_report() -> Report:
    """Names and messages that try to be something else in every format."""
    hostile = (
        SCRIPT,
        "</script><script>alert(1)</script>",
        "<!--<script>",
        '"><img src=x onerror=alert(1)>',
        "]]>\x00\x1b[31m\x0b\ud800\ufffe",
        "[click](javascript:alert(1))",
        "=cmd|' /C calc'!A0",
        "{{ 7 * 7 }}{% raw %}",
        "\u202egnp.exe",
    )
    findings = tuple(
        Finding(
            "peering-any", name, Verdict.FAIL, Severity.HIGH, name, name, name,
            (hops(f"{name} -> nat gateway -> internet"),), (Evidence(f"GET {name}", 200, "ab" * 32),),
        )
        for name in hostile
    )  # fmt: skip
    return replace(a_failing_report(), findings=findings, cluster=SCRIPT, notes=hostile, not_asked={SCRIPT: hostile})


def _fails() -> Iterator[Finding]:
    yield finding(
        "subnet-default-outbound", NODES, Verdict.FAIL, "DefaultOutboundNotDisabled",
        "defaultOutboundAccess is not set on snet-nodes, which means that it is allowed; its machines get a hidden "
        "public address. outboundType none of the cluster does not change that.",
        remedy=f"az network vnet subnet update --ids {NODES} --default-outbound-access false\n"
        "Then stop and deallocate the machines: an address that was given stays until then.",
        paths=(hops("subnet snet-nodes -> default outbound -> internet"),),
        evidence=(seen(NODES), seen(VNET)),
    )  # fmt: skip
    yield finding(
        "subnet-nat-gateway", PODS, Verdict.FAIL, "NatGatewayAttached",
        "natGateway nat-egress is attached to snet-pods. A route 0.0.0.0/0 to None masks it today; one change of the "
        "route table opens it.",
        remedy=f"az network vnet subnet update --ids {PODS} --remove natGateway",
        paths=(hops("subnet snet-pods -> nat gateway nat-egress -> public ip pip-egress -> internet"),),
    )  # fmt: skip
    yield finding(
        "peering-any", OTHER_PEERING, Verdict.FAIL, "PeeringNotAllowed",
        "vnet-spoke is connected to vnet-shared, which the policy file does not list.",
        remedy="Remove the peering, or list the network under allowedPeerings of the policy file.",
        paths=(hops("vnet vnet-spoke -> peer vnet vnet-shared -> firewall afw-shared -> internet"),),
    )  # fmt: skip
    yield finding(
        "nsg-platform-dns", NODES, Verdict.FAIL, "PlatformDnsOpen",
        "Nothing denies the tag AzurePlatformDNS: recursion through 168.63.129.16 can carry data out.",
        paths=(hops("subnet snet-nodes -> platform dns -> internet"),),
    )  # fmt: skip
    for subnet in (NODES, PODS):
        yield finding(
            "route-table-missing", subnet, Verdict.FAIL, "NoRouteTable", "The subnet has no route table."
        )  # fmt: skip


def _undecided() -> Iterator[Finding]:
    yield finding(
        "nic-default-outbound", f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/aks-gpu-vmss",
        Verdict.UNKNOWN, "NotSeen",
        "defaultOutboundConnectivityEnabled is in no answer about the 4 network interfaces of this scale set.",
        remedy="Put a route 0.0.0.0/0 to None on the subnet, which closes the path whatever the interfaces kept.",
        evidence=(seen(NODES, "2018-10-01"),),
    )  # fmt: skip
    yield finding(
        "firewall-in-path", FIREWALL, Verdict.UNKNOWN, "Forbidden",
        "Azure answered 403: Microsoft.Network/azureFirewalls/read is missing on the subscription of the hub.",
        remedy="Grant Microsoft.Network/azureFirewalls/read there to the identity that ran the audit.",
        evidence=(seen(FIREWALL, status=403),),
    )  # fmt: skip
    yield finding(
        "peering-any", HUB_PEERING, Verdict.EXCEPTED, "PeeringNotAllowed",
        "vnet-spoke is connected to vnet-hub, which the policy file does not list.",
        paths=(hops("vnet vnet-spoke -> peer vnet vnet-hub"),),
        exception=AcceptedException("The hub holds the registry's private endpoint.", "Network team", "2027-03-31"),
    )  # fmt: skip


def _passes() -> Iterator[Finding]:
    for subnet in (NODES, PODS):
        for check in ("route-default-internet", "nsg-internet-deny", "svc-endpoint-storage"):
            yield finding(check, subnet, Verdict.PASS, "Closed", "Looked at and closed.")
    for check in ("nodepool-node-public-ip", "cluster-dual-stack", "aks-network-policy"):
        yield finding(
            check, CLUSTER, Verdict.PASS, "Closed", "Looked at and closed.", evidence=(seen(CLUSTER, "2026-01-01"),)
        )
    yield finding(
        "lb-outbound-rule", f"{NETWORK}/loadBalancers/kubernetes-internal", Verdict.PASS, "Closed", "No rule."
    )
    yield finding(
        "effective-routes", NODES, Verdict.NOT_APPLICABLE, "NoSentinel", "No standalone machine is in this subnet."
    )  # fmt: skip
