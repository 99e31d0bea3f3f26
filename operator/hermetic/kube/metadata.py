"""The metadata of an object without its larger half: the book of who wrote which field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.field_managers import newest, record
from hermetic.kinds import CORE_EVENT, EVENT, LEASE, MODEL_DEPLOYMENT, NODE, POD
from hermetic.objects.names import MANAGED_BY, SELECTED_BY
from hermetic.plan.field_owners import kept, labellers

UNNAMED = frozenset(kind.kind for kind in (CORE_EVENT, EVENT, LEASE, MODEL_DEPLOYMENT, NODE))
"""Kinds of which no verdict says who wrote them."""


def names_its_writer(manifest: Mapping[str, Any]) -> bool:
    """Whether a verdict may say who wrote this object; of a pod that a controller made, it is the controller's."""
    kind = manifest.get("kind")
    if kind == POD.kind:
        return not any(one.get("controller") for one in manifest["metadata"].get("ownerReferences") or ())
    return kind not in UNNAMED


def lean_metadata(metadata: Mapping[str, Any], *, say_who: bool = False, pod: bool = False) -> dict[str, Any]:
    """The metadata without managed fields; of children, what others than us wrote into the spec is kept.

    Of a pod it is who holds a label by which we find our own. With `say_who` the names of who wrote an object of others
    last, and the fields of it that a verdict blames, are kept.
    """
    known = {key: value for key, value in metadata.items() if key != "managedFields"}
    is_ours = (metadata.get("labels") or {}).get(MANAGED_BY[0]) == MANAGED_BY[1]
    managed = metadata.get("managedFields")
    ours = labellers(managed, SELECTED_BY) if pod else kept(managed) if is_ours else ()
    # Beside a book of ours a field that is cut short would stand for everything below it.
    who = (newest if is_ours or pod else record)(managed) if say_who else ()
    found = [*ours, *who]
    return {**known, "managedFields": found} if found else known
