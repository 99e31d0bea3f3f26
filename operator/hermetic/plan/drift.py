"""Does the live object still say what we want of it?

Two questions: does it carry the digest of our present intent (a field that we dropped shows there), and does it still
hold every value that we set (a field that somebody changed shows here). What others added beside ours stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermetic.api.quantities import parse_quantity
from hermetic.objects.names import INTENT_ANNOTATION

# Values that the API server keeps as one: a key that somebody adds to a selector has changed what we select.
WHOLE = frozenset(
    {
        "selector",
        "podSelector",
        "labelSelector",
        "nodeSelector",
        "requiredDuringSchedulingIgnoredDuringExecution",
    }
)

# Lists that the API server merges by a key, per kind; every other list is one value and must be equal.
MERGED_LISTS: Mapping[str, Mapping[str, str]] = {
    "Deployment": {
        "containers": "name",
        "initContainers": "name",
        "env": "name",
        "volumes": "name",
        "volumeMounts": "mountPath",
        "ports": "containerPort",
        "topologySpreadConstraints": "topologyKey",
    },
    "Service": {"ports": "port"},
}
QUANTITIES = frozenset({"requests", "limits", "capacity"})


def intent(manifest: Mapping[str, Any]) -> str:
    """The digest of the manifest that an object was applied from; "" when it carries none."""
    return str((manifest["metadata"].get("annotations") or {}).get(INTENT_ANNOTATION, ""))


def is_of_another_intent(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether the live object was last applied from another manifest than the desired one."""
    return intent(live) != intent(desired)


def has_drifted(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether a value that we set is another one now."""
    merged = {"ownerReferences": "uid", **MERGED_LISTS.get(desired["kind"], {})}
    return not _holds(desired, live, merged, "")


def holds_template(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether the live Deployment's pod template still holds every value of the desired one."""
    return _holds(desired["spec"]["template"], live["spec"]["template"], MERGED_LISTS["Deployment"], "template")


def _holds(wanted: Any, found: Any, merged: Mapping[str, str], name: str) -> bool:
    if isinstance(wanted, Mapping):
        return _holds_fields(wanted, found, merged, name)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return _holds_items(wanted, found, merged, name)
    if wanted == "" and found is None:
        return True
    return bool(wanted == found) or (name == "sizeLimit" and _same_quantity(wanted, found))


def _holds_fields(wanted: Mapping[str, Any], found: Any, merged: Mapping[str, str], name: str) -> bool:
    if not isinstance(found, Mapping):
        return not wanted and found is None
    if name in WHOLE:
        return bool(_said(wanted) == _said(found))
    if name in QUANTITIES:
        return all(_same_quantity(value, found.get(key)) for key, value in wanted.items())
    return all(_holds(value, found.get(key), merged, key) for key, value in wanted.items())


def _holds_items(wanted: Sequence[Any], found: Any, merged: Mapping[str, str], name: str) -> bool:
    if found is None:
        return not wanted
    key = merged.get(name)
    if key is None:
        return bool(_said(wanted) == _said(found))
    by_key = {item.get(key): item for item in found}
    return all(item[key] in by_key and _holds(item, by_key[item[key]], merged, "") for item in wanted)


def _said(value: Any) -> Any:
    """The value without what says nothing. An empty selector does say something: everything."""
    if isinstance(value, Mapping):
        said = {key: _said(inner) for key, inner in value.items()}
        return {key: inner for key, inner in said.items() if inner not in (None, "", [])}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_said(inner) for inner in value]
    return value


def _same_quantity(wanted: Any, found: Any) -> bool:
    if wanted == found:
        return True
    try:
        return parse_quantity(wanted) == parse_quantity(found)
    except ValueError:
        return False
