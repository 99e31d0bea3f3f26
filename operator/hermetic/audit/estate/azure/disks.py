"""Managed disks, snapshots of them, and what lets them be read through private endpoints."""

from __future__ import annotations

from typing import ClassVar

from hermetic.audit.estate.azure.private_link import ConsumerConnection
from hermetic.audit.estate.azure.versions import DISKS
from hermetic.audit.estate.resource import Part, Resource


class Exportable(Resource):
    """What disks and snapshots have in common: who may have a link (SAS) to all that is on them.

    network_access_policy: AllowAll where absent, AllowPrivate through a disk access, DenyAll. public_network_access:
    Disabled closes AllowAll. disk_state: ActiveSAS while a link is out.
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
    """The machine it is attached to."""


class CreationData(Part):
    """What a snapshot was made of."""

    source_resource_id: str | None = None


class DiskSnapshot(Exportable):
    """Microsoft.Compute/snapshots."""

    TYPE: ClassVar[str] = "Microsoft.Compute/snapshots"
    API_VERSION: ClassVar[str] = DISKS

    creation_data: CreationData | None = None


class DiskAccess(Resource):
    """Microsoft.Compute/diskAccesses: what private endpoints to disks lead to."""

    TYPE: ClassVar[str] = "Microsoft.Compute/diskAccesses"
    API_VERSION: ClassVar[str] = DISKS

    private_endpoint_connections: list[ConsumerConnection] | None = None
