"""`spec.autoscaling`: a HorizontalPodAutoscaler that follows the engine's queue."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hermetic.api.rules import ApiModel, Rule

# The API server writes the quantity "1000" as "1k", so the target stays below it.
MOST_QUEUED = 999


class Autoscaling(ApiModel):
    """Bounds of the number of pods, and the queue at which one more is asked for."""

    RULES = (
        Rule(
            cel="self.minReplicas <= self.maxReplicas",
            message="must be at most `maxReplicas`",
            holds=lambda autoscaling: autoscaling.min_replicas <= autoscaling.max_replicas,
            field=".minReplicas",
        ),
    )

    min_replicas: Annotated[int, Field(ge=1, le=256)] = 1
    """Fewest pods, 1 to 256. Default: 1. Scale to zero is not supported: requests would be lost."""
    max_replicas: Annotated[int, Field(ge=1, le=256)]
    """Most pods, 1 to 256, each with the GPUs of `accelerator`."""
    queued_requests: Annotated[int, Field(ge=1, le=MOST_QUEUED)] = 5
    """Waiting requests per pod, on average, above which pods are added, 1 to 999. Default: 5."""

    def clamp(self, replicas: int) -> int:
        """The number of pods for `spec.replicas`. 0 stays 0: it pauses the model and its autoscaler."""
        return 0 if replicas == 0 else min(max(replicas, self.min_replicas), self.max_replicas)
