"""Public addresses and prefixes, and the resources that use them."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK, SCALE_SET_CHILDREN
from hermetic.audit.estate.resource import Reference, Resource, arm


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
