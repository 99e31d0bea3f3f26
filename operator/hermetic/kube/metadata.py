"""The metadata of an object without its larger half: the book of who wrote which field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.objects.names import MANAGED_BY
from hermetic.plan.managers import kept, newest


def lean_metadata(metadata: Mapping[str, Any], *, say_who: bool = False) -> dict[str, Any]:
    """The metadata without managed fields; of children, what others than us wrote into the spec is kept.

    With `say_who` the name of who wrote an object of others last is kept.
    """
    known = {key: value for key, value in metadata.items() if key != "managedFields"}
    is_ours = (metadata.get("labels") or {}).get(MANAGED_BY[0]) == MANAGED_BY[1]
    managed = metadata.get("managedFields")
    found = kept(managed) if is_ours else newest(managed) if say_who else []
    return {**known, "managedFields": found} if found else known
