"""Storage accounts, and the file shares that need none."""

from __future__ import annotations

from typing import Any, ClassVar

from hermetic.audit.estate.azure.versions import FILE_SHARES, STORAGE
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
    """Microsoft.Storage/storageAccounts. Absent is mostly the permissive default."""

    TYPE: ClassVar[str] = "Microsoft.Storage/storageAccounts"
    API_VERSION: ClassVar[str] = STORAGE

    public_network_access: str | None = None
    network_acls: AccountRules | None = None
    allowed_copy_scope: str | None = None
    allow_cross_tenant_replication: bool | None = None
    allow_blob_public_access: bool | None = None
    allow_shared_key_access: bool | None = None
    is_sftp_enabled: bool | None = None


class NfsProperties(Part):
    """How a share speaks NFS."""

    root_squash: str | None = None
    encryption_in_transit_required: str | None = None


class PublicAccess(Part):
    """Subnets that reach a share by its public endpoint."""

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
