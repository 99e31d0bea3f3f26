"""Reads one complete list page by page, from the start again where it expired."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from hermetic.kinds import Kind
from hermetic.kube.cooperative import cooperatively
from hermetic.ports import Manifest

KEPT_AT_ONCE = 10
"""Objects of a list that are projected before the event loop runs on."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is listed and watched: a kind, of one namespace or of all, narrowed on the server."""

    kind: Kind
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""


class Lister(Protocol):
    """The part of the API server that a list needs."""

    def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """As `ClusterReader.pages`."""
        ...


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
