"""Vaults of backups, and what they copy.

Shapes: Azure/azure-rest-api-specs, Microsoft.DataProtection 2024-04-01 (BackupVaults_GetInSubscription,
BackupInstances_List) and Microsoft.RecoveryServices 2023-04-01 (Vaults_ListBySubscriptionId,
BackupProtectedItems_List).
"""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import BACKUP_VAULTS, RECOVERY_VAULTS
from hermetic.audit.estate.resource import Part, Resource, arm


class DataSource(Part):
    """What a backup instance copies."""

    resource_id: str | None = None


@arm("Microsoft.DataProtection/backupVaults", BACKUP_VAULTS)
class BackupVault(Resource):
    """A vault for clusters, disks and blobs."""


@arm("Microsoft.DataProtection/backupVaults/backupInstances", BACKUP_VAULTS)
class BackupInstance(Resource):
    """One resource whose data is copied into a vault, or into snapshots."""

    data_source_info: DataSource | None = None

    @property
    def source(self) -> str:
        """The id of what is copied; "" where it is not shown."""
        return (self.data_source_info.resource_id if self.data_source_info is not None else None) or ""


@arm("Microsoft.RecoveryServices/vaults", RECOVERY_VAULTS)
class RecoveryVault(Resource):
    """A vault for machines and file shares."""


@arm("Microsoft.RecoveryServices/vaults/backupProtectedItems", RECOVERY_VAULTS)
class ProtectedItem(Resource):
    """One resource whose data is copied into a vault."""

    source_resource_id: str | None = None

    @property
    def source(self) -> str:
        """The id of what is copied; "" where it is not shown."""
        return self.source_resource_id or ""
