"""What only Resource Graph can be asked for.

Ask as for every list: `estate.every(ScaleSetNicInGraph, scale_set.id)`. Resource Graph is an index that lags and that
leaves out, without a word, what the caller may not read: a row that is there tells something, a row that is missing
tells nothing. Under `--discovery list` the answer is NotAsked.
"""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import RESOURCE_GRAPH
from hermetic.audit.estate.azure.vnet import NicFields
from hermetic.audit.estate.resource import Reference, Resource


class ScaleSetNicInGraph(NicFields):
    """Network interface of an instance of a scale set, as the table ComputeResources has it; listed below the set.

    Match it by id (without regard to case) with the interface that ARM lists, and read from it only what ARM's lacks.
    """

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"
    API_VERSION: ClassVar[str] = RESOURCE_GRAPH


class ConnectivityInGraph(Resource):
    """Connectivity configurations that Network Manager applies to a network, as the table NetworkResources has them;
    listed below the network.

    MicrosoftDocs/azure-docs, virtual-network-manager/query-azure-resource-graph, shows the rows of admin rules: one per
    network, below its id, with references to the snapshots that are deployed. Those of connectivity are taken to be
    alike.
    """

    TYPE: ClassVar[str] = "Microsoft.Network/effectiveConnectivityConfigurations"
    API_VERSION: ClassVar[str] = RESOURCE_GRAPH

    effective_connectivity_configurations: list[Reference] | None = None

    @property
    def applied(self) -> list[Reference]:
        """The snapshots that are deployed."""
        return self.effective_connectivity_configurations or []


class AdminRulesInGraph(Resource):
    """The same of security admin configurations."""

    TYPE: ClassVar[str] = "Microsoft.Network/effectiveSecurityAdminRules"
    API_VERSION: ClassVar[str] = RESOURCE_GRAPH

    effective_security_admin_configurations: list[Reference] | None = None

    @property
    def applied(self) -> list[Reference]:
        """The snapshots that are deployed."""
        return self.effective_security_admin_configurations or []


TABLES = {
    ScaleSetNicInGraph.TYPE.lower(): "ComputeResources",
    ConnectivityInGraph.TYPE.lower(): "NetworkResources",
    AdminRulesInGraph.TYPE.lower(): "NetworkResources",
}
"""What is asked of Resource Graph alone, and the table that has it."""
