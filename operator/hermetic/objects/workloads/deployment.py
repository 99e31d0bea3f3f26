"""The Deployment: a replica is one pod, and the Deployment controller makes pods through one ReplicaSet a template.

How waiting pods are removed: of a ReplicaSet that shrinks, the controller deletes pods without a node first, then pods
in phase Pending, then pods that are not ready (kubernetes: pkg/controller/controller_utils.go, `ActivePodsWithRanks`).
So `scaled` to the number of pods that have started is enough. During a rollout the controller would shrink the largest
ReplicaSet, which serves (pkg/controller/deployment/sync.go, `scale`). `held` then gives a pod template that no
scheduler places: all earlier ReplicaSets are old ones, of which the controller removes pods that are not available, and
`maxUnavailable` 0 keeps those that are (pkg/controller/deployment/rolling.go, `cleanupUnhealthyReplicas`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from hermetic.api.condition_updates import condition_of
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.launch import Launch
from hermetic.kinds import DEPLOYMENT
from hermetic.objects.child_metadata import ChildMetadata, metadata_of, with_metadata
from hermetic.objects.names import (
    TEMPLATE_ANNOTATION,
    TEMPLATE_LABEL,
    Owner,
    digest,
    metadata,
    selector,
    template_mark,
    with_intent,
)
from hermetic.objects.pod import pod_template
from hermetic.objects.workloads.workload_kind import HOLD, HeadAddresses, Live, Manifest, Pod, Rollout, Workload

REPLACE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
SURGE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


class DeploymentWorkload:
    """Runs every spec whose replicas have one pod."""

    resource = DEPLOYMENT
    is_grouped = False
    filled: Mapping[str, Any] = MappingProxyType({})
    merge_keys: Mapping[str, tuple[str, ...]] = MappingProxyType(
        {
            "containers": ("name",),
            "initContainers": ("name",),
            "env": ("name",),
            "volumes": ("name",),
            "volumeMounts": ("mountPath",),
            "ports": ("containerPort", "protocol"),
            "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
        }
    )

    def runs(self, spec: ModelDeploymentSpec, /) -> bool:
        return spec.accelerator.nodes == 1

    def names(self, name: str, model: str, /) -> bool:
        return name == model

    def pods_per_replica(self, _: ModelDeploymentSpec, /) -> int:
        return 1

    def answering(self, owner: Owner, /) -> Mapping[str, str]:
        return selector(owner)

    def build(
        self, owner: Owner, spec: ModelDeploymentSpec, launch: Launch, extra: ChildMetadata, _: HeadAddresses, /
    ) -> tuple[Manifest, ...]:
        """One. Its progress deadline outlasts the slowest start and drain that the spec allows."""
        template = with_metadata(pod_template(owner, spec, launch), extra)
        budget = spec.startup_budget_seconds + sum(container.budget_seconds for container in launch.init_containers)
        mark = digest(template)[:16]
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            # The annotation shows, across restarts and upgrades, whether applying this would create new pods.
            "metadata": {
                **metadata(owner, launch.engine),
                "annotations": {TEMPLATE_ANNOTATION: mark},
            },
            "spec": {
                "replicas": spec.wanted_replicas,
                # None is used: the operator applies what is wanted. Who may scale a ReplicaSet could start pods of an
                # earlier template again, from before the weights were verified for example.
                "revisionHistoryLimit": 0,
                "progressDeadlineSeconds": budget + launch.grace_seconds + 60,
                "selector": {"matchLabels": selector(owner)},
                "strategy": SURGE if spec.rollout == "Surge" else REPLACE,
                "template": _labelled(template, mark),
            },
        }
        return (deployment,)

    def scaled(self, manifest: Live, replicas: int, owner: Owner, engine: str, /) -> Manifest:
        return _applied_again(manifest, {"replicas": replicas}, template_mark(manifest), owner, engine)

    def held(self, manifest: Live, replicas: int, waiting_pods: int, owner: Owner, engine: str, /) -> Manifest:
        template = _labelled(manifest["spec"]["template"], HOLD)
        fields = {
            "replicas": replicas,
            "template": {**template, "spec": {**template["spec"], "schedulerName": HOLD}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": waiting_pods, "maxUnavailable": 0}},
        }
        return _applied_again(manifest, fields, HOLD, owner, engine)

    def observe(self, live: Live | None, /) -> Workload:
        meta, spec, status = ((live or {}).get(part) or {} for part in ("metadata", "spec", "status"))
        existing, serving = int(status.get("replicas") or 0), int(status.get("availableReplicas") or 0)
        return Workload(
            self,
            live,
            template=spec.get("template") or {},
            replicas=int(spec.get("replicas", 1)),
            existing_replicas=existing,
            serving_replicas=serving,
            existing_pods=existing,
            updated_pods=int(status.get("updatedReplicas") or 0),
            serving_pods=serving,
            is_observed=status.get("observedGeneration", 0) >= meta.get("generation", 1),
        )

    def rollout(self, live: Live, /) -> Rollout:
        """By the conditions that pkg/controller/deployment/util/deployment_util.go of Kubernetes names."""
        status = live.get("status") or {}
        progress, failure = (condition_of(status, name) or {} for name in ("Progressing", "ReplicaFailure"))
        completed_at = progress.get("lastUpdateTime") if progress.get("reason") == "NewReplicaSetAvailable" else None
        return Rollout(
            completed_at=datetime.fromisoformat(completed_at) if completed_at else None,
            refusal=failure.get("message", "") if failure.get("status") == "True" else None,
            is_overdue=progress.get("reason") == "ProgressDeadlineExceeded",
        )

    def controller_of_pods(self, owner: Owner, /) -> str:
        return f"a ReplicaSet of Deployment '{owner.name}'"

    def revision_of(self, pod: Pod, owner: Owner, /) -> str:
        """The name of its ReplicaSet, which begins with the name of the Deployment."""
        references = pod["metadata"].get("ownerReferences") or ()
        names = (ref["name"] for ref in references if ref.get("controller") and ref["kind"] == "ReplicaSet")
        return next((name for name in names if name.startswith(f"{owner.name}-")), "")

    def member_labels(self, _pod: Pod, _owner: Owner, /) -> Mapping[str, str]:
        """None: a pod of a Deployment has a name by chance."""
        return {}


def _labelled(template: Mapping[str, Any], mark: str) -> Manifest:
    """The template with its mark as a pod label: only pods of the current template are diagnosed."""
    pod_metadata = template["metadata"]
    labels = {**(pod_metadata.get("labels") or {}), TEMPLATE_LABEL: mark}
    return {**template, "metadata": {**pod_metadata, "labels": labels}}


def _applied_again(manifest: Live, fields: Manifest, mark: str, owner: Owner, engine: str) -> Manifest:
    """The object with other fields of its spec: a spec that is blocked may not render a pod template of its own."""
    applied = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {**metadata(owner, engine), "annotations": {TEMPLATE_ANNOTATION: mark} if mark else {}},
        "spec": {**manifest["spec"], **fields},
    }
    # A policy of the platform that requires a label must admit this as well.
    return with_intent(with_metadata(applied, metadata_of(manifest)))
