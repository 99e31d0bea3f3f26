"""Reflectors of the operator's store: children, pods, nodes, Events, and objects that lead to a model's pods.

kopf watches ModelDeployments and EgressAudits. For these kinds its worker and memory per object would be most of the
operator's cost; a reflector parses an event, stores the projection and keeps nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from hermetic.errors import HermeticError
from hermetic.kube.reflector import Reflector, Selection
from hermetic.kube.store import Store
from hermetic.kube.watch_specs import STORE_WATCHES, WatchSpec, scopes
from hermetic.ports import ClusterReader, Manifest

log = structlog.get_logger(__name__)

See = Callable[..., None]
Look = Callable[[WatchSpec], Awaitable[None]]


class StoreWatches:
    """Watches every kind of `STORE_WATCHES` from the version of its last list, until cancelled.

    `see(manifest, gone=...)` gets every event; `look(watched)` must list a kind anew and note its version in the store.
    """

    def __init__(
        self, api: ClusterReader, store: Store, *, see: See, look: Look, namespaces: tuple[str, ...] = ()
    ) -> None:
        self._api = api
        self._store = store
        self._see = see
        self._look = look
        self._namespaces = namespaces

    async def run(self) -> None:
        """Run all reflectors. Every kind must have been listed once."""
        async with asyncio.TaskGroup() as group:
            for watched in STORE_WATCHES:
                for namespace in scopes(watched, self._namespaces):
                    target = _StoreTarget(watched, namespace, self._store, self._see, self._look)
                    since = self._store.listed_at(watched.kind, namespace)
                    group.create_task(Reflector(self._api, target, since=since).run())


class _StoreTarget:
    """One kind of one namespace, or of all."""

    def __init__(self, watched: WatchSpec, namespace: str | None, store: Store, see: See, look: Look) -> None:
        self.selection = Selection(watched.kind, namespace, watched.label_selector, watched.field_selector)
        self._watched = watched
        self._store = store
        self._see = see
        self._look = look

    async def list(self) -> str:
        await self._look(self._watched)
        return self._store.listed_at(self.selection.kind, self.selection.namespace)

    def take(self, event: str, manifest: Manifest) -> None:
        if event == "BOOKMARK":
            return
        try:
            self._see(manifest, gone=event == "DELETED")
        except Exception:
            # One malformed object must not stop the watch.
            log.exception("event not understood", kind=manifest.get("kind"), name=manifest["metadata"].get("name"))

    def failed(self, error: HermeticError, *, watched_for: float, failing_for: float) -> bool:  # noqa: ARG002
        return False  # the watch resumes from its last version; the resync lists what it may have missed
