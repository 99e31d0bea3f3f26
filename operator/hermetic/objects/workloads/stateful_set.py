"""StatefulSets: a replica is a group of pods, one on each of its nodes, with a StatefulSet of its own.

A StatefulSet asks for all pods of its group or for none, and its controller makes and removes them at once (Parallel;
kubernetes: pkg/controller/statefulset/stateful_set_control.go). It replaces no pod for a new template (OnDelete), and
plan/groups/ changes the template only while none of its pods exists: a group is never of two templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.launch import HEAD_VARIABLE, RANK_LABEL, Launch, literal
from hermetic.kinds import STATEFUL_SET
from hermetic.objects.child_metadata import ChildMetadata, metadata_of, with_metadata
from hermetic.objects.groups import HEAD, group_index, group_metadata, group_name, group_selector
from hermetic.objects.names import (
    GROUP_LABEL,
    TEMPLATE_ANNOTATION,
    TEMPLATE_LABEL,
    Owner,
    digest,
    selector,
    template_mark,
    template_of,
    with_intent,
)
from hermetic.objects.pod import ENGINE, pod_template
from hermetic.objects.workloads.deployment import DeploymentWorkload
from hermetic.objects.workloads.workload_kind import HeadAddresses, Live, Manifest, Pod, Rollout, Workload

_RENDERED = ("serviceName", "podManagementPolicy", "updateStrategy", "revisionHistoryLimit", "selector", "template")


class StatefulSetWorkload:
    """Runs every spec whose replicas have several nodes."""

    resource = STATEFUL_SET
    is_grouped = True
    merge_keys: Mapping[str, tuple[str, ...]] = DeploymentWorkload.merge_keys
    filled: Mapping[str, Any] = MappingProxyType(
        {"spec.persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}}
    )

    def runs(self, spec: ModelDeploymentSpec, /) -> bool:
        return spec.accelerator.nodes > 1

    def names(self, name: str, model: str, /) -> bool:
        return group_index(name, model) is not None

    def pods_per_replica(self, spec: ModelDeploymentSpec, /) -> int:
        return spec.accelerator.nodes

    def answering(self, owner: Owner, /) -> Mapping[str, str]:
        return {**selector(owner), **HEAD}

    def build(
        self,
        owner: Owner,
        spec: ModelDeploymentSpec,
        launch: Launch,
        extra: ChildMetadata,
        head_addresses: HeadAddresses,
        /,
    ) -> tuple[Manifest, ...]:
        """One for each replica whose head has an address."""
        if head_addresses is None:
            # What is printed without a cluster shows where the address will be from.
            names = (group_name(owner.name, index) for index in range(spec.wanted_replicas))
            head_addresses = tuple(f"{name}.{owner.namespace}.svc" for name in names)
        template = pod_template(owner, spec, launch)
        return tuple(
            _group(owner, spec, launch.engine, index, with_metadata(_of_group(template, owner, index, address), extra))
            for index, address in enumerate(head_addresses)
            if address
        )

    def scaled(self, manifest: Live, replicas: int, owner: Owner, engine: str, /) -> Manifest:
        index, mark = group_index(manifest["metadata"]["name"], owner.name), template_mark(manifest)
        assert index is not None  # noqa: S101 - `names` selects the objects of groups
        count = {"replicas": replicas}
        applied = {
            "apiVersion": STATEFUL_SET.api_version,
            "kind": STATEFUL_SET.kind,
            "metadata": {
                **group_metadata(owner, engine, index),
                "annotations": {TEMPLATE_ANNOTATION: mark} if mark else {},
            },
            "spec": {**{name: manifest["spec"][name] for name in _RENDERED if name in manifest["spec"]}, **count},
        }
        return with_intent(with_metadata(applied, metadata_of(manifest)))

    def held(self, manifest: Live, replicas: int, _: int, owner: Owner, engine: str, /) -> Manifest:
        """As `scaled`: the pods of a group are all of one template, so no rollout goes on within it."""
        return self.scaled(manifest, replicas, owner, engine)

    def observe(self, live: Live | None, /) -> Workload:
        meta, spec, status = ((live or {}).get(part) or {} for part in ("metadata", "spec", "status"))
        replicas, existing = int(spec.get("replicas", 0)), int(status.get("replicas") or 0)
        # Of a group that is not whole no pod serves.
        is_whole = int(status.get("readyReplicas") or 0) >= replicas > 0
        return Workload(
            self,
            live,
            template=spec.get("template") or {},
            replicas=int(replicas > 0),
            existing_replicas=int(existing >= replicas > 0),
            serving_replicas=int(is_whole),
            existing_pods=existing,
            updated_pods=existing,
            serving_pods=replicas if is_whole else 0,
            is_observed=status.get("observedGeneration", 0) >= meta.get("generation", 1),
        )

    def rollout(self, _: Live, /) -> Rollout:
        """Nothing: plan/groups/ rolls out, and a StatefulSet does not report pods that it could not create."""
        return Rollout()

    def controller_of_pods(self, owner: Owner, /) -> str:
        return f"a StatefulSet '{group_name(owner.name, 0)}' or of another group"

    def revision_of(self, pod: Pod, owner: Owner, /) -> str:
        """The name of its StatefulSet and its template."""
        references = pod["metadata"].get("ownerReferences") or ()
        names = (ref["name"] for ref in references if ref.get("controller") and ref["kind"] == STATEFUL_SET.kind)
        name = next((name for name in names if self.names(name, owner.name)), "")
        return f"{name}/{template_of(pod)}" if name else ""

    def member_labels(self, pod: Pod, owner: Owner, /) -> Mapping[str, str]:
        """Group and rank, by the pod's name."""
        stateful_set, _, rank = str(pod["metadata"]["name"]).rpartition("-")
        index = group_index(stateful_set, owner.name)
        controllers = (ref.get("kind") for ref in pod["metadata"].get("ownerReferences") or () if ref.get("controller"))
        if index is None or self.resource.kind not in controllers:
            return {}
        return {GROUP_LABEL: str(index), RANK_LABEL: rank}


def whole_of(parts: Sequence[Workload]) -> Workload:
    """All groups of a model as one workload, in the order of their indexes."""
    groups = tuple(sorted(parts, key=lambda part: (len(part.name), part.name)))
    shown = next((group for group in groups if group.replicas), groups[0])
    return replace(
        shown,
        replicas=sum(group.replicas for group in groups),
        existing_replicas=sum(group.existing_replicas for group in groups),
        serving_replicas=sum(group.serving_replicas for group in groups),
        existing_pods=sum(group.existing_pods for group in groups),
        updated_pods=sum(group.updated_pods for group in groups),
        serving_pods=sum(group.serving_pods for group in groups),
        is_observed=all(group.is_observed for group in groups),
        groups=groups,
    )


def _group(owner: Owner, spec: ModelDeploymentSpec, engine: str, index: int, template: Manifest) -> Manifest:
    mark, own = digest(template)[:16], template["metadata"]
    labels = {**own["labels"], TEMPLATE_LABEL: mark}
    return {
        "apiVersion": STATEFUL_SET.api_version,
        "kind": STATEFUL_SET.kind,
        "metadata": {**group_metadata(owner, engine, index), "annotations": {TEMPLATE_ANNOTATION: mark}},
        "spec": {
            "replicas": spec.accelerator.nodes,
            "serviceName": group_name(owner.name, index),
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": group_selector(owner, index)},
            "template": {**template, "metadata": {**own, "labels": labels}},
        },
    }


def _of_group(template: Manifest, owner: Owner, index: int, address: str) -> Manifest:
    """The template of a group: its label, one pod on each node, and where its members ask for the head."""
    own, pod = template["metadata"], template["spec"]
    apart = {"labelSelector": {"matchLabels": group_selector(owner, index)}, "topologyKey": "kubernetes.io/hostname"}
    anti_affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    containers = [
        {**container, "env": [*container["env"], literal(HEAD_VARIABLE, address)]}
        if container["name"] == ENGINE
        else container
        for container in pod["containers"]
    ]
    return {
        "metadata": {**own, "labels": {**own["labels"], GROUP_LABEL: str(index)}},
        "spec": {**pod, "affinity": {**pod.get("affinity", {}), **anti_affinity}, "containers": containers},
    }
