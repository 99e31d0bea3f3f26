"""Disks and snapshots of the cluster that can be exported by a link (SAS)."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.disks import AS_SHIPPED, CLOSED, VOLUME, add_disk
from testbed.azure.baseline.layout import COMPUTE, DATA_GROUP, LOCATION, NODE_GROUP
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import FOREIGN
from testbed.azure.plants.plant import Named, plant
from testbed.azure.plants.private_link import connect

Body = dict[str, Any]

ACCESS = f"{DATA_GROUP}/{COMPUTE}/diskAccesses/access-disks"


@plant("disk-export", "medium", spot="disk")
def disk_as_azure_ships_it(estate: Estate) -> Named:
    """An identity that may ask for a link to a volume's disk reads it from anywhere."""
    _volume(estate).update(AS_SHIPPED)
    return VOLUME


@plant("disk-export", "medium", spot="disk")
def disk_that_does_not_say(estate: Estate) -> Named:
    """A volume's disk does not say whether it can be exported; it can."""
    for field in CLOSED:
        del _volume(estate)[field]
    return VOLUME


@plant("disk-export", "high", spot="disk")
def disk_with_an_active_link(estate: Estate) -> Named:
    """A link to a volume's disk is active."""
    _volume(estate).update(AS_SHIPPED, diskState="ActiveSAS")
    return VOLUME


@plant("disk-export", "high", spot="disk")
def disk_read_through_a_strangers_access(estate: Estate) -> Named:
    """A volume's disk is exported through a disk access in another tenant."""
    access = f"/subscriptions/{FOREIGN}/resourceGroups/rg-x/{COMPUTE}/diskAccesses/access-x"
    _volume(estate).update(networkAccessPolicy="AllowPrivate", diskAccessId=access)
    return VOLUME


@plant("disk-export", "high", spot="disk")
def disk_read_by_a_strangers_endpoint(estate: Estate) -> Named:
    """A foreign private endpoint is connected to the disk access of a volume's disk."""
    estate.add(ACCESS, {"privateEndpointConnections": []}, location=LOCATION)
    connect(estate, ACCESS)
    _volume(estate).update(networkAccessPolicy="AllowPrivate", diskAccessId=ACCESS)
    return VOLUME


@plant("disk-export", "medium", spot="snapshot")
def snapshot_that_can_be_exported(estate: Estate) -> Named:
    """A snapshot of a volume's disk keeps what Azure ships, although the disk is closed."""
    made_of = {"createOption": "Copy", "sourceResourceId": VOLUME}
    properties = {
        "diskSizeGB": 512,
        "diskState": "Unattached",
        "creationData": made_of,
        "incremental": True,
        **AS_SHIPPED,
    }
    return estate.add(f"{NODE_GROUP}/{COMPUTE}/snapshots/snapshot-cache", properties, location=LOCATION)


@plant("disk-export", "low", spot="system-disk")
def node_with_a_system_disk(estate: Estate) -> Named:
    """The nodes' system disks are kept, and can be exported."""
    disk = f"{NODE_GROUP}/{COMPUTE}/disks/aks-gpu-31862004-vmss_0_OsDisk_1"
    add_disk(estate, disk, AS_SHIPPED, osType="Linux", creationData={"createOption": "FromImage"})
    return estate.site.gpu_scale_set


def _volume(estate: Estate) -> Body:
    """The volume's disk, which estates without volumes do not have."""
    if VOLUME not in estate:
        add_disk(estate, VOLUME, CLOSED)
    return estate.properties(VOLUME)
