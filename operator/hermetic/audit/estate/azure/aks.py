"""The AKS cluster and its pools. Absent is what ARM means by absent: mostly the permissive default."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE
from hermetic.audit.estate.resource import Part, Resource


class LocalDns(Part):
    """localDNSProfile of a pool. `mode` is what was asked for; `state`, Enabled or Disabled, what holds."""

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


class ApiServerAccess(Part):
    """How the API server is reached."""

    subnet_id: str | None = None
    enable_private_cluster: bool | None = None
    enable_private_cluster_public_fqdn: bool | None = None
    enable_vnet_integration: bool | None = None
    authorized_ip_ranges: list[str] | None = None
    disable_run_command: bool | None = None


class Provisioning(Part):
    """nodeProvisioningProfile of a cluster: Auto or Manual; absent means Manual."""

    mode: str | None = None


class HostedSystem(Part):
    """hostedSystemProfile of a cluster: system nodes that AKS hosts, in subnets that no pool names."""

    enabled: bool | None = None
    system_node_subnet_id: str | None = None
    node_subnet_id: str | None = None


class ManagedCluster(Resource):
    """Microsoft.ContainerService/managedClusters: only what scope needs; checks of family `aks` read more of it."""

    TYPE: ClassVar[str] = "Microsoft.ContainerService/managedClusters"
    API_VERSION: ClassVar[str] = CONTAINER_SERVICE

    location: str = ""
    node_resource_group: str | None = None
    agent_pool_profiles: list[AgentPool] | None = None
    api_server_access_profile: ApiServerAccess | None = None
    node_provisioning_profile: Provisioning | None = None
    hosted_system_profile: HostedSystem | None = None
