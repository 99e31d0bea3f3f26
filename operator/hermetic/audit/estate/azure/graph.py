"""Data that only Resource Graph has.

Query as every list: `estate.every(ScaleSetNicInGraph, scale_set.id)`. Resource Graph is an index that lags and that
silently omits what the caller may not read: a row that is present is evidence, a missing row is none. Under
`--discovery list` the answer is NotAsked.
"""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import RESOURCE_GRAPH
from hermetic.audit.estate.azure.vnet import NicFields
from hermetic.audit.estate.resource import Reference, Resource, arm


@arm("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces", RESOURCE_GRAPH)
class ScaleSetNicInGraph(NicFields):
    """Network interface of an instance of a scale set, from the table ComputeResources; listed below the set.

    Match it by id (without regard to case) with the interface that ARM lists, and use only fields that ARM's lacks.
    """


@arm("Microsoft.Network/effectiveConnectivityConfigurations", RESOURCE_GRAPH)
class ConnectivityInGraph(Resource):
    """Connectivity configurations that Network Manager applies to a network, from the table NetworkResources;
    listed below the network.

    MicrosoftDocs/azure-docs, virtual-network-manager/query-azure-resource-graph, shows the rows of admin rules: one per
    network, below its id, with references to the deployed snapshots. Those of connectivity are assumed to have the same
    form.
    """

    effective_connectivity_configurations: list[Reference] | None = None

    @property
    def applied(self) -> list[Reference]:
        """The deployed snapshots."""
        return self.effective_connectivity_configurations or []


@arm("Microsoft.Network/effectiveSecurityAdminRules", RESOURCE_GRAPH)
class AdminRulesInGraph(Resource):
    """Security admin configurations applied to a network, in the same form."""

    effective_security_admin_configurations: list[Reference] | None = None

    @property
    def applied(self) -> list[Reference]:
        """The deployed snapshots."""
        return self.effective_security_admin_configurations or []


TABLES = {
    ScaleSetNicInGraph.TYPE.lower(): "ComputeResources",
    ConnectivityInGraph.TYPE.lower(): "NetworkResources",
    AdminRulesInGraph.TYPE.lower(): "NetworkResources",
}
"""The questions that only Resource Graph answers, and the table of each."""
