"""The Deployment of a ModelDeployment."""

from __future__ import annotations

from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.launch import Launch
from hermetic.objects.names import TEMPLATE_ANNOTATION, TEMPLATE_LABEL, Owner, digest, metadata, selector
from hermetic.objects.pod import pod_template
from hermetic.objects.weights_verifier import VERIFIER

REPLACE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def deployment(owner: Owner, spec: ModelDeploymentSpec, launch: Launch) -> dict[str, Any]:
    """A Deployment whose progress deadline outlasts the slowest start and drain that the spec allows."""
    template = pod_template(owner, spec, launch)
    # Verifying the weights has the same budget as starting the engine, before it.
    budgets = 2 if VERIFIER in {each.name for each in launch.init_containers} else 1
    budget = budgets * spec.startup_budget_seconds
    mark = digest(template)[:16]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        # The annotation shows, across restarts and upgrades, whether applying this would create new pods.
        "metadata": {
            **metadata(owner, launch.engine),
            "annotations": {TEMPLATE_ANNOTATION: mark},
        },
        "spec": {
            "replicas": spec.replicas,
            # None is used: the operator applies what is wanted. Who may scale a ReplicaSet could start pods of an
            # earlier template again, from before the weights were verified for example.
            "revisionHistoryLimit": 0,
            "progressDeadlineSeconds": budget + launch.grace_seconds + 60,
            "selector": {"matchLabels": selector(owner)},
            "strategy": SURGE if spec.rollout == "Surge" else REPLACE,
            "template": _labelled(template, mark),
        },
    }


def _labelled(template: dict[str, Any], mark: str) -> dict[str, Any]:
    """The template with its mark as a pod label: only pods of the current template are diagnosed."""
    return {**template, "metadata": {"labels": {**template["metadata"]["labels"], TEMPLATE_LABEL: mark}}}
