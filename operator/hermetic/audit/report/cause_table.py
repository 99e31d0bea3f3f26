"""Which checks one change settles together, as data: the change, and the checks that depend on it.

A check that is in no row is settled by a change of the resource of its finding.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CauseOfFindings:
    """One change. `checks` are in the order in which their remedies are to be followed.

    `is_per_resource` means that the change is made per resource, so that each resource is a cause.
    """

    id: str
    title: str
    checks: tuple[str, ...]
    is_per_resource: bool = False


CHANGES: tuple[CauseOfFindings, ...] = (
    CauseOfFindings(
        "default-outbound",
        "Turn default outbound access off and replace addresses that were given",
        ("subnet-default-outbound", "nic-default-outbound"),
    ),
    CauseOfFindings(
        "nat-gateway",
        "Remove NAT gateways from the cluster's network",
        ("subnet-nat-gateway", "vnet-nat-gateway", "natgw-inventory"),
    ),
    CauseOfFindings(
        "node-public-address",
        "Take public addresses from the nodes",
        (
            "nodepool-node-public-ip",
            "vmss-public-ip-config",
            "vmss-instance-pip",
            "k8s-node-externalip",
            "imds-nic-pip",
        ),
    ),
    CauseOfFindings(
        "load-balancer-outbound",
        "Let no load balancer translate outbound connections",
        ("lb-outbound-rule", "lb-rule-snat", "lb-basic-sku", "aks-effective-outbound-ips", "imds-lb"),
    ),
    CauseOfFindings(
        "public-service",
        "Make the Service private",
        ("k8s-public-lb", "k8s-lb-status-ip"),
        is_per_resource=True,
    ),
    CauseOfFindings(
        "machine",
        "Close the egress path of the machine beside the nodes",
        ("nic-public-ip", "nic-ip-forwarding", "vm-pivot"),
        is_per_resource=True,
    ),
    CauseOfFindings(
        "service",
        "Keep managed services that pass packets on out of reach",
        ("service-pivot",),
        is_per_resource=True,
    ),
    CauseOfFindings(
        "default-route",
        "Let routes to the internet lead nowhere",
        (
            "route-default-internet",
            "route-default-appliance",
            "route-split-default",
            "effective-routes",
            "nexthop-spotcheck",
        ),
    ),
    CauseOfFindings("route-table", "Give every subnet a route table with 0.0.0.0/0 -> None", ("route-table-missing",)),
    CauseOfFindings(
        "gateway",
        "Remove the virtual network gateway, or shut its routes and clients out",
        (
            "vnet-gateway",
            "gateway-forced-tunnel",
            "gateway-p2s",
            "gateway-connections",
            "route-bgp-propagation",
        ),
    ),
    CauseOfFindings(
        "peering",
        "Remove the peering, or narrow it",
        (
            "peering-any",
            "peering-remote-gateway",
            "peering-forwarded",
            "peering-gateway-transit",
            "peering-subnet-scope",
        ),
        is_per_resource=True,
    ),
    CauseOfFindings(
        "security-rules",
        "Deny the internet in the security rules of every subnet",
        ("nsg-missing", "nsg-internet-deny", "nsg-broad-allow", "nsg-effective", "nsg-v6", "nsg-block-type"),
    ),
    CauseOfFindings(
        "dns-policy",
        "Let Azure's resolver answer allowed names only",
        ("dns-security-policy", "nsg-platform-dns", "dns-recursion"),
    ),
    CauseOfFindings("dns-servers", "Use only DNS servers that are allowed", ("vnet-dns-servers", "node-resolv")),
    CauseOfFindings(
        "ipv6",
        "Use IPv4 alone",
        ("cluster-dual-stack", "subnet-ipv6-prefix", "node-routes", "node-v6-default-route"),
    ),
    CauseOfFindings(
        "service-endpoints",
        "Replace service endpoints by private endpoints",
        ("svc-endpoint-storage", "svc-endpoint-other", "svc-endpoint-policy-scope"),
    ),
    CauseOfFindings(
        "api-server",
        "Make the API server private",
        ("aks-private-api", "aks-public-fqdn", "aks-authorized-ips", "aks-pna"),
    ),
    CauseOfFindings(
        "policy-engine",
        "Run an engine that enforces network policies",
        ("aks-network-policy", "k8s-policy-engine-live"),
    ),
    CauseOfFindings("default-deny", "Deny egress by default in every namespace", ("k8s-default-deny-egress",)),
    CauseOfFindings(
        "registry-endpoints",
        "Let the registry be reached by private endpoints only",
        ("acr-public", "acr-endpoints"),
        is_per_resource=True,
    ),
    CauseOfFindings(
        "registry-export",
        "Export no artifact from the registry",
        ("acr-pipelines", "acr-export-policy"),
        is_per_resource=True,
    ),
    CauseOfFindings(
        "memberships",
        "Take the cluster out of fleets and meshes",
        ("aks-fleet-member", "aks-mesh-member"),
    ),
    CauseOfFindings(
        "storage-endpoint",
        "Let the storage account be reached by private endpoints only",
        ("storage-public", "storage-static-website"),
        is_per_resource=True,
    ),
    CauseOfFindings(
        "registry-tasks", "Run no tasks in the registry", ("acr-tasks", "acr-task-bypass"), is_per_resource=True
    ),
    CauseOfFindings(
        "registry-cache",
        "Let the registry cache AKS's own images and nothing else",
        ("acr-cache-wildcard", "acr-writable-cache"),
        is_per_resource=True,
    ),
    CauseOfFindings("static-egress", "Remove static egress gateways", ("aks-static-egress", "k8s-static-egress")),
)
