"""Managed services with a public address and an address in a virtual network."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.azure.vnet import Sku
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class DoorAddress(Part):
    """An address of such a service: in a subnet, public, or both."""

    name: str = ""
    subnet: Reference | None = None
    public_ip_address: Reference | None = None
    private_ip_address: str | None = None


@arm("Microsoft.Network/applicationGateways", NETWORK)
class ApplicationGateway(Resource):
    gateway_ip_configurations: list[DoorAddress] | None = None
    frontend_ip_configurations: list[DoorAddress] | None = None


@arm("Microsoft.Network/bastionHosts", NETWORK)
class Bastion(Resource):
    """An absent switch has Azure's default: copying is on, the rest off."""

    sku: Sku | None = None
    ip_configurations: list[DoorAddress] | None = None
    virtual_network: Reference | None = None
    enable_private_only_bastion: bool | None = None
    disable_copy_paste: bool | None = None
    enable_file_copy: bool | None = None
    enable_tunneling: bool | None = None
    enable_shareable_link: bool | None = None
    enable_ip_connect: bool | None = None
