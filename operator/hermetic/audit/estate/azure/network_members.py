"""A virtual network read for who lives in it: Azure writes that down, whoever may read the inhabitants."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.azure.vnet import Delegation
from hermetic.audit.estate.resource import Part, Reference, Resource


class InhabitedSubnet(Part):
    """`ip_configurations` are children of interfaces, gateways, firewalls, balancers; of Compute for scale sets."""

    id: str = ""
    delegations: list[Delegation] | None = None
    ip_configurations: list[Reference] | None = None
    private_endpoints: list[Reference] | None = None

    @property
    def inhabitant_ids(self) -> tuple[str, ...]:
        """Children of what lives there, and private endpoints. A delegated subnet is its service's own business."""
        if self.delegations:
            return ()
        return tuple(one.id for one in (*(self.ip_configurations or ()), *(self.private_endpoints or ())))


class InhabitedNetwork(Resource):
    """Microsoft.Network/virtualNetworks: the same answer that `VirtualNetwork` reads. Its peerings are in it too."""

    TYPE: ClassVar[str] = "Microsoft.Network/virtualNetworks"
    API_VERSION: ClassVar[str] = NETWORK

    subnets: list[InhabitedSubnet] | None = None
    virtual_network_peerings: list[Reference] | None = None
