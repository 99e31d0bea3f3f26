"""Managed disks, their snapshots, and disk accesses, through which private endpoints read them."""

from __future__ import annotations

from hermetic.audit.estate.azure.private_link import ConsumerConnection
from hermetic.audit.estate.azure.versions import DISKS
from hermetic.audit.estate.resource import Part, Resource, arm


class Exportable(Resource):
    """The common fields of disks and snapshots: who may get a link (SAS) to all their data.

    network_access_policy: AllowAll where absent, AllowPrivate through a disk access, DenyAll. public_network_access:
    Disabled restricts AllowAll. disk_state: ActiveSAS while a link is valid.
    """

    network_access_policy: str | None = None
    public_network_access: str | None = None
    disk_access_id: str | None = None
    disk_state: str | None = None


@arm("Microsoft.Compute/disks", DISKS)
class Disk(Exportable):
    os_type: str | None = None
    managed_by: str | None = None
    """The VM that it is attached to."""


class CreationData(Part):
    source_resource_id: str | None = None


@arm("Microsoft.Compute/snapshots", DISKS)
class DiskSnapshot(Exportable):
    creation_data: CreationData | None = None


@arm("Microsoft.Compute/diskAccesses", DISKS)
class DiskAccess(Resource):
    """The targets of private endpoints to disks."""

    private_endpoint_connections: list[ConsumerConnection] | None = None
