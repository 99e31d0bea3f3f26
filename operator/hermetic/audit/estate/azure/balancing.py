"""Load balancers, gateways that do source address translation, and public addresses."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK, SCALE_SET_CHILDREN
from hermetic.audit.estate.azure.vnet import Sku
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class Frontend(Part):
    """An address that a load balancer listens on; public when it has a public address or prefix."""

    id: str = ""
    name: str = ""
    public_ip_address: Reference | None = None
    public_ip_prefix: Reference | None = None
    private_ip_address: str | None = None
    subnet: Reference | None = None
    gateway_load_balancer: Reference | None = None

    @property
    def is_public(self) -> bool:
        """False only for an address in a subnet: a frontend with neither is not known to be private."""
        return self.public_ip_address is not None or self.public_ip_prefix is not None or self.subnet is None


class BackendAddress(Part):
    """A member of a pool, by address; of a cross-region load balancer, a frontend of a regional one."""

    name: str = ""
    ip_address: str | None = None
    subnet: Reference | None = None
    virtual_network: Reference | None = None
    network_interface_ip_configuration: Reference | None = None
    load_balancer_frontend_ip_configuration: Reference | None = None


class BackendPool(Part):
    """Members of a load balancer, by interface or by address."""

    id: str = ""
    name: str = ""
    backend_ip_configurations: list[Reference] | None = None
    load_balancer_backend_addresses: list[BackendAddress] | None = None
    virtual_network: Reference | None = None


class BalancingRule(Part):
    """One port of a frontend, forwarded to pools."""

    name: str = ""
    frontend_ip_configuration: Reference | None = None
    backend_address_pool: Reference | None = None
    backend_address_pools: list[Reference] | None = None
    disable_outbound_snat: bool | None = None
    """None means false: the rule translates source addresses."""

    @property
    def pool_ids(self) -> tuple[str, ...]:
        """Singular and plural fields merged."""
        alone = (self.backend_address_pool,) if self.backend_address_pool else ()
        return tuple(dict.fromkeys(pool.id.lower() for pool in (*alone, *(self.backend_address_pools or ()))))


class OutboundRule(Part):
    """Explicit source address translation for a pool."""

    name: str = ""
    frontend_ip_configurations: list[Reference] | None = None
    backend_address_pool: Reference | None = None


@arm("Microsoft.Network/loadBalancers", NETWORK)
class LoadBalancer(Resource):
    sku: Sku | None = None
    frontend_ip_configurations: list[Frontend] | None = None
    backend_address_pools: list[BackendPool] | None = None
    load_balancing_rules: list[BalancingRule] | None = None
    outbound_rules: list[OutboundRule] | None = None


@arm("Microsoft.Network/natGateways", NETWORK)
class NatGateway(Resource):
    """Serves subnets, or a whole virtual network."""

    subnets: list[Reference] | None = None
    source_virtual_network: Reference | None = None


@arm("Microsoft.Network/serviceGateways", NETWORK)
class ServiceGateway(Resource):
    """Give individual pods a public source address."""

    virtual_network: Reference | None = None


@arm("Microsoft.Network/publicIPAddresses", NETWORK)
class PublicAddress(Resource):
    ip_address: str | None = None
    ip_configuration: Reference | None = None
    nat_gateway: Reference | None = None


@arm("Microsoft.Network/publicIPPrefixes", NETWORK)
class PublicPrefix(Resource):
    ip_prefix: str | None = None
    nat_gateway: Reference | None = None
    load_balancer_frontend_ip_configuration: Reference | None = None


@arm("Microsoft.Compute/virtualMachineScaleSets/publicipaddresses", SCALE_SET_CHILDREN)
class ScaleSetPublicAddress(Resource):
    """A public address that an instance of a scale set has now, independent of the scale set's model."""

    ip_address: str | None = None
    ip_configuration: Reference | None = None
