"""Virtual networks, subnets, peerings and network interfaces."""

from __future__ import annotations

from typing import ClassVar, Self

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.azure.versions import COMPUTE, NETWORK, SCALE_SET_CHILDREN
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Part, Reference, Resource, arm
from hermetic.errors import FactDamaged


class Delegation(Part):
    service_name: str | None = None


class ServiceEndpoint(Part):
    """A direct route from a subnet to a service of Azure."""

    service: str | None = None
    locations: list[str] = []


@arm("Microsoft.Network/virtualNetworks/subnets", NETWORK)
class Subnet(Resource):
    address_prefix: str | None = None
    address_prefixes: list[str] | None = None
    default_outbound_access: bool | None = None
    """None (absent, null) means that default outbound access is on."""
    nat_gateway: Reference | None = None
    service_gateway: Reference | None = None
    route_table: Reference | None = None
    network_security_group: Reference | None = None
    service_endpoints: list[ServiceEndpoint] = []
    service_endpoint_policies: list[Reference] = []
    delegations: list[Delegation] = []
    private_endpoint_network_policies: str | None = None
    sharing_scope: str | None = None

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Singular and plural fields merged, as CIDRs."""
        return tuple(
            dict.fromkeys((*((self.address_prefix,) if self.address_prefix else ()), *(self.address_prefixes or ())))
        )


class AddressSpace(Part):
    address_prefixes: list[str] = []


class DhcpOptions(Part):
    """DHCP options of a virtual network; without a server, Azure's own resolver is used."""

    dns_servers: list[str] = []


UNCONNECTED = {"initiated", "disconnected"}


@arm("Microsoft.Network/virtualNetworks/virtualNetworkPeerings", NETWORK)
class Peering(Resource):
    """Microsoft.Network/virtualNetworks/virtualNetworkPeerings, on our side."""

    peering_state: str | None = None
    remote_virtual_network: Reference | None = None
    remote_address_space: AddressSpace | None = None
    use_remote_gateways: bool | None = None
    allow_forwarded_traffic: bool | None = None
    allow_gateway_transit: bool | None = None
    allow_virtual_network_access: bool | None = None
    peer_complete_vnets: bool | None = None
    local_subnet_names: list[str] = []
    remote_subnet_names: list[str] = []
    enable_only_ipv6_peering: bool | None = None

    @property
    def connects(self) -> bool:
        """Whether packets can pass. An unknown state counts as connected."""
        return (self.peering_state or "").lower() not in UNCONNECTED

    @property
    def remote_prefixes(self) -> tuple[str, ...]:
        """The address prefixes of the remote network; empty where the answer has none."""
        return tuple(self.remote_address_space.address_prefixes) if self.remote_address_space is not None else ()


@arm("Microsoft.Network/virtualNetworks", NETWORK)
class VirtualNetwork(Resource):
    location: str = ""
    address_space: AddressSpace | None = None
    dhcp_options: DhcpOptions | None = None
    subnets: list[Reference] = []
    default_public_nat_gateway: Reference | None = None
    flow_logs: list[Reference] = []


class IpConfiguration(Part):
    name: str = ""
    private_ip_address: str | None = None
    subnet: Reference | None = None
    public_ip_address: Reference | None = None
    gateway_load_balancer: Reference | None = None
    load_balancer_backend_address_pools: list[Reference] = []
    load_balancer_inbound_nat_rules: list[Reference] = []
    application_gateway_backend_address_pools: list[Reference] = []
    application_security_groups: list[Reference] = []


class TapConfiguration(Part):
    """A copy of all packets of an interface, sent to a virtual network tap."""

    id: str = ""
    virtual_network_tap: Reference | None = None


class NicDns(Part):
    dns_servers: list[str] = []


class NicFields(Resource):
    """The common fields of all network interfaces, from every source."""

    READS_ITS_FIELDS_ONLY: ClassVar[bool] = True

    location: str = ""
    ip_configurations: list[IpConfiguration] = []
    network_security_group: Reference | None = None
    enable_ip_forwarding: bool | None = None
    default_outbound_connectivity_enabled: bool | None = None
    """None: this api-version does not have it."""
    virtual_machine: Reference | None = None
    private_endpoint: Reference | None = None
    private_link_service: Reference | None = None
    hosted_workloads: list[str] | None = None
    """Machines that are no virtual machines, such as bare metal."""
    dns_settings: NicDns | None = None
    tap_configurations: list[TapConfiguration] = []

    @classmethod
    def read(cls, body: Body) -> Self:
        """An interface always has an address: an answer without the list is incomplete, and read as damaged."""
        nic = super().read(body)
        if "ip_configurations" not in nic.model_fields_set and nic.id:
            message = f"{nic.id}: ipConfigurations: not in the answer"
            nic.lose("ip_configurations", FactDamaged(message, resource=nic.id, evidence=nic.evidence))
        return nic

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """Subnets that it has an address in."""
        return tuple(
            dict.fromkeys(
                configuration.subnet.id for configuration in self.ip_configurations if configuration.subnet is not None
            )
        )


@arm("Microsoft.Network/networkInterfaces", NETWORK)
class NetworkInterface(NicFields):
    """Of standalone VMs, and of private endpoints."""


@arm("Microsoft.Compute/virtualMachineScaleSets/networkInterfaces", SCALE_SET_CHILDREN)
class ScaleSetNic(NicFields):
    """Network interface of an instance of a scale set."""


class ModelIpConfiguration(Part):
    """One address in the model of a scale set; `public_ip_address_configuration` gives each instance a public one."""

    name: str = ""
    subnet: Reference | None = None
    public_ip_address_configuration: Part | None = None
    load_balancer_backend_address_pools: list[Reference] = []
    load_balancer_inbound_nat_pools: list[Reference] = []
    application_gateway_backend_address_pools: list[Reference] = []
    application_security_groups: list[Reference] = []


class ModelNic(Part):
    name: str = ""
    ip_configurations: list[ModelIpConfiguration] = []
    network_security_group: Reference | None = None
    enable_ip_forwarding: bool | None = None
    dns_settings: NicDns | None = None

    @property
    def lacks_addresses(self) -> bool:
        """Whether what was read of it, without damage, has no address or one without a subnet."""
        if self.is_damaged or any(configuration.is_damaged for configuration in self.ip_configurations):
            return False
        return not self.ip_configurations or any(
            configuration.subnet is None for configuration in self.ip_configurations
        )


class ModelNetwork(Part):
    network_interface_configurations: list[ModelNic] = []


class ExtensionSettings(Part):
    """The public settings of an extension that name the source of its code."""

    file_uris: list[str] = []


class MachineExtension(Part):
    """Code that Azure installs on every instance of a scale set and runs as root."""

    name: str = ""
    publisher: str | None = None
    type: str | None = None
    settings: ExtensionSettings | None = None


class ExtensionProfile(Part):
    extensions: list[MachineExtension] = []


class BootDiagnostics(Part):
    """Storage of the serial console logs; without an address, managed by Azure."""

    enabled: bool | None = None
    storage_uri: str | None = None


class DiagnosticsProfile(Part):
    boot_diagnostics: BootDiagnostics | None = None


class GalleryApplication(Part):
    package_reference_id: str | None = None


class ApplicationProfile(Part):
    """VM applications: packages of a gallery, which Azure's agent fetches and whose scripts it runs as root."""

    gallery_applications: list[GalleryApplication] = []


class MachineProfile(Part):
    network_profile: ModelNetwork | None = None
    application_profile: ApplicationProfile | None = None
    extension_profile: ExtensionProfile | None = None
    diagnostics_profile: DiagnosticsProfile | None = None


class Sku(Part):
    name: str | None = None
    tier: str | None = None
    capacity: int | None = None


class AttachedIdentity(Part):
    """One user-assigned identity of a VM: every process on it can get tokens of the identity."""

    principal_id: str | None = None


class MachineIdentity(Part):
    """The identities of a VM, or of all instances of a scale set; user-assigned ones by ARM id."""

    principal_id: str | None = None
    user_assigned_identities: FreeMap[AttachedIdentity] | None = None


@arm("Microsoft.Compute/virtualMachineScaleSets", COMPUTE)
class ScaleSet(Resource):
    READS_ITS_FIELDS_ONLY: ClassVar[bool] = True

    sku: Sku | None = None
    orchestration_mode: str | None = None
    """Uniform or Flexible; in the latter, instances are standalone VMs."""
    tags: FreeMap[str] = {}
    virtual_machine_profile: MachineProfile | None = None
    identity: MachineIdentity | None = None

    @classmethod
    def read(cls, body: Body) -> Self:
        """Interfaces of a model always have addresses, and these a subnet: what lacks them is read as damaged."""
        scale_set = super().read(body)
        try:
            nics = scale_set.nics
        except FactDamaged:
            return scale_set
        for nic in (nic for nic in nics if nic.lacks_addresses):
            message = (
                f"{scale_set.id}: interface {nic.name} of the model: its addresses or their subnets: not in the answer"
            )
            nic.lose("ip_configurations", FactDamaged(message, resource=scale_set.id, evidence=scale_set.evidence))
        return scale_set

    @property
    def pool(self) -> str:
        """Its pool, from AKS's tags; "" where the tags lack it or cannot be read."""
        try:
            return self.tags.get("aks-managed-poolName", "")
        except FactDamaged:
            return ""

    @property
    def nics(self) -> tuple[ModelNic, ...]:
        """The network interfaces of its model."""
        profile = self.virtual_machine_profile
        network = profile.network_profile if profile else None
        return tuple(network.network_interface_configurations) if network else ()

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """Subnets that its model has an address in."""
        return tuple(
            dict.fromkeys(
                configuration.subnet.id
                for nic in self.nics
                for configuration in nic.ip_configurations
                if configuration.subnet is not None
            )
        )


class ServiceLink(Part):
    """A service that Azure put into a subnet, by the type of its resource."""

    linked_resource_type: str | None = None


class InhabitedSubnet(Part):
    """`ip_configurations` are children of interfaces, gateways, firewalls, balancers; of Compute for scale sets.

    `service_association_links` are the services injected into a subnet, `resource_navigation_links` those of an older
    kind, `ip_configuration_profiles` belong to container groups (learn.microsoft.com/rest/api/virtualnetwork/subnets).
    """

    id: str = ""
    delegations: list[Delegation] | None = None
    ip_configurations: list[Reference] | None = None
    application_gateway_ip_configurations: list[Reference] | None = None
    ip_configuration_profiles: list[Reference] | None = None
    private_endpoints: list[Reference] | None = None
    service_association_links: list[ServiceLink] | None = None
    resource_navigation_links: list[ServiceLink] | None = None

    @property
    def service_links(self) -> tuple[ServiceLink, ...]:
        """Links of both kinds."""
        return (*(self.service_association_links or ()), *(self.resource_navigation_links or ()))

    @property
    def has_visible_inhabitants(self) -> bool:
        """Whether the answer shows anything in it. Not every service shows what it puts into a delegated subnet."""
        gateways = self.application_gateway_ip_configurations
        return any((self.service_links, self.ip_configurations, self.ip_configuration_profiles, gateways))

    @property
    def inhabitant_ids(self) -> tuple[str, ...]:
        """Ids of ip_configurations and private endpoints; empty for a delegated subnet, whose service manages them."""
        if self.delegations:
            return ()
        return tuple(reference.id for reference in (*(self.ip_configurations or ()), *(self.private_endpoints or ())))


@arm("Microsoft.Network/virtualNetworks", NETWORK)
class InhabitedNetwork(Resource):
    """The answer that `VirtualNetwork` also reads. It has its peerings too."""

    subnets: list[InhabitedSubnet] | None = None
    virtual_network_peerings: list[Reference] | None = None
