"""Table E: network security groups."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.nsg import blocking, combinations, effective, endpoints, internet_allows, platform

CHECKS = family(
    __package__ or "",
    {
        "nsg-missing": combinations.missing,
        "nsg-internet-deny": combinations.internet_deny,
        "nsg-broad-allow": internet_allows.broad_allow,
        "nsg-effective": effective.effective_rules,
        "nsg-platform-dns": platform.dns,
        "nsg-platform-imds": platform.metadata,
        "nsg-pe-bypass": endpoints.bypassed,
        "nsg-block-type": blocking.block_rules,
    },
)
