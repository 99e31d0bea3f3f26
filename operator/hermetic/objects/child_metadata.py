"""Labels and annotations of the platform team on children and pods. Those of Hermetic win; no selector has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hermetic.api.model_metadata import LONGEST_ANNOTATION, ModelMetadata

OWN_PREFIX = "hermetic.dev/"


@dataclass(frozen=True, slots=True)
class ChildMetadata:
    """Labels and annotations that every child and pod of one model has."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


NO_METADATA = ChildMetadata()


def child_metadata(settings: ModelMetadata, labels: Mapping[str, str], annotations: Mapping[str, str]) -> ChildMetadata:
    """The fixed ones of the configuration, and of the model's own `labels` and `annotations` those that it lists."""
    return ChildMetadata(
        {**settings.labels, **{key: labels[key] for key in settings.propagated_labels if key in labels}},
        {
            **settings.annotations,
            # One that is too long blocks the model; what isolates its pods is written all the same.
            **{
                key: annotations[key]
                for key in settings.propagated_annotations
                if key in annotations and len(annotations[key]) <= LONGEST_ANNOTATION
            },
        },
    )


def metadata_of(live: Mapping[str, Any]) -> ChildMetadata:
    """What a live child has beside what belongs to Hermetic, as far as the operator reads it."""
    own = live["metadata"]
    annotations = own.get("annotations") or {}
    return ChildMetadata(
        own.get("labels") or {}, {key: value for key, value in annotations.items() if not key.startswith(OWN_PREFIX)}
    )


def with_metadata(manifest: dict[str, Any], extra: ChildMetadata) -> dict[str, Any]:
    """The manifest, or pod template, with these labels and annotations."""
    own = manifest["metadata"]
    parts = (("labels", extra.labels), ("annotations", extra.annotations))
    added = {name: {**part, **own.get(name, {})} for name, part in parts if part}
    return {**manifest, "metadata": {**own, **added}} if added else manifest
