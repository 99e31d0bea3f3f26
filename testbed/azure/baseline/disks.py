"""A disk that a volume of the cluster keeps in the node resource group, closed as a StorageClass can ask for.

What fields say is in the compute provider's description of disks, 2024-03-02. A StorageClass of the driver
disk.csi.azure.com sets `networkAccessPolicy` and `publicNetworkAccess`; without them a disk is AllowAll and Enabled.
"""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import COMPUTE, LOCATION, NODE_GROUP
from testbed.azure.estate import Estate

CLOSED = {"networkAccessPolicy": "DenyAll", "publicNetworkAccess": "Disabled"}
AS_SHIPPED = {"networkAccessPolicy": "AllowAll", "publicNetworkAccess": "Enabled"}
VOLUME = f"{NODE_GROUP}/{COMPUTE}/disks/pvc-7b1e40d2-cache"


def add_disks(estate: Estate) -> None:
    add_disk(estate, VOLUME, CLOSED)


def add_disk(estate: Estate, disk: str, access: dict[str, Any], **rest: Any) -> str:
    """A data disk that is attached to a GPU node; `rest` replaces fields of it."""
    properties = {
        "diskSizeGB": 512,
        "diskState": "Attached",
        "creationData": {"createOption": "Empty"},
        **access,
        **rest,
    }
    node = f"{estate.site.gpu_scale_set}/virtualMachines/aks-gpu-31862004-vmss_0"
    return estate.add(disk, properties, location=LOCATION, sku={"name": "Premium_LRS"}, managedBy=node)
