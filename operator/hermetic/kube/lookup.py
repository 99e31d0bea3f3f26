"""Reads one object by name with a list request: a role can grant that for this name alone."""

from __future__ import annotations

from hermetic.kinds import Kind
from hermetic.ports import ClusterReader, KubeApi, Manifest


async def named(
    api: KubeApi | ClusterReader, kind: Kind, name: str, *, namespace: str | None = None
) -> Manifest | None:
    """The object of this name; None where there is none. Raises the leaves of `errors`, as a list does.

    `namespace` is None for a cluster-scoped kind.
    """
    async for page, _ in api.pages(kind, namespace=namespace, field_selector=f"metadata.name={name}"):
        for found in page:
            return found
    return None
