"""The AKS cluster and its pools. An absent field has ARM's default, which is mostly the permissive one."""

from __future__ import annotations

from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.azure.aks_profiles import (
    AddOn,
    ApiServerAccess,
    BootstrapProfile,
    HostedSystem,
    HttpProxy,
    IngressProfile,
    MeshProfile,
    MetricsProfile,
    NetworkProfile,
    NodeGroupProfile,
    Provisioning,
    SecurityProfile,
    UpgradeProfile,
)
from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE
from hermetic.audit.estate.resource import Part, Resource, arm


class LocalDns(Part):
    """localDNSProfile of a pool. `mode` is the requested value; `state`, Enabled or Disabled, the actual one."""

    state: str | None = None


class AgentPool(Part):
    """One pool of nodes, as the cluster lists it."""

    name: str = ""
    count: int | None = None
    mode: str | None = None
    type: str | None = None
    """VirtualMachineScaleSets or VirtualMachines; open."""
    vnet_subnet_id: str | None = None
    pod_subnet_id: str | None = None
    local_dns_profile: LocalDns | None = None
    enable_node_public_ip: bool | None = None
    node_public_ip_prefix_id: str | None = None


@arm("Microsoft.ContainerService/managedClusters", CONTAINER_SERVICE)
class ManagedCluster(Resource):
    """Every property that a check reads."""

    location: str = ""
    node_resource_group: str | None = None
    agent_pool_profiles: list[AgentPool] | None = None
    api_server_access_profile: ApiServerAccess | None = None
    node_provisioning_profile: Provisioning | None = None
    hosted_system_profile: HostedSystem | None = None
    public_network_access: str | None = None
    network_profile: NetworkProfile | None = None
    bootstrap_profile: BootstrapProfile | None = None
    http_proxy_config: HttpProxy | None = None
    addon_profiles: FreeMap[AddOn] | None = None
    azure_monitor_profile: dict[str, Any] | None = None
    """Open: any entry that is `enabled` sends measurements."""
    security_profile: SecurityProfile | None = None
    metrics_profile: MetricsProfile | None = None
    ingress_profile: IngressProfile | None = None
    service_mesh_profile: MeshProfile | None = None
    auto_upgrade_profile: UpgradeProfile | None = None
    node_resource_group_profile: NodeGroupProfile | None = None
