"""Writes a status over the version of the object that it was computed from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.errors import Conflict
from hermetic.kinds import Kind
from hermetic.kube.paging import named
from hermetic.ports import KubeApi, Manifest

REPEATS = 5  # as client-go's retry.DefaultRetry


async def write_status(api: KubeApi, kind: Kind, observed: Mapping[str, Any], status: Mapping[str, Any]) -> Manifest:
    """Apply the status over the version of `observed`; returns the live object.

    `observed` has `metadata` with name, uid, resourceVersion and generation, and the previous `status`. Raises NotFound
    when the object is gone, and Conflict when its spec or status changed: decision and condition times must then be
    computed again. After a conflict that only changes of metadata caused, the write is repeated with the new version.
    """
    metadata = {
        part: observed["metadata"][part] for part in ("namespace", "name", "uid") if part in observed["metadata"]
    }
    version = observed["metadata"]["resourceVersion"]
    for _ in range(REPEATS):
        try:
            return await api.apply_status(_manifest(kind, {**metadata, "resourceVersion": version}, status))
        except Conflict:
            live = await named(api, kind, metadata["name"], namespace=metadata.get("namespace"))
            if live is None or not _is_as_observed(live, observed):
                raise
            version = live["metadata"]["resourceVersion"]
    return await api.apply_status(_manifest(kind, {**metadata, "resourceVersion": version}, status))


def _manifest(kind: Kind, metadata: Mapping[str, Any], status: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": dict(metadata), "status": dict(status)}


def _is_as_observed(live: Manifest, observed: Mapping[str, Any]) -> bool:
    """Whether uid, generation and status are unchanged."""
    same = all(live["metadata"].get(part) == observed["metadata"].get(part) for part in ("uid", "generation"))
    return same and (live.get("status") or {}) == (observed.get("status") or {})
