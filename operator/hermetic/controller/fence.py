"""The API server as the leader may use it: reads always, writes only while the Lease is held."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from hermetic.errors import NotLeading
from hermetic.kinds import Kind
from hermetic.ports import KubeApi, Manifest


class FencedApi:
    """A KubeApi that refuses to write once `may_write` says no, so that two operators never write at once."""

    def __init__(self, api: KubeApi, may_write: Callable[[], bool]) -> None:
        self._api = api
        self._may_write = may_write

    def pages(
        self, kind: Kind, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """As KubeApi."""
        return self._api.pages(kind, namespace=namespace, label_selector=label_selector, field_selector=field_selector)

    async def apply(self, manifest: Manifest) -> Manifest:
        """As KubeApi; NotLeading without the Lease."""
        self.check()
        return await self._api.apply(manifest)

    async def apply_status(self, manifest: Manifest) -> Manifest:
        """As KubeApi; NotLeading without the Lease."""
        self.check()
        return await self._api.apply_status(manifest)

    async def delete(
        self, kind: Kind, *, namespace: str | None, name: str, uid: str, resource_version: str = ""
    ) -> None:
        """As KubeApi; NotLeading without the Lease."""
        self.check()
        await self._api.delete(kind, namespace=namespace, name=name, uid=uid, resource_version=resource_version)

    async def create_event(self, event: Manifest) -> None:
        """As KubeApi; NotLeading without the Lease."""
        self.check()
        await self._api.create_event(event)

    async def server_version(self) -> tuple[int, int]:
        """As KubeApi."""
        return await self._api.server_version()

    def check(self) -> None:
        """NotLeading without the Lease. Also what a client asks when the turn of a write has come at last."""
        if not self._may_write():
            raise NotLeading(
                "this process does not hold the Lease, nothing was written",
                fix="look at the Lease 'hermetic' for the holder; this process will end and start again",
            )
