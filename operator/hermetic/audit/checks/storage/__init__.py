"""Table F, storage: accounts and file shares that the nodes write to, and who else can read them."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.storage import accounts, shares

CHECKS = family(__package__ or "", accounts, shares)
