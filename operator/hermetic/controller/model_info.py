"""The labels of the metric `hermetic_model_info`: what each ModelDeployment serves, as its spec says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hermetic.api.text import one_line

LONGEST_LABEL = 256
"""Characters of a label's value; the CRD allows no longer name or version."""


class ModelInfo(NamedTuple):
    """The labels of one model. The spec fixes them, so a series ends only when the spec changes or the object goes.

    `model_name` is the name that clients send and that the engines' own metrics have in their label `model_name`.
    """

    namespace: str
    name: str
    model_name: str
    engine: str
    version: str
    gpus: str


def model_info(manifest: Mapping[str, Any]) -> ModelInfo:
    """The labels of a manifest of the cluster; "" for what it lacks, so that one odd object ends no scrape."""
    metadata, spec = _mapping(manifest, "metadata"), _mapping(manifest, "spec")
    engine = next(iter(_mapping(spec, "engine")), "")
    labels = (
        metadata.get("namespace"),
        metadata.get("name"),
        _mapping(spec, "model").get("name"),
        engine,
        _mapping(_mapping(spec, "engine"), engine).get("version"),
        _mapping(spec, "accelerator").get("count"),
    )
    return ModelInfo(*("" if label is None else one_line(str(label))[:LONGEST_LABEL] for label in labels))


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}
