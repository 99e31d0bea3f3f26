"""Limits what is kept of children and ModelDeployments, and of objects of tenants with the labels of children.

A tenant can create thousands of objects with those labels, a megabyte each. What no decision reads is dropped on
arrival: annotations, labels and owners of others, and all but the identity of an object that is no child. Labels and
annotations that `modelMetadata` of the configuration names are kept, since children must have them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hermetic.api.model_metadata import ModelMetadata
from hermetic.kinds import (
    HORIZONTAL_POD_AUTOSCALER,
    HTTP_ROUTE,
    MODEL_DEPLOYMENT,
    NETWORK_POLICY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    SERVICE,
    Kind,
)
from hermetic.kube.metadata import lean_metadata
from hermetic.objects.children import CHILD_KINDS
from hermetic.objects.groups import HEAD, group_index
from hermetic.objects.http_route import ROUTE_GROUP_LABEL, is_of_group
from hermetic.objects.names import GROUP_LABEL, MANAGED_BY, MEMORY_ANNOTATION
from hermetic.objects.workloads.registry import WORKLOAD_KINDS

Manifest = Mapping[str, Any]

CUT = frozenset({MODEL_DEPLOYMENT, *CHILD_KINDS})
OF_GROUPS = frozenset({NETWORK_POLICY, SERVICE, *WORKLOAD_KINDS})
LONGEST_ANNOTATION = 1024
LARGEST_CLAIM = 16 * 2**10  # bytes; a rendered claim takes less than 1 KiB
KEPT = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "managedFields",
)  # fmt: skip
LABELS = frozenset({
    "app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component", MANAGED_BY[0],
    "hermetic.dev/modeldeployment", "hermetic.dev/namespace", "hermetic.dev/owner-uid", "hermetic.dev/pod-template",
    GROUP_LABEL, ROUTE_GROUP_LABEL, *HEAD,
})  # fmt: skip
ANNOTATIONS = frozenset({"hermetic.dev/intent", "hermetic.dev/pod-template", MEMORY_ANNOTATION})
READ_OF_A_CONDITION = ("type", "status", "reason", "message")
MOST_CONDITIONS = 8
MOST_PARENTS = 32  # of the CRD
READ_OF_A_PARENT = ("kind", "namespace", "name")
OF_OTHERS = ("secrets", "imagePullSecrets")
"""Lists of a ServiceAccount that are never rendered: one item is kept, to show that the list is not empty."""


def cut(kind: Kind, manifest: Manifest, owner: tuple[str, str] | None, platform: ModelMetadata) -> dict[str, Any]:
    """The kept part of an object; `owner` is the (namespace, name) that its controller or labels name."""
    if owner is None or not _is_named_after(kind, manifest, owner[1]):
        return head(kind, manifest)
    reduced = {**manifest, **{name: _first_of(manifest[name]) for name in OF_OTHERS if manifest.get(name)}}
    reduced["metadata"] = _metadata(kind, manifest["metadata"], platform)
    if kind is HORIZONTAL_POD_AUTOSCALER and manifest.get("status"):
        reduced["status"] = _autoscaler_status(manifest["status"])
    if kind is HTTP_ROUTE and manifest.get("status"):
        reduced["status"] = _route_status(manifest["status"])
    if kind is PERSISTENT_VOLUME_CLAIM and len(json.dumps(reduced)) > LARGEST_CLAIM:
        return head(kind, manifest)
    return reduced


def _autoscaler_status(status: Manifest) -> dict[str, Any]:
    """The conditions without their times: the controller writes the metric's present value every 15 seconds."""
    return {"conditions": lean_conditions(status.get("conditions") or ())}


def _route_status(status: Manifest) -> dict[str, Any]:
    """What each controller reports of the route, and of which generation."""
    return {"parents": [_parent(parent) for parent in (status.get("parents") or ())[:MOST_PARENTS]]}


def _parent(parent: Manifest) -> dict[str, Any]:
    conditions = parent.get("conditions") or ()
    lean: list[dict[str, Any]] = [
        {**condition, **{key: reported[key] for key in ("observedGeneration",) if isinstance(reported.get(key), int)}}
        for condition, reported in zip(lean_conditions(conditions), conditions, strict=False)
    ]
    reference = parent.get("parentRef") or {}
    read = {name: str(reference[name])[:LONGEST_ANNOTATION] for name in READ_OF_A_PARENT if reference.get(name)}
    return {"parentRef": read, "conditions": lean}


def lean_conditions(conditions: Sequence[Manifest]) -> list[dict[str, str]]:
    """Type, status, reason and message of the first conditions, cut: their times change without a change of state."""
    return [
        {field: str(condition.get(field) or "")[:LONGEST_ANNOTATION] for field in READ_OF_A_CONDITION}
        for condition in conditions[:MOST_CONDITIONS]
    ]


def _first_of(items: Sequence[Manifest]) -> list[dict[str, str]]:
    return [{"name": str(items[0].get("name") or "")[:LONGEST_ANNOTATION]}]


def head(kind: Kind, manifest: Manifest) -> dict[str, Any]:
    """Identity and owner of an object: enough to see that it occupies the name of a child."""
    metadata = _metadata(kind, manifest["metadata"], ModelMetadata())
    return {
        **{name: manifest[name] for name in ("apiVersion", "kind") if name in manifest},
        "metadata": {name: value for name, value in metadata.items() if name not in ("annotations", "managedFields")},
        # Fields that everything that runs pods has.
        "spec": {"template": {"metadata": {}, "spec": {}}} if kind in WORKLOAD_KINDS else {},
    }


def _is_named_after(kind: Kind, manifest: Manifest, owner: str) -> bool:
    """Whether the name is one that is rendered for this owner; of other objects only `head` is read."""
    name = manifest["metadata"]["name"]
    if kind is PERSISTENT_VOLUME_CLAIM:
        return bool(name.startswith(f"{owner}-weights-"))
    if kind is HTTP_ROUTE and is_of_group(name):
        return True
    is_part_of_group = kind in OF_GROUPS and group_index(name, owner) is not None
    return kind is PERSISTENT_VOLUME or name == owner or is_part_of_group


def _metadata(kind: Kind, metadata: Manifest, platform: ModelMetadata) -> dict[str, Any]:
    lean = lean_metadata(metadata)
    reduced = {name: lean[name] for name in KEPT if name in lean}
    labels = {name: value for name, value in (lean.get("labels") or {}).items() if name in LABELS | platform.label_keys}
    annotations = {
        name: value[:LONGEST_ANNOTATION]
        for name, value in (lean.get("annotations") or {}).items()
        if name in ANNOTATIONS | platform.annotation_keys or kind is SERVICE
    }
    references = lean.get("ownerReferences") or ()
    if kind is HTTP_ROUTE and is_of_group(metadata["name"]):
        owners = [owner for owner in references if owner.get("kind") == MODEL_DEPLOYMENT.kind][:MOST_PARENTS]
    else:
        owners = [owner for owner in references if owner.get("controller")]
    parts = (("labels", labels), ("annotations", annotations), ("ownerReferences", owners))
    return reduced | {name: value for name, value in parts if value}
