"""Which field manager wrote a field of a live object, read from metadata.managedFields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.field_managers import LONGEST_NAME, OURS
from hermetic.api.text import one_line
from hermetic.objects.names import SELECTED_BY

KUBERNETES = "kube-controller-manager"
LARGEST_BOOK = 16 * 2**10
MOST_MANAGERS = 8


@dataclass(frozen=True, slots=True)
class FieldStep:
    """One step into an object: a field, and the key of the item where the field is a list with keys."""

    field: str
    key: tuple[tuple[str, Any], ...] = ()


Steps = tuple[FieldStep, ...]


def spelled(steps: Steps, *, keys: bool = True) -> str:
    """The place in the usual notation: spec.template.spec.containers[engine].env[HTTPS_PROXY]."""
    return one_line(".".join(_spelled(step) if keys else step.field for step in steps))


def _spelled(step: FieldStep) -> str:
    return f"{step.field}[{step.key[0][1]}]" if step.key else step.field


def kept(managed: Any) -> list[dict[str, Any]]:
    """Of metadata.managedFields, entries about the spec by other managers than the operator's apply; size-bounded."""
    entries: list[dict[str, Any]] = []
    for entry in reversed(managed) if isinstance(managed, list) else ():
        if len(entries) == MOST_MANAGERS:
            break
        fields = (entry.get("fieldsV1") or {}).get("f:spec")
        if not fields or (entry.get("manager"), entry.get("operation")) == OURS:
            continue
        name = {"manager": str(entry.get("manager") or "")[:LONGEST_NAME], "operation": entry.get("operation")}
        small = len(json.dumps(fields)) <= LARGEST_BOOK // MOST_MANAGERS
        entries.append({**name, "fieldsV1": {"f:spec": fields if small else {}}})
    return entries[::-1]


def labellers(managed: Any) -> list[dict[str, Any]]:
    """Of metadata.managedFields, who but Kubernetes owns one of SELECTED_BY; bounded. Removals leave no entry."""
    writers: list[dict[str, Any]] = []
    for entry in managed if isinstance(managed, list) else ():
        labels = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:labels") or {}
        named: dict[str, Any] = {f"f:{label}": {} for label in SELECTED_BY if f"f:{label}" in labels}
        if named and entry.get("manager") != KUBERNETES and len(writers) < MOST_MANAGERS:
            name = str(entry.get("manager") or "")[:LONGEST_NAME]
            writers.append({"manager": name, "fieldsV1": {"f:metadata": {"f:labels": named}}})
    return writers


def writers(live: Mapping[str, Any], steps: Steps) -> tuple[str, ...]:
    """The names of the field managers, other than the operator, to which the place belongs."""
    managed = live["metadata"].get("managedFields") or ()
    names = (one_line(entry["manager"]) for entry in managed if _owns(entry.get("fieldsV1"), steps))
    return tuple(sorted({name for name in names if name != OURS[0]}))


def _owns(fields: Any, steps: Iterable[FieldStep]) -> bool:
    for step in steps:
        fields = fields.get(f"f:{step.field}") if isinstance(fields, Mapping) else None
        if fields is not None and step.key:
            fields = _item(fields, dict(step.key))
        if fields is None:
            return False
        if not fields:  # the whole value
            return True
    return True


def _item(fields: Mapping[str, Any], key: Mapping[str, Any]) -> Any:
    for name, inner in fields.items():
        if name.startswith("k:") and _same_item(json.loads(name[2:]), key):
            return inner
    return None


def _same_item(named: Mapping[str, Any], key: Mapping[str, Any]) -> bool:
    return all(named.get(field) == value for field, value in key.items() if field in named)
