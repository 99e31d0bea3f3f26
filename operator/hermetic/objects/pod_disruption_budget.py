"""How many replicas a node drain may evict at once."""

from __future__ import annotations

from typing import Any

from hermetic.objects.names import Owner, metadata, selector


def pod_disruption_budget(owner: Owner, engine: str) -> dict[str, Any]:
    """One at a time; pods that are not ready never block a drain."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(owner, engine),
        "spec": {
            "selector": {"matchLabels": selector(owner)},
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
