"""Public addresses and prefixes, and the resources that use them."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import NETWORK, SCALE_SET_CHILDREN
from hermetic.audit.estate.resource import Reference, Resource


class PublicAddress(Resource):
    """Microsoft.Network/publicIPAddresses."""

    TYPE: ClassVar[str] = "Microsoft.Network/publicIPAddresses"
    API_VERSION: ClassVar[str] = NETWORK

    ip_address: str | None = None
    ip_configuration: Reference | None = None
    nat_gateway: Reference | None = None


class PublicPrefix(Resource):
    """Microsoft.Network/publicIPPrefixes."""

    TYPE: ClassVar[str] = "Microsoft.Network/publicIPPrefixes"
    API_VERSION: ClassVar[str] = NETWORK

    ip_prefix: str | None = None
    nat_gateway: Reference | None = None
    load_balancer_frontend_ip_configuration: Reference | None = None


class ScaleSetPublicAddress(Resource):
    """A public address that an instance of a scale set has now, independent of the scale set's model."""

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachineScaleSets/publicipaddresses"
    API_VERSION: ClassVar[str] = SCALE_SET_CHILDREN

    ip_address: str | None = None
    ip_configuration: Reference | None = None
