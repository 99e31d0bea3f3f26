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
from hermetic.kinds import MODEL_DEPLOYMENT, Kind
from hermetic.kube.metadata import lean_metadata
from hermetic.objects.child_projection import LONGEST_TEXT, NAMED_AFTER_MODEL, Projection
from hermetic.objects.children import CHILD_KINDS, CHILDREN
from hermetic.objects.groups import HEAD
from hermetic.objects.http_route import ROUTE_GROUP_LABEL
from hermetic.objects.names import GROUP_LABEL, MANAGED_BY, MEMORY_ANNOTATION

Manifest = Mapping[str, Any]

CUT = frozenset({MODEL_DEPLOYMENT, *CHILD_KINDS})
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
OF_OTHERS = ("secrets", "imagePullSecrets")
"""Lists of a ServiceAccount that are never rendered: one item is kept, to show that the list is not empty."""


def cut(kind: Kind, manifest: Manifest, owner: tuple[str, str] | None, platform: ModelMetadata) -> dict[str, Any]:
    """The kept part of an object; `owner` is the (namespace, name) that its controller or labels name."""
    projection = _projection_of(kind)
    is_ours = owner is not None and projection.is_named_for(manifest["metadata"]["name"], owner[1])
    if owner is None or not is_ours or projection.is_excessive(manifest, owner[1]):
        return head(kind, manifest)
    reduced = {**manifest, **{name: _first_of(manifest[name]) for name in OF_OTHERS if manifest.get(name)}}
    reduced["metadata"] = _metadata(projection, manifest["metadata"], platform)
    if projection.status is not None and manifest.get("status"):
        reduced["status"] = projection.status(manifest["status"])
    if projection.most_bytes is not None and len(json.dumps(reduced)) > projection.most_bytes:
        return head(kind, manifest)
    return reduced


def head(kind: Kind, manifest: Manifest) -> dict[str, Any]:
    """Identity and owner of an object: enough to see that it occupies the name of a child."""
    metadata = _metadata(_projection_of(kind), manifest["metadata"], ModelMetadata())
    child = CHILDREN.get(kind.kind)
    return {
        **{name: manifest[name] for name in ("apiVersion", "kind") if name in manifest},
        "metadata": {name: value for name, value in metadata.items() if name not in ("annotations", "managedFields")},
        # Fields that everything that runs pods has.
        "spec": {"template": {"metadata": {}, "spec": {}}} if child is not None and child.runs_pods else {},
    }


def _projection_of(kind: Kind) -> Projection:
    child = CHILDREN.get(kind.kind)
    return NAMED_AFTER_MODEL if child is None else child.projection


def _first_of(items: Sequence[Manifest]) -> list[dict[str, str]]:
    return [{"name": str(items[0].get("name") or "")[:LONGEST_TEXT]}]


def _metadata(projection: Projection, metadata: Manifest, platform: ModelMetadata) -> dict[str, Any]:
    lean = lean_metadata(metadata)
    reduced = {name: lean[name] for name in KEPT if name in lean}
    labels = {name: value for name, value in (lean.get("labels") or {}).items() if name in LABELS | platform.label_keys}
    annotations = {
        name: value[:LONGEST_TEXT]
        for name, value in (lean.get("annotations") or {}).items()
        if name in ANNOTATIONS | platform.annotation_keys or projection.has_annotations_of_others
    }
    parts = (("labels", labels), ("annotations", annotations), ("ownerReferences", projection.owners(lean)))
    return reduced | {name: value for name, value in parts if value}
