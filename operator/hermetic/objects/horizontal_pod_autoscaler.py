"""The autoscaler of a model: more pods while requests wait, fewer after half an hour without need."""

from __future__ import annotations

from typing import Any

from hermetic.api.autoscaling import Autoscaling
from hermetic.kinds import MODEL_DEPLOYMENT
from hermetic.objects.names import Owner, metadata

SCALE_DOWN_WINDOW_SECONDS = 1800


def horizontal_pod_autoscaler(owner: Owner, engine: str, autoscaling: Autoscaling, queue_metric: str) -> dict[str, Any]:
    """It scales the ModelDeployment, never the Deployment: behind a closed isolation gate no pod is added.

    Every field that the API server would fill in is rendered (kubernetes: pkg/apis/autoscaling/v2/defaults.go).
    """
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(owner, engine),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": MODEL_DEPLOYMENT.api_version,
                "kind": MODEL_DEPLOYMENT.kind,
                "name": owner.name,
            },
            "minReplicas": autoscaling.min_replicas,
            "maxReplicas": autoscaling.max_replicas,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": queue_metric},
                        "target": {"type": "AverageValue", "averageValue": str(autoscaling.queued_requests)},
                    },
                }
            ],
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 0,
                    "selectPolicy": "Max",
                    "policies": [
                        {"type": "Pods", "value": 4, "periodSeconds": 15},
                        {"type": "Percent", "value": 100, "periodSeconds": 15},
                    ],
                },
                # A pod that returns loads its weights for minutes. One at a time: the others must bear its load.
                "scaleDown": {
                    "stabilizationWindowSeconds": SCALE_DOWN_WINDOW_SECONDS,
                    "selectPolicy": "Max",
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 300}],
                },
            },
        },
    }
