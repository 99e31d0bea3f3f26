"""Table E: network security groups."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.nsg import combinations, effective, endpoints, internet_allows, platform

CHECKS = family(__package__ or "", platform, combinations, effective, endpoints, internet_allows)
