"""Table F, storage: accounts and file shares that the nodes write to, and who else reads them."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.storage import accounts, data_export, shares

CHECKS = family(
    __package__ or "",
    {
        "storage-public": accounts.public,
        "storage-copy-scope": accounts.copy_scope,
        "storage-replication": data_export.replication,
        "storage-local-users": data_export.local_users,
        "storage-static-website": data_export.static_website,
        "fileshare-public": shares.public,
        "fileshare-eit": shares.encryption,
        "fileshare-squash": shares.squash,
    },
)
