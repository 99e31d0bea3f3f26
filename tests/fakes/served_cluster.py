"""The API in memory as a collector of an audit meets it: served groups, pages, refused lists, broken watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from hermetic.audit.estate.kubernetes.served import ALWAYS_SERVED
from hermetic.errors import Forbidden, NotFound
from hermetic.kinds import Kind
from tests.fakes.cluster_in_memory import ClusterInMemory, Manifest, coordinates

Interruption = tuple[str, Manifest] | Exception


class Served(ClusterInMemory):
    """It serves `groups` beside the kinds that every server has, and lists them in pages of `page` objects."""

    def __init__(self, manifests: list[Manifest], *, page: int = 3) -> None:
        super().__init__()
        self.page = page
        self.groups: dict[str, dict[str, list[str]]] = {"apps": {"v1": ["deployments"]}}
        self.documents: list[str] = []
        self.refusals: dict[str, list[Exception | None]] = {}
        self.interruptions: dict[str, asyncio.Queue[Interruption]] = {}
        for manifest in manifests:
            self.put(manifest)

    def drop(self, one: Manifest) -> None:
        """Delete an object."""
        self.remove(*coordinates(one))

    def refuse(self, plural: str, *errors: Exception | None) -> None:
        """Answer the next lists of this resource so; the last one for ever."""
        self.refusals[plural] = list(errors)

    def interrupt(self, kind: str, by: Interruption) -> asyncio.Queue[Interruption]:
        """Send an event of any form, or an error, through the watch of a kind; the queue is empty once it is read."""
        queue = self.interruptions.setdefault(kind, asyncio.Queue())
        queue.put_nowait(by)
        return queue

    # ------------------------------------------------------------------ ClusterReader

    async def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        planned = self.refusals.get(kind.plural)
        error = None if not planned else planned.pop(0) if len(planned) > 1 else planned[0]
        served = kind.group in ALWAYS_SERVED or kind.plural in self.groups.get(kind.group, {}).get(kind.version, [])
        if error is None and not served:
            error = NotFound("the server could not find the requested resource", status=404, reason="NotFound")
        if error is not None:
            self.lists[kind.plural] += 1
            raise error
        selected: dict[str, Any] = {"label_selector": label_selector, "field_selector": field_selector}
        async for items, version in super().pages(kind, namespace=namespace, **selected):
            for start in range(0, max(len(items), 1), self.page):
                yield items[start : start + self.page], version

    async def watch(self, kind: Kind, **narrowed: Any) -> AsyncGenerator[tuple[str, Manifest], None]:
        interruptions = self.interruptions.setdefault(kind.kind, asyncio.Queue())
        events = super().watch(kind, **narrowed)
        event, interruption = asyncio.ensure_future(anext(events)), asyncio.ensure_future(interruptions.get())
        try:
            while True:
                await asyncio.wait((event, interruption), return_when=asyncio.FIRST_COMPLETED)
                if interruption.done():
                    if isinstance(by := interruption.result(), Exception):
                        raise by
                    yield by
                    interruption = asyncio.ensure_future(interruptions.get())
                if event.done():
                    yield event.result()
                    event = asyncio.ensure_future(anext(events))
        finally:
            for waiting in (event, interruption):
                waiting.cancel()
            await asyncio.gather(event, interruption, return_exceptions=True)

    async def discovered(self, path: str) -> Manifest:
        """As a server without aggregated discovery."""
        self.documents.append(path)
        if path == "/apis":
            return {
                "groups": [
                    {"name": name, "versions": [{"version": version} for version in versions]}
                    for name, versions in self.groups.items()
                ]
            }
        _, _, group, version = path.split("/")
        return {"resources": [{"name": plural} for plural in self.groups[group][version]]}


def forbidden(status: int = 403) -> Forbidden:
    return Forbidden('pods is forbidden: User "auditor" cannot list it', status=status, reason="Forbidden")
