"""Writes a status over the version of the object that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.errors import Conflict
from hermetic.kinds import Kind
from hermetic.kube.lookup import named
from hermetic.ports import KubeApi, Manifest

REPEATS = 5  # as client-go's retry.DefaultRetry


async def write_status(api: KubeApi, kind: Kind, seen: Mapping[str, Any], said: Mapping[str, Any]) -> Manifest:
    """Apply the status over the version that `seen` bears; returns the live object.

    `seen` has `metadata` with name, uid, resourceVersion and generation, and the `status` that `said` goes by. NotFound
    when the object is gone. Conflict when its spec or status are others by now: what was decided of the one and dated
    by the other must be decided again. What others write into its metadata, however often, keeps no status from it.
    """
    metadata = {part: seen["metadata"][part] for part in ("namespace", "name", "uid") if part in seen["metadata"]}
    version = seen["metadata"]["resourceVersion"]
    for _ in range(REPEATS):
        try:
            return await api.apply_status(_manifest(kind, {**metadata, "resourceVersion": version}, said))
        except Conflict:
            live = await named(api, kind, metadata["name"], namespace=metadata.get("namespace"))
            if live is None or not _is_as_seen(live, seen):
                raise
            version = live["metadata"]["resourceVersion"]
    return await api.apply_status(_manifest(kind, {**metadata, "resourceVersion": version}, said))


def _manifest(kind: Kind, metadata: Mapping[str, Any], said: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": dict(metadata), "status": dict(said)}


def _is_as_seen(live: Manifest, seen: Mapping[str, Any]) -> bool:
    """Whether it is the same object with the same spec and status, as far as the API server knows."""
    same = all(live["metadata"].get(part) == seen["metadata"].get(part) for part in ("uid", "generation"))
    return same and (live.get("status") or {}) == (seen.get("status") or {})
