"""Reads and reduces the metadata of an object: managedFields, its larger half, is dropped or cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.field_managers import newest, record
from hermetic.kinds import CORE_EVENT, EVENT, LEASE, MODEL_DEPLOYMENT, NODE, POD
from hermetic.objects.names import MANAGED_BY
from hermetic.plan.tampering.field_owners import kept, labellers

UNNAMED = frozenset(kind.kind for kind in (CORE_EVENT, EVENT, LEASE, MODEL_DEPLOYMENT, NODE))
"""Kinds whose writer no verdict names."""


def name_of(manifest: Mapping[str, Any]) -> str:
    """The name of an object that may be malformed; "" for none."""
    metadata = manifest.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def version_of(manifest: Mapping[str, Any]) -> int:
    """The resourceVersion of an object that may be malformed; 0 for none."""
    metadata = manifest.get("metadata")
    version = str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""
    return int(version) if version.isdecimal() else 0


def names_its_writer(manifest: Mapping[str, Any]) -> bool:
    """Whether a verdict may name the writer of this object; for a pod of a controller, the controller's is named."""
    kind = manifest.get("kind")
    if kind == POD.kind:
        return not any(owner.get("controller") for owner in manifest["metadata"].get("ownerReferences") or ())
    return kind not in UNNAMED


def lean_metadata(metadata: Mapping[str, Any], *, say_who: bool = False, pod: bool = False) -> dict[str, Any]:
    """The metadata without managedFields, except entries that decisions need.

    Kept are, of children: entries of other managers for fields of the spec; of pods: managers of the labels that select
    our pods; with `say_who`: names of the last writers, and their entries for fields that a verdict blames.
    """
    lean = {key: value for key, value in metadata.items() if key != "managedFields"}
    is_ours = (metadata.get("labels") or {}).get(MANAGED_BY[0]) == MANAGED_BY[1]
    managed = metadata.get("managedFields")
    ours = labellers(managed) if pod else kept(managed) if is_ours else ()
    # Beside managedFields of ours a truncated field path would cover every field below it.
    who = (newest if is_ours or pod else record)(managed) if say_who else ()
    entries = [*ours, *who]
    return {**lean, "managedFields": entries} if entries else lean
