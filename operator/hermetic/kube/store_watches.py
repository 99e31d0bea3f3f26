"""Watches behind the operator's store: children, pods, nodes, Events, and what leads to a model's pods.

kopf watches ModelDeployments and EgressAudits. For these kinds its services (a worker and a memory per object,
contexts, causes) would be most of what the operator costs. Here an event is parsed, put and forgotten.
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
    """Follows every kind of `STORE_WATCHES` from where it was last listed, whatever breaks, until cancelled.

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
        """Follow everything. Everything must have been listed once."""
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
            # One object that is not understood must not keep all others from being seen.
            log.exception("event not understood", kind=manifest.get("kind"), name=manifest["metadata"].get("name"))

    def failed(self, error: HermeticError, *, watched_for: float, failing_for: float) -> bool:  # noqa: ARG002
        return False  # a watch goes on from its last version, and the resync lists what it may have missed
