"""Does the live object still say what we want of it?

Two questions: does it carry the digest of our present intent (a field that we dropped shows there), and does it still
hold every value that we set (a field that somebody changed shows here). What others added beside ours stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermetic.api.quantities import parse_quantity
from hermetic.objects.names import INTENT_ANNOTATION

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
    return not _holds(desired, live, MERGED_LISTS.get(desired["kind"], {}), "")


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
    if name in QUANTITIES:
        return all(_same_quantity(value, found.get(key)) for key, value in wanted.items())
    return all(_holds(value, found.get(key), merged, key) for key, value in wanted.items())


def _holds_items(wanted: Sequence[Any], found: Any, merged: Mapping[str, str], name: str) -> bool:
    if found is None:
        return not wanted
    key = merged.get(name)
    if key is None:
        same_length = len(wanted) == len(found)
        return same_length and all(_holds(a, b, merged, "") for a, b in zip(wanted, found, strict=True))
    by_key = {item.get(key): item for item in found}
    return all(item[key] in by_key and _holds(item, by_key[item[key]], merged, "") for item in wanted)


def _same_quantity(wanted: Any, found: Any) -> bool:
    if wanted == found:
        return True
    try:
        return parse_quantity(wanted) == parse_quantity(found)
    except ValueError:
        return False
