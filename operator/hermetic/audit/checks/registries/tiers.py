"""Features that registries of a lower tier lack: replications, connected registries, export pipelines, agent pools."""

from __future__ import annotations

from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.observation import Seen

LESSER_TIERS = {"basic", "standard"}


def lesser_tier(seen: Seen[Registry]) -> str:
    """The tier of a registry that is not Premium; "" for Premium, and where the tier is not known."""
    sku = seen.value.sku if seen.value is not None else None
    tier = (sku.name if sku is not None else None) or ""
    return tier if tier.lower() in LESSER_TIERS else ""
