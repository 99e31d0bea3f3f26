"""One watch of the operator's store: a kind of one namespace or of all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

import structlog

from hermetic.errors import HermeticError
from hermetic.kinds import Kind
from hermetic.kube.metadata import name_of, version_of
from hermetic.kube.owners import Key
from hermetic.kube.paging import Selection
from hermetic.kube.reflector import Reflector
from hermetic.kube.store import Store
from hermetic.kube.watch_specs import WatchSpec
from hermetic.ports import ClusterReader, Manifest

log = structlog.get_logger(__name__)

See = Callable[..., None]
Listed = Callable[[Kind, frozenset[Key]], None]
Relist = Callable[[WatchSpec], Awaitable[None]]


class StoreWatch:
    """Watches for one target, except while it is closed: another watch brings the same objects then."""

    def __init__(self, target: StoreTarget) -> None:
        self.target = target
        self._since = ""
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._reflecting: asyncio.Future[NoReturn] | None = None

    def close(self) -> None:
        self._is_open.clear()
        if self._reflecting is not None:
            self._reflecting.cancel()

    def open(self, since: str) -> None:
        """Watch again, from this resourceVersion on."""
        self._since = since
        self._is_open.set()

    async def run(self, api: ClusterReader) -> NoReturn:
        """Watch while it is open, at first from the version of the last list, until cancelled."""
        while True:
            while not self._is_open.is_set():
                await self._is_open.wait()
            reflector = Reflector(api, self.target, since=self._since or self.target.listed_at)
            self._reflecting = asyncio.ensure_future(reflector.run())
            try:
                await asyncio.wait({self._reflecting})
            finally:
                self._reflecting.cancel()
            if not self._reflecting.cancelled():
                self._reflecting.result()  # it ends by itself only on a defect


class StoreTarget:
    """What its reflector fills. `see`, `relist` and `listed` as of `StoreWatches`."""

    def __init__(
        self, watched: WatchSpec, namespace: str | None, store: Store, *, see: See, relist: Relist, listed: Listed
    ) -> None:
        self.selection = Selection(watched.kind, namespace, watched.label_selector, watched.field_selector)
        self.watched = watched
        self._store = store
        self._see = see
        self._relist = relist
        self._listed = listed

    @property
    def scope(self) -> tuple[WatchSpec, str | None]:
        """What is watched, and in which namespace."""
        return self.watched, self.selection.namespace

    @property
    def listed_at(self) -> str:
        """The version of the last list; "" for none."""
        return self._store.listed_at(self.selection.kind, self.selection.namespace)

    async def list(self) -> str:
        await self._relist(self.watched)
        return self.listed_at

    def take(self, event: str, manifest: Manifest) -> None:
        if event == "BOOKMARK":
            return
        try:
            self._see(manifest, gone=event == "DELETED")
        except Exception:
            # One malformed object must not stop the watch.
            log.exception("event not understood", kind=manifest.get("kind"), name=name_of(manifest))
            self.lose(manifest)

    def lose(self, manifest: Manifest) -> None:
        """Record an object that was not understood: what it leads to is not known before the next list."""
        kind = self.watched.kind
        if concerned := self._store.note_malformed(kind, version_of(manifest)):
            self._listed(kind, concerned)

    def failed(self, error: HermeticError, *, watched_for: float, failing_for: float) -> bool:  # noqa: ARG002
        return False  # the watch resumes from its last version; the resync lists what it may have missed
