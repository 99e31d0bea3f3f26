"""The resources with addresses in a virtual network: Azure names them even where the caller may not read them."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK
from hermetic.audit.estate.azure.vnet import Delegation
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class InhabitedSubnet(Part):
    """`ip_configurations` are children of interfaces, gateways, firewalls, balancers; of Compute for scale sets."""

    id: str = ""
    delegations: list[Delegation] | None = None
    ip_configurations: list[Reference] | None = None
    private_endpoints: list[Reference] | None = None

    @property
    def inhabitant_ids(self) -> tuple[str, ...]:
        """Ids of ip_configurations and private endpoints; empty for a delegated subnet, whose service manages them."""
        if self.delegations:
            return ()
        return tuple(one.id for one in (*(self.ip_configurations or ()), *(self.private_endpoints or ())))


@arm("Microsoft.Network/virtualNetworks", NETWORK)
class InhabitedNetwork(Resource):
    """The answer that `VirtualNetwork` also reads. It has its peerings too."""

    subnets: list[InhabitedSubnet] | None = None
    virtual_network_peerings: list[Reference] | None = None
