"""What the operator reads of the live objects of a child. All else of them is dropped when they arrive."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Any

from hermetic.api.group_rules import MOST_PODS
from hermetic.kinds import MODEL_DEPLOYMENT
from hermetic.objects.groups import group_index
from hermetic.objects.http_route import is_of_group
from hermetic.objects.names import MODEL_LABEL

Manifest = Mapping[str, Any]

LONGEST_TEXT = 1024
LARGEST_SPEC = 16 * 2**10
"""Bytes of the spec of an object of which a model has many; rendered ones take less than 8 KiB."""
MOST_CONDITIONS = 8
MOST_PARENTS = 32  # of the CRD
READ_OF_A_PARENT = ("kind", "namespace", "name")
READ_OF_A_CONDITION = ("type", "status", "reason", "message")


def controllers(metadata: Manifest) -> list[Manifest]:
    """The owner reference that names the controller."""
    return [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]


def is_never_excessive(_manifest: Manifest, _model: str) -> bool:
    """For kinds of which a model has one object."""
    return False


@dataclass(frozen=True, slots=True)
class Projection:
    """What is kept of the objects of one kind.

    `is_named_for`: whether an object of this name is rendered for a model of that name; of others only the head is
    kept. `status`: the kept part of a status; None: all of it. `owners`: the kept owner references, by the metadata.
    `most_bytes`: of an object that is larger only the head is kept; None: no such bound. `has_annotations_of_others`:
    annotations that are not Hermetic's are kept too, cut. `is_excessive`: whether an object is not one that is rendered
    for the model. A tenant can make one for each of many groups: only the head of it is kept.
    """

    is_named_for: Callable[[str, str], bool] = eq
    status: Callable[[Manifest], dict[str, Any]] | None = None
    owners: Callable[[Manifest], list[Manifest]] = controllers
    most_bytes: int | None = None
    has_annotations_of_others: bool = False
    is_excessive: Callable[[Manifest, str], bool] = is_never_excessive


NAMED_AFTER_MODEL = Projection()


def is_of_any_model(_name: str, _model: str) -> bool:
    """For a cluster-scoped object, which is found by its labels."""
    return True


def is_of_model_or_group(name: str, model: str) -> bool:
    """Whether the name is that of the model, or of one of its groups."""
    index = group_index(name, model)
    return name == model or (index is not None and index < MOST_PODS)


def is_too_large(manifest: Manifest, model: str) -> bool:
    """Whether an object of a group is larger than any that is rendered."""
    return manifest["metadata"]["name"] != model and len(json.dumps(manifest.get("spec") or {})) > LARGEST_SPEC


def runs_pods_of_others(manifest: Manifest, model: str) -> bool:
    """Whether the workload of a group has pods that are not the model's."""
    template = (manifest.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    return manifest["metadata"]["name"] != model and labels.get(MODEL_LABEL) != model


def is_of_model_or_route_group(name: str, model: str) -> bool:
    """Whether an HTTPRoute of this name leads to the model alone, or to a group, which has no name of a model."""
    return name == model or is_of_group(name)


def route_owners(metadata: Manifest) -> list[Manifest]:
    """The ModelDeployments that own the route of a group, and the controller of another route."""
    if not is_of_group(metadata["name"]):
        return controllers(metadata)
    references = metadata.get("ownerReferences") or ()
    return [owner for owner in references if owner.get("kind") == MODEL_DEPLOYMENT.kind][:MOST_PARENTS]


def autoscaler_status(status: Manifest) -> dict[str, Any]:
    """The conditions without their times: the controller writes the metric's present value every 15 seconds."""
    return {"conditions": lean_conditions(status.get("conditions") or ())}


def route_status(status: Manifest) -> dict[str, Any]:
    """What each controller reports of the route, and of which generation."""
    return {"parents": [_parent(parent) for parent in (status.get("parents") or ())[:MOST_PARENTS]]}


def lean_conditions(conditions: Sequence[Manifest]) -> list[dict[str, str]]:
    """Type, status, reason and message of the first conditions, cut: their times change without a change of state."""
    return [
        {field: str(condition.get(field) or "")[:LONGEST_TEXT] for field in READ_OF_A_CONDITION}
        for condition in conditions[:MOST_CONDITIONS]
    ]


def _parent(parent: Manifest) -> dict[str, Any]:
    conditions = parent.get("conditions") or ()
    lean: list[dict[str, Any]] = [
        {**condition, **{key: reported[key] for key in ("observedGeneration",) if isinstance(reported.get(key), int)}}
        for condition, reported in zip(lean_conditions(conditions), conditions, strict=False)
    ]
    reference = parent.get("parentRef") or {}
    read = {name: str(reference[name])[:LONGEST_TEXT] for name in READ_OF_A_PARENT if reference.get(name)}
    return {"parentRef": read, "conditions": lean}
