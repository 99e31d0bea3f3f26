"""What a registry of a lesser tier cannot have: replications, connected registries, export pipelines, agent pools."""

from __future__ import annotations

from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.observation import Seen

LESSER_TIERS = {"basic", "standard"}


def lesser_tier(seen: Seen[Registry]) -> str:
    """The tier of a registry that is not Premium; "" for one that is, and for one that does not say."""
    sku = seen.value.sku if seen.value is not None else None
    tier = (sku.name if sku is not None else None) or ""
    return tier if tier.lower() in LESSER_TIERS else ""
