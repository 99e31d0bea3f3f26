"""Virtual networks, subnets, peerings and network interfaces."""

from __future__ import annotations

from typing import ClassVar, Self

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.azure.versions import COMPUTE, NETWORK, SCALE_SET_CHILDREN
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Part, Reference, Resource
from hermetic.errors import FactDamaged


class Delegation(Part):
    """A subnet lent to a service."""

    service_name: str | None = None


class ServiceEndpoint(Part):
    """A direct way from a subnet to a service of Azure."""

    service: str | None = None
    locations: list[str] = []


class Subnet(Resource):
    """Microsoft.Network/virtualNetworks/subnets."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworks/subnets"
    API_VERSION: ClassVar[str] = NETWORK

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
        """Singular and plural together, as CIDRs."""
        return tuple(
            dict.fromkeys((*((self.address_prefix,) if self.address_prefix else ()), *(self.address_prefixes or ())))
        )


class AddressSpace(Part):
    """The prefixes of a virtual network."""

    address_prefixes: list[str] = []


class DhcpOptions(Part):
    """What machines of a virtual network are told; no server means Azure's own resolver."""

    dns_servers: list[str] = []


UNCONNECTED = {"initiated", "disconnected"}


class Peering(Resource):
    """Microsoft.Network/virtualNetworks/virtualNetworkPeerings, seen from our side."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworks/virtualNetworkPeerings"
    API_VERSION: ClassVar[str] = NETWORK

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
        """Whether packets can pass. A state that is not known counts as connected."""
        return (self.peering_state or "").lower() not in UNCONNECTED


class VirtualNetwork(Resource):
    """Microsoft.Network/virtualNetworks."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworks"
    API_VERSION: ClassVar[str] = NETWORK

    location: str = ""
    address_space: AddressSpace | None = None
    dhcp_options: DhcpOptions | None = None
    subnets: list[Reference] = []
    default_public_nat_gateway: Reference | None = None
    flow_logs: list[Reference] = []


class IpConfiguration(Part):
    """One address of a network interface."""

    name: str = ""
    primary: bool | None = None
    private_ip_address: str | None = None
    subnet: Reference | None = None
    public_ip_address: Reference | None = None
    gateway_load_balancer: Reference | None = None
    load_balancer_backend_address_pools: list[Reference] = []
    application_security_groups: list[Reference] = []


class TapConfiguration(Part):
    """A copy of all packets of an interface that is sent to a virtual network tap."""

    id: str = ""
    virtual_network_tap: Reference | None = None


class NicDns(Part):
    """DNS servers of one interface."""

    dns_servers: list[str] = []


class NicFields(Resource):
    """What all network interfaces have, wherever they are read."""

    READS_ITS_FIELDS_ONLY: ClassVar[bool] = True

    location: str = ""
    ip_configurations: list[IpConfiguration] = []
    network_security_group: Reference | None = None
    enable_ip_forwarding: bool | None = None
    default_outbound_connectivity_enabled: bool | None = None
    """None: this api-version does not tell."""
    virtual_machine: Reference | None = None
    private_endpoint: Reference | None = None
    private_link_service: Reference | None = None
    dns_settings: NicDns | None = None
    tap_configurations: list[TapConfiguration] = []

    @classmethod
    def read(cls, body: Body) -> Self:
        """An interface always has an address: an answer without the list was cut, and is no interface without one."""
        nic = super().read(body)
        if "ip_configurations" not in nic.model_fields_set and nic.id:
            words = f"{nic.id}: ipConfigurations: not in the answer"
            nic.lose("ip_configurations", FactDamaged(words, resource=nic.id, evidence=nic.evidence))
        return nic

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """Subnets that it has an address in."""
        return tuple(dict.fromkeys(one.subnet.id for one in self.ip_configurations if one.subnet is not None))


class NetworkInterface(NicFields):
    """Microsoft.Network/networkInterfaces: of machines that stand alone, and of private endpoints."""

    TYPE: ClassVar[str] = "Microsoft.Network/networkInterfaces"
    API_VERSION: ClassVar[str] = NETWORK


class ScaleSetNic(NicFields):
    """Network interface of an instance of a scale set."""

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces"
    API_VERSION: ClassVar[str] = SCALE_SET_CHILDREN


class ModelIpConfiguration(Part):
    """One address of the model of a scale set; with `public_ip_address_configuration`, a public one each."""

    name: str = ""
    subnet: Reference | None = None
    public_ip_address_configuration: Part | None = None
    load_balancer_backend_address_pools: list[Reference] = []
    application_security_groups: list[Reference] = []


class ModelNic(Part):
    """One network interface of the model of a scale set."""

    name: str = ""
    ip_configurations: list[ModelIpConfiguration] = []
    network_security_group: Reference | None = None
    enable_ip_forwarding: bool | None = None


class ModelNetwork(Part):
    """networkProfile of a scale set's model."""

    network_interface_configurations: list[ModelNic] = []


class ExtensionSettings(Part):
    """What of the public settings of an extension says where its code comes from."""

    file_uris: list[str] = []


class MachineExtension(Part):
    """Code that Azure puts onto every machine of a scale set, and runs as root."""

    name: str = ""
    publisher: str | None = None
    type: str | None = None
    settings: ExtensionSettings | None = None


class ExtensionProfile(Part):
    """extensionProfile of a scale set's model."""

    extensions: list[MachineExtension] = []


class BootDiagnostics(Part):
    """Where the serial console of each machine is kept; without an address, in storage that Azure manages."""

    enabled: bool | None = None
    storage_uri: str | None = None


class DiagnosticsProfile(Part):
    """diagnosticsProfile of a scale set's model."""

    boot_diagnostics: BootDiagnostics | None = None


class MachineProfile(Part):
    """virtualMachineProfile of a scale set."""

    network_profile: ModelNetwork | None = None
    extension_profile: ExtensionProfile | None = None
    diagnostics_profile: DiagnosticsProfile | None = None


class Sku(Part):
    """Size and number."""

    name: str | None = None
    tier: str | None = None
    capacity: int | None = None


class AttachedIdentity(Part):
    """One user-assigned identity of a machine: every process on it gets tokens of the identity."""

    principal_id: str | None = None


class MachineIdentity(Part):
    """The identities of a machine, or of all instances of a scale set; user-assigned ones by ARM id."""

    principal_id: str | None = None
    user_assigned_identities: FreeMap[AttachedIdentity] | None = None


class ScaleSet(Resource):
    """Microsoft.Compute/virtualMachineScaleSets."""

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachineScaleSets"
    API_VERSION: ClassVar[str] = COMPUTE

    sku: Sku | None = None
    orchestration_mode: str | None = None
    """Uniform or Flexible; in the latter, instances are virtual machines that stand alone."""
    tags: FreeMap[str] = {}
    virtual_machine_profile: MachineProfile | None = None
    identity: MachineIdentity | None = None

    @property
    def pool(self) -> str:
        """The pool that it is of, as AKS tags it; "" where the tags do not say, or cannot be read."""
        try:
            return self.tags.get("aks-managed-poolName", "")
        except FactDamaged:
            return ""

    @property
    def nics(self) -> tuple[ModelNic, ...]:
        """The interfaces of its model."""
        profile = self.virtual_machine_profile
        network = profile.network_profile if profile else None
        return tuple(network.network_interface_configurations) if network else ()

    @property
    def subnet_ids(self) -> tuple[str, ...]:
        """Subnets that its model has an address in."""
        return tuple(
            dict.fromkeys(one.subnet.id for nic in self.nics for one in nic.ip_configurations if one.subnet is not None)
        )
