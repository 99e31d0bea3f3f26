"""The AKS cluster and its pools. An absent field has ARM's default, which is mostly the permissive one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap, spelling
from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE
from hermetic.audit.estate.resource import Part, Resource, arm


class OutboundAddresses(Part):
    """Public addresses that a cluster's outbound traffic uses."""

    effective_outbound_ips: list[dict[str, Any]] | None = None


class Enabled(Part):
    """A feature that is on or off."""

    enabled: bool | None = None


class AdvancedNetworking(Part):
    """Advanced Container Networking Services."""

    enabled: bool | None = None
    security: Enabled | None = None


class NatGatewayProfile(OutboundAddresses):
    """natGatewayProfile of a cluster: a gateway that AKS creates; Standard or StandardV2."""

    sku: str | None = None


class LoadBalancerProfile(OutboundAddresses):
    backend_pool_type: str | None = None
    """nodeIP or nodeIPConfiguration; open."""


class NetworkProfile(Part):
    """networkProfile of a cluster; every string is open."""

    outbound_type: str | None = None
    network_plugin: str | None = None
    network_policy: str | None = None
    ip_families: list[str] | None = None
    pod_cidr: str | None = None
    pod_cidrs: list[str] | None = None
    load_balancer_profile: LoadBalancerProfile | None = None
    nat_gateway_profile: NatGatewayProfile | None = None
    static_egress_gateway_profile: Enabled | None = None
    advanced_networking: AdvancedNetworking | None = None


class BootstrapProfile(Part):
    """The source of the nodes' images: Direct (Microsoft's public registry) or Cache (a registry of ours)."""

    artifact_source: str | None = None
    container_registry_id: str | None = None


class HttpProxy(Part):
    """The HTTP proxy that AKS configures on nodes and in pods."""

    enabled: bool | None = None
    http_proxy: str | None = None
    https_proxy: str | None = None


class AddOn(Part):
    """`config` is open; that of Container Insights names the workspace."""

    enabled: bool | None = None
    config: FreeMap[Any] | None = None

    @property
    def is_on(self) -> bool:
        """Unless Azure says that it is off: `enabled` is a required field."""
        return self.enabled is not False


class NginxIngress(Part):
    """AnnotationControlled, External, Internal or None; absent creates a public load balancer."""

    default_ingress_controller_type: str | None = None


class GatewayApi(Part):
    """A controller of the Gateway API: Enabled or Disabled."""

    mode: str | None = None


class GatewayApis(Part):
    """Controllers of the Gateway API that application routing runs."""

    app_routing_istio: GatewayApi | None = None


class AppRouting(Part):
    """The application routing add-on; its Gateway API is enabled separately."""

    enabled: bool | None = None
    nginx: NginxIngress | None = None
    gateway_api_implementations: GatewayApis | None = None


class IngressProfile(Part):
    web_app_routing: AppRouting | None = None
    application_load_balancer: Enabled | None = None


class AksMeshGateway(Part):
    """An ingress or egress gateway of the service mesh; `mode` is Internal or External."""

    enabled: bool | None = None
    mode: str | None = None
    name: str | None = None


class MeshComponents(Part):
    ingress_gateways: list[AksMeshGateway] | None = None
    egress_gateways: list[AksMeshGateway] | None = None


class Istio(Part):
    components: MeshComponents | None = None


class MeshProfile(Part):
    """serviceMeshProfile of a cluster: Istio or Disabled."""

    mode: str | None = None
    istio: Istio | None = None


class Defender(Part):
    """The sensor of Defender."""

    security_monitoring: Enabled | None = None
    log_analytics_workspace_resource_id: str | None = None


class SecurityProfile(Part):
    """securityProfile of a cluster: the parts that send data."""

    defender: Defender | None = None


class MetricsProfile(Part):
    cost_analysis: Enabled | None = None


class AutoScalers(Part):
    """workloadAutoScalerProfile of a cluster."""

    keda: Enabled | None = None


class UpgradeProfile(Part):
    node_os_upgrade_channel: str | None = None


class NodeGroupProfile(Part):
    """nodeResourceGroupProfile of a cluster: ReadOnly or Unrestricted."""

    restriction_level: str | None = None


class ApiServerAccess(Part):
    subnet_id: str | None = None
    enable_private_cluster: bool | None = None
    enable_private_cluster_public_fqdn: bool | None = None
    enable_vnet_integration: bool | None = None

    @property
    def is_behind_private_link(self) -> bool:
        """Whether private endpoints connect to it: a private cluster without a subnet for its API server."""
        return self.enable_private_cluster is True and not self.enable_vnet_integration

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


class LocalDns(Part):
    """localDNSProfile of a pool. `mode` is the requested value; `state`, Enabled or Disabled, the actual one."""

    state: str | None = None


class PowerState(Part):
    """Running or Stopped; open."""

    code: str | None = None


class NodesStatus(Part):
    """Machines of one size in a pool of virtual machines."""

    count: int | None = None


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
    node_image_version: str | None = None
    power_state: PowerState | None = None
    virtual_machine_nodes_status: list[NodesStatus] | None = None

    @property
    def machine_count(self) -> int | None:
        """The larger of both numbers of machines in a pool of virtual machines; None where the answer has neither."""
        by_size = [size.count for size in self.virtual_machine_nodes_status or () if size.count is not None]
        totals = [*((self.count,) if self.count is not None else ()), *((sum(by_size),) if by_size else ())]
        return max(totals, default=None)

    @property
    def is_stopped(self) -> bool:
        """Whether AKS keeps no machine of it running (learn.microsoft.com/azure/aks/start-stop-nodepools)."""
        return self.power_state is not None and (self.power_state.code or "").lower() == "stopped"


def _workspaces(value: Any) -> Iterator[str]:
    """Values of every field `…workspaceResourceId`, at any depth."""
    inside = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, Mapping) else ()
    for key, inner in inside:
        if isinstance(inner, str):
            if inner and spelling(str(key)).endswith("workspaceresourceid"):
                yield inner
        else:
            yield from _workspaces(inner)


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
    ai_toolchain_operator_profile: Enabled | None = None
    workload_auto_scaler_profile: AutoScalers | None = None
    ingress_profile: IngressProfile | None = None
    service_mesh_profile: MeshProfile | None = None
    auto_upgrade_profile: UpgradeProfile | None = None
    node_resource_group_profile: NodeGroupProfile | None = None

    @property
    def workspaces(self) -> tuple[str, ...]:
        """Ids of the workspaces that features which measure send to, each once."""
        defender = self.security_profile.defender if self.security_profile is not None else None
        configs = [addon.config for addon in (self.addon_profiles or {}).values() if addon.is_on]
        named = [*_workspaces(configs), *_workspaces(self.azure_monitor_profile)]
        if defender is not None and defender.log_analytics_workspace_resource_id:
            named.append(defender.log_analytics_workspace_resource_id)
        return tuple(dict.fromkeys(named))
