"""Storage accounts, file shares without an account, disks and their snapshots."""

from __future__ import annotations

from typing import Any

from hermetic.audit.estate.azure.private_link import ConsumerConnection
from hermetic.audit.estate.azure.versions import BLOB_SERVICES, DISKS, FILE_SHARES, STORAGE
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class AccountRules(Part):
    default_action: str | None = None
    bypass: str | None = None
    """A comma-separated list of AzureServices, Logging, Metrics, or None."""
    ip_rules: list[dict[str, Any]] | None = None
    ipv6_rules: list[dict[str, Any]] | None = None
    virtual_network_rules: list[Reference] | None = None
    resource_access_rules: list[dict[str, Any]] | None = None


@arm("Microsoft.Storage/storageAccounts", STORAGE)
class StorageAccount(Resource):
    """An absent field mostly has the permissive default."""

    public_network_access: str | None = None
    network_acls: AccountRules | None = None
    allowed_copy_scope: str | None = None
    allow_cross_tenant_replication: bool | None = None
    allow_blob_public_access: bool | None = None
    allow_shared_key_access: bool | None = None
    is_sftp_enabled: bool | None = None
    is_local_user_enabled: bool | None = None
    kind: str | None = None
    private_endpoint_connections: list[ConsumerConnection] | None = None


class StaticWebsite(Part):
    """Whether the content of the container $web is served as a website, without a login."""

    enabled: bool | None = None


@arm("Microsoft.Storage/storageAccounts/blobServices", BLOB_SERVICES)
class BlobService(Resource):
    """An account has one, called default."""

    static_website: StaticWebsite | None = None


@arm("Microsoft.Storage/storageAccounts/objectReplicationPolicies", STORAGE)
class ReplicationPolicy(Resource):
    """Automatic copies of blobs.

    Source and destination are names of accounts, or ids where replication across tenants is off.
    """

    source_account: str | None = None
    destination_account: str | None = None


@arm("Microsoft.Storage/storageAccounts/localUsers", STORAGE)
class LocalUser(Resource):
    """SFTP users without Entra ID."""


class NfsProperties(Part):
    root_squash: str | None = None
    encryption_in_transit_required: str | None = None


class PublicAccess(Part):
    """Subnets that may reach a share by its public endpoint."""

    allowed_subnets: list[str] | None = None


@arm("Microsoft.FileShares/fileShares", FILE_SHARES)
class FileShare(Resource):
    host_name: str | None = None
    protocol: str | None = None
    public_network_access: str | None = None
    public_access_properties: PublicAccess | None = None
    nfs_protocol_properties: NfsProperties | None = None
    private_endpoint_connections: list[ConsumerConnection] | None = None


class Exportable(Resource):
    """The common fields of disks and snapshots: who may get a link (SAS) to all their data.

    network_access_policy: AllowAll where absent, AllowPrivate through a disk access, DenyAll. public_network_access:
    Disabled restricts AllowAll. disk_state: ActiveSAS while a link is valid.
    """

    network_access_policy: str | None = None
    public_network_access: str | None = None
    disk_access_id: str | None = None
    disk_state: str | None = None


class AttachedMachine(Part):
    """shareInfo of a shared disk: one VM that it is attached to."""

    vm_uri: str | None = None


@arm("Microsoft.Compute/disks", DISKS)
class Disk(Exportable):
    os_type: str | None = None
    managed_by: str | None = None
    """The VM that it is attached to."""
    managed_by_extended: list[str] | None = None
    """Of a shared disk, all VMs that it is attached to."""
    share_info: list[AttachedMachine] | None = None
    max_shares: int | None = None
    """How many VMs may attach it at once; absent means one."""

    @property
    def machine_ids(self) -> tuple[str, ...]:
        """All VMs that it is attached to, without duplicates."""
        named = (self.managed_by, *(self.managed_by_extended or ()), *(share.vm_uri for share in self.share_info or ()))
        return tuple({machine.lower(): machine for machine in named if machine}.values())


class CreationData(Part):
    source_resource_id: str | None = None


@arm("Microsoft.Compute/snapshots", DISKS)
class DiskSnapshot(Exportable):
    creation_data: CreationData | None = None


@arm("Microsoft.Compute/diskAccesses", DISKS)
class DiskAccess(Resource):
    """The targets of private endpoints to disks."""

    private_endpoint_connections: list[ConsumerConnection] | None = None
