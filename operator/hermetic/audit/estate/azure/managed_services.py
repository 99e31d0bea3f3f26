"""Managed services with a public address and an address in a virtual network."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.azure.vnet import Sku
from hermetic.audit.estate.resource import Part, Reference, Resource


class DoorAddress(Part):
    """An address of such a service: in a subnet, public, or both."""

    name: str = ""
    subnet: Reference | None = None
    public_ip_address: Reference | None = None
    private_ip_address: str | None = None


class ApplicationGateway(Resource):
    """Microsoft.Network/applicationGateways."""

    TYPE: ClassVar[str] = "Microsoft.Network/applicationGateways"
    API_VERSION: ClassVar[str] = NETWORK

    gateway_ip_configurations: list[DoorAddress] | None = None
    frontend_ip_configurations: list[DoorAddress] | None = None


class Bastion(Resource):
    """Microsoft.Network/bastionHosts. An absent switch has Azure's default: copying is on, the rest off."""

    TYPE: ClassVar[str] = "Microsoft.Network/bastionHosts"
    API_VERSION: ClassVar[str] = NETWORK

    sku: Sku | None = None
    ip_configurations: list[DoorAddress] | None = None
    virtual_network: Reference | None = None
    enable_private_only_bastion: bool | None = None
    disable_copy_paste: bool | None = None
    enable_file_copy: bool | None = None
    enable_tunneling: bool | None = None
    enable_shareable_link: bool | None = None
    enable_ip_connect: bool | None = None
