"""Reads one complete list page by page, from the start again where it expired, or one object by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hermetic.kinds import Kind
from hermetic.kube.cooperative import cooperatively
from hermetic.ports import Lister, Manifest

KEPT_AT_ONCE = 10
"""Objects of a list that are projected before the event loop runs on."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is listed and watched: a kind, of one namespace or of all, narrowed on the server."""

    kind: Kind
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""


async def list_each(
    api: Lister, selection: Selection, *, begin: Callable[[str], None], add: Callable[[Manifest], None]
) -> None:
    """List; `add` gets every object, and is done with it when it returns: one page of whole objects is in memory.

    `begin` gets the resourceVersion before the first object. It is called again where the list expired and started
    again: what came before no longer counts.
    """
    as_of = None
    pages = api.pages(
        selection.kind,
        namespace=selection.namespace,
        label_selector=selection.label_selector,
        field_selector=selection.field_selector,
    )
    async for items, version in pages:
        if version != as_of:
            as_of = version
            begin(version)
        async for item in cooperatively(items, every=KEPT_AT_ONCE):
            add(item)


async def named(api: Lister, kind: Kind, name: str, *, namespace: str | None = None) -> Manifest | None:
    """The object of this name, or None. A list request: a role can grant that for this name alone.

    Raises the leaves of `errors`, as a list does. `namespace` is None for a cluster-scoped kind.
    """
    async for page, _ in api.pages(kind, namespace=namespace, field_selector=f"metadata.name={name}"):
        for manifest in page:
            return manifest
    return None
