"""Whether a live object still has what was applied.

Two comparisons: the digest of the manifest in an annotation (differs when the operator drops a field), and every value
that the operator sets (differs when another client changes it). Fields that others added are handled by
plan/tampering/foreign_fields.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hermetic.api.quantities import parse_quantity
from hermetic.objects.children import CHILDREN
from hermetic.objects.names import INTENT_ANNOTATION
from hermetic.plan.tampering.field_owners import FieldStep, Steps

# Values that the API server keeps as one: a key added to a selector changes what it selects.
WHOLE = frozenset(
    {"selector", "podSelector", "labelSelector", "nodeSelector", "requiredDuringSchedulingIgnoredDuringExecution"}
)

QUANTITIES = frozenset({"requests", "limits", "capacity"})


def intent(manifest: Mapping[str, Any]) -> str:
    """The digest of the manifest that an object was applied from; "" when it has none."""
    return str((manifest["metadata"].get("annotations") or {}).get(INTENT_ANNOTATION, ""))


def is_of_another_intent(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether the live object was last applied from another manifest than the desired one."""
    return intent(live) != intent(desired)


def has_drifted(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether a value that the operator set has changed."""
    return any(True for _ in differences(desired, live))


def differences(desired: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[Steps]:
    """The places of values that the operator set and that have changed."""
    merged = {"ownerReferences": "uid", **_first_keys(desired["kind"])}
    return _differences(desired, live, merged, ())


def holds_template(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether the live object's pod template still holds every value of the desired one."""
    desired_template, live_template = desired["spec"]["template"], live["spec"]["template"]
    return not any(
        True
        for _ in _differences(desired_template, live_template, _first_keys(desired["kind"]), (FieldStep("template"),))
    )


def _differences(desired: Any, live: Any, merged: Mapping[str, str], at: Steps) -> Iterator[Steps]:
    if desired == live:  # at rest this holds for nearly everything, and is decided in C
        return
    if isinstance(desired, dict):
        yield from _in_fields(desired, live, merged, at)
    elif isinstance(desired, (list, tuple)):
        yield from _in_items(desired, live, merged, at)
    elif not ((desired == "" and live is None) or (_field(at) == "sizeLimit" and _same_quantity(desired, live))):
        yield at


def _in_fields(desired: Mapping[str, Any], live: Any, merged: Mapping[str, str], at: Steps) -> Iterator[Steps]:
    name = _field(at)
    if not isinstance(live, dict):
        if desired or live is not None:
            yield at
    elif name in WHOLE:
        if _without_empty(desired) != _without_empty(live):
            yield at
    elif name in QUANTITIES:
        yield from ((*at, FieldStep(key)) for key, value in desired.items() if not _same_quantity(value, live.get(key)))
    else:
        for key, value in desired.items():
            yield from _differences(value, live.get(key), merged, (*at, FieldStep(key)))


def _in_items(desired: Sequence[Any], live: Any, merged: Mapping[str, str], at: Steps) -> Iterator[Steps]:
    name = _field(at)
    key = merged.get(name)
    if live is None:
        if desired:
            yield at
    elif key is None:
        if _without_empty(desired) != _without_empty(live):
            yield at
    else:
        by_key = {item.get(key): item for item in live}
        for item in desired:
            steps = (*at[:-1], FieldStep(name, ((key, item[key]),)))
            if item[key] in by_key:
                yield from _differences(item, by_key[item[key]], merged, steps)
            else:
                yield steps


def _first_keys(kind: str) -> Mapping[str, str]:
    """The merge key by which the operator's own items of a list are found: no two of them share its value."""
    return {name: keys[0] for name, keys in CHILDREN[kind].merge_keys.items()} if kind in CHILDREN else {}


def _field(at: Steps) -> str:
    """The name of the field that holds a value; "" for an item of a list."""
    return at[-1].field if at and not at[-1].key else ""


def _without_empty(value: Any) -> Any:
    """The value without empty fields, equal to absence. An empty selector selects everything: it stays."""
    if isinstance(value, dict):
        entries = {key: _without_empty(inner) for key, inner in value.items()}
        return {key: inner for key, inner in entries.items() if inner not in (None, "", [])}
    if isinstance(value, (list, tuple)):
        return [_without_empty(inner) for inner in value]
    return value


def _same_quantity(desired: Any, live: Any) -> bool:
    if desired == live:
        return True
    try:
        return parse_quantity(desired) == parse_quantity(live)
    except ValueError:
        return False
