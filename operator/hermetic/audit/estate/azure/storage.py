"""Storage accounts, and file shares without an account."""

from __future__ import annotations

from typing import Any, ClassVar

from hermetic.audit.estate.azure.private_link import ConsumerConnection
from hermetic.audit.estate.azure.versions import BLOB_SERVICES, FILE_SHARES, STORAGE
from hermetic.audit.estate.resource import Part, Reference, Resource


class AccountRules(Part):
    """networkAcls of an account."""

    default_action: str | None = None
    bypass: str | None = None
    """A comma-separated list of AzureServices, Logging, Metrics, or None."""
    ip_rules: list[dict[str, Any]] | None = None
    ipv6_rules: list[dict[str, Any]] | None = None
    virtual_network_rules: list[Reference] | None = None
    resource_access_rules: list[dict[str, Any]] | None = None


class StorageAccount(Resource):
    """Microsoft.Storage/storageAccounts. An absent field mostly has the permissive default."""

    TYPE: ClassVar[str] = "Microsoft.Storage/storageAccounts"
    API_VERSION: ClassVar[str] = STORAGE

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


class BlobService(Resource):
    """Microsoft.Storage/storageAccounts/blobServices; an account has one, called default."""

    TYPE: ClassVar[str] = "Microsoft.Storage/storageAccounts/blobServices"
    API_VERSION: ClassVar[str] = BLOB_SERVICES

    static_website: StaticWebsite | None = None


class ReplicationPolicy(Resource):
    """Microsoft.Storage/storageAccounts/objectReplicationPolicies: automatic copies of blobs.

    Source and destination are names of accounts, or ids where replication across tenants is off.
    """

    TYPE: ClassVar[str] = "Microsoft.Storage/storageAccounts/objectReplicationPolicies"
    API_VERSION: ClassVar[str] = STORAGE

    source_account: str | None = None
    destination_account: str | None = None


class LocalUser(Resource):
    """Microsoft.Storage/storageAccounts/localUsers: SFTP users without Entra ID."""

    TYPE: ClassVar[str] = "Microsoft.Storage/storageAccounts/localUsers"
    API_VERSION: ClassVar[str] = STORAGE


class NfsProperties(Part):
    """The NFS settings of a share."""

    root_squash: str | None = None
    encryption_in_transit_required: str | None = None


class PublicAccess(Part):
    """Subnets that may reach a share by its public endpoint."""

    allowed_subnets: list[str] | None = None


class FileShare(Resource):
    """Microsoft.FileShares/fileShares."""

    TYPE: ClassVar[str] = "Microsoft.FileShares/fileShares"
    API_VERSION: ClassVar[str] = FILE_SHARES

    host_name: str | None = None
    mount_name: str | None = None
    protocol: str | None = None
    public_network_access: str | None = None
    public_access_properties: PublicAccess | None = None
    nfs_protocol_properties: NfsProperties | None = None
    private_endpoint_connections: list[ConsumerConnection] | None = None
