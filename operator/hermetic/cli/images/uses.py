"""Which images objects name, and in which field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.kinds import DEPLOYMENT, EGRESS_AUDIT, MODEL_DEPLOYMENT
from hermetic.objects.names import MODEL_LABEL
from hermetic.objects.weights_verifier import VERIFIER
from hermetic.objects.workloads.registry import WORKLOAD_KINDS

Manifest = Mapping[str, Any]
CONFIGURATION = "Configuration"
WEIGHTS_FIELD = "spec.weights.imageVolume.reference"
_WORKLOADS = frozenset(kind.kind for kind in WORKLOAD_KINDS)
_OF_THE_BUNDLE = frozenset({CONFIGURATION, DEPLOYMENT.kind, EGRESS_AUDIT.kind, *_WORKLOADS})
"""Kinds that name the operator's own image: it runs, it probes, and it verifies weights."""


@dataclass(frozen=True, slots=True, order=True)
class ImageUse:
    """A field of an object that names an image; `field` is its path in the object."""

    image: str
    kind: str
    namespace: str
    name: str
    field: str

    @property
    def where(self) -> str:
        """The object and the field, as text."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}: {self.field}"


def uses_of(manifest: Manifest) -> Iterator[ImageUse]:
    """The images that an object names: a ModelDeployment, its workload, an EgressAudit or the operator's Deployment."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    for field, image in _fields(str(manifest["kind"]), spec, metadata.get("labels") or {}):
        yield ImageUse(image, str(manifest["kind"]), metadata.get("namespace", ""), metadata.get("name", ""), field)


def is_of_the_bundle(uses: Iterable[ImageUse]) -> bool:
    """Whether only fields for the operator's own image name it; `hermetic bundle load` pushes that image."""
    return all(use.kind in _OF_THE_BUNDLE for use in uses)


def is_of_weights(uses: Iterable[ImageUse]) -> bool:
    """Whether it is used as a volume of weights alone; `hermetic stage` writes such an image."""
    return all(use.field == WEIGHTS_FIELD for use in uses)


def _fields(kind: str, spec: Manifest, labels: Manifest) -> Iterator[tuple[str, str]]:
    if kind == MODEL_DEPLOYMENT.kind:
        for engine, settings in spec["engine"].items():
            yield f"spec.engine.{engine}.image", settings["image"]
        volume = (spec.get("weights") or {}).get("imageVolume")
        if volume is not None:
            yield WEIGHTS_FIELD, volume["reference"]
    elif kind == EGRESS_AUDIT.kind and (probe := spec.get("probe")):
        yield "spec.probe.image", probe["image"]
    elif kind in _WORKLOADS and MODEL_LABEL in labels:
        # The engine's image, which the ModelDeployment names, is that of all its other init containers.
        init_containers = spec["template"]["spec"].get("initContainers") or ()
        yield from _images_of(container for container in init_containers if container["name"] == VERIFIER)
    elif kind == DEPLOYMENT.kind:
        yield from _images_of(spec["template"]["spec"]["containers"])


def _images_of(containers: Iterable[Manifest]) -> Iterator[tuple[str, str]]:
    return ((f"container {container['name']}", container["image"]) for container in containers)
