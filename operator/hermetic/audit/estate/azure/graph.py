"""What only Resource Graph can be asked for.

Ask as for every list: `estate.every(ScaleSetNicInGraph, scale_set.id)`. Resource Graph is an index that lags and that
leaves out, without a word, what the caller may not read: a row that is there tells something, a row that is missing
tells nothing. Under `--discovery list` the answer is NotAsked.
"""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.versions import RESOURCE_GRAPH
from hermetic.audit.estate.azure.vnet import NicFields


class ScaleSetNicInGraph(NicFields):
    """Network interface of an instance of a scale set, as the table ComputeResources has it; listed below the set.

    Match it by id (without regard to case) with the interface that ARM lists, and read from it only what ARM's lacks.
    """

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"
    API_VERSION: ClassVar[str] = RESOURCE_GRAPH
