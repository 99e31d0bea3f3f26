"""How many replicas a node drain may evict at once."""

from __future__ import annotations

from typing import Any

from hermetic.objects.names import Owner, metadata, selector


def pod_disruption_budget(owner: Owner, engine: str, grouped_pods: int | None = None) -> dict[str, Any]:
    """One at a time; pods that are not ready never block a drain.

    `grouped_pods`: how many pods all groups have, for a model of groups. An eviction ends its whole group, which then
    asks for no pods: `maxUnavailable` would take the others for all there are, and admit the next eviction. Counted
    from all pods, no further one is admitted until the group serves again.
    """
    allowance = {"maxUnavailable": 1} if grouped_pods is None else {"minAvailable": grouped_pods - 1}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(owner, engine),
        "spec": {
            "selector": {"matchLabels": selector(owner)},
            **allowance,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
