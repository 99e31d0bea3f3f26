"""How a cluster is connected, as far as egress decisions need it."""

from __future__ import annotations

from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.resource import Part


class OutboundProfile(Part):
    """loadBalancerProfile of a cluster."""

    backend_pool_type: str | None = None
    """nodeIP or nodeIPConfiguration; open."""


class ClusterNetworkProfile(Part):
    """networkProfile of a cluster; every string is open."""

    outbound_type: str | None = None
    ip_families: list[str] | None = None
    network_policy: str | None = None
    pod_cidr: str | None = None
    pod_cidrs: list[str] | None = None
    load_balancer_profile: OutboundProfile | None = None


class ClusterNetwork(ManagedCluster):
    """The cluster, read for its networkProfile."""

    network_profile: ClusterNetworkProfile | None = None
