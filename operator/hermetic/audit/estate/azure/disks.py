"""Managed disks, their snapshots, and disk accesses, through which private endpoints read them."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.private_link import ConsumerConnection
from hermetic.audit.estate.azure.versions import DISKS
from hermetic.audit.estate.resource import Part, Resource


class Exportable(Resource):
    """The common fields of disks and snapshots: who may get a link (SAS) to all their data.

    network_access_policy: AllowAll where absent, AllowPrivate through a disk access, DenyAll. public_network_access:
    Disabled restricts AllowAll. disk_state: ActiveSAS while a link is valid.
    """

    network_access_policy: str | None = None
    public_network_access: str | None = None
    disk_access_id: str | None = None
    disk_state: str | None = None


class Disk(Exportable):
    """Microsoft.Compute/disks."""

    TYPE: ClassVar[str] = "Microsoft.Compute/disks"
    API_VERSION: ClassVar[str] = DISKS

    os_type: str | None = None
    managed_by: str | None = None
    """The VM that it is attached to."""


class CreationData(Part):
    """The source of a snapshot."""

    source_resource_id: str | None = None


class DiskSnapshot(Exportable):
    """Microsoft.Compute/snapshots."""

    TYPE: ClassVar[str] = "Microsoft.Compute/snapshots"
    API_VERSION: ClassVar[str] = DISKS

    creation_data: CreationData | None = None


class DiskAccess(Resource):
    """Microsoft.Compute/diskAccesses: the targets of private endpoints to disks."""

    TYPE: ClassVar[str] = "Microsoft.Compute/diskAccesses"
    API_VERSION: ClassVar[str] = DISKS

    private_endpoint_connections: list[ConsumerConnection] | None = None
