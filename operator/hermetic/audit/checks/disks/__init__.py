"""Table F, disks: data of the nodes on managed disks, and whether it can be exported."""

from __future__ import annotations

from hermetic.audit.checks.disks import export, sharing
from hermetic.audit.checks.family import family

CHECKS = family(__package__ or "", export, sharing)
