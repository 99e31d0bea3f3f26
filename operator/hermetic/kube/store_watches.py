"""Reflectors of the operator's store: children, pods, nodes, Events, and objects that lead to a model's pods.

kopf watches ModelDeployments and EgressAudits. For these kinds its worker and memory per object would be most of the
operator's cost; a reflector parses an event, stores the projection and keeps nothing else.

While the audit watches a whole kind, that watch feeds the store: one list and one watch serve both, and each keeps its
own projection. The store's own watches of the kind, narrowed by selectors or namespaces, are closed. They are opened
again, where the feed ended, as soon as it must list anew: the operator reads what serving needs even where the audit
may not, or cannot read the kind.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from functools import partial

import structlog

from hermetic.kinds import Kind
from hermetic.kube.metadata import name_of
from hermetic.kube.reflector import Feed
from hermetic.kube.store import Store
from hermetic.kube.store_lists import StoreList
from hermetic.kube.store_watch import Listed, Relist, See, StoreTarget, StoreWatch
from hermetic.kube.watch_specs import STORE_WATCHES, scopes
from hermetic.ports import ClusterReader, Manifest

log = structlog.get_logger(__name__)


class StoreFeed:
    """Brings the store what these watches of one kind would.

    `see(manifest, gone=...)` gets every event that one of them selects, `listed(kind, keys)` the ModelDeployments that
    a list concerns.
    """

    def __init__(self, store: Store, watches: tuple[StoreWatch, ...], *, see: See, listed: Listed) -> None:
        self._store = store
        self._see = see
        self._by_namespace: dict[str | None, list[StoreWatch]] = defaultdict(list)
        for watch in watches:
            self._by_namespace[watch.target.selection.namespace].append(watch)
        self._lists = {
            watch: StoreList(store, *watch.target.scope, partial(listed, watch.target.watched.kind))
            for watch in watches
        }
        self._since = ""
        self._is_current = False

    def begin(self, version: str) -> None:
        """A list begins, or begins again."""
        for store_list in self._lists.values():
            store_list.begin(version)
        self._since = version

    def add(self, manifest: Manifest) -> None:
        """Store an object of the list, if it is selected."""
        watch = self._selecting(manifest)
        if watch is not None:
            self._lists[watch].add(manifest)

    def complete(self) -> None:
        """Remove what the list lacks, and close the store's own watches."""
        for watch, store_list in self._lists.items():
            store_list.complete()
            watch.close()
        self._is_current = True

    def take(self, event: str, manifest: Manifest) -> None:
        """One event of the watch."""
        if not self._is_current:
            return
        try:
            self._since = str(manifest["metadata"]["resourceVersion"])
            if event == "BOOKMARK":
                return
            if self._selecting(manifest) is not None:
                self._see(manifest, gone=event == "DELETED")
            elif self._store.holds(manifest):
                self._see(manifest, gone=True)  # no longer selected: the store's own watch would send DELETED
        except Exception:
            # One malformed object must not stop the watch.
            log.exception("event not understood", kind=manifest.get("kind"), name=name_of(manifest))
            for watch in self._lists:
                watch.target.lose(manifest)

    def lost(self) -> None:
        """Open the store's own watches where the feed ended."""
        if self._is_current:
            self._is_current = False
            for watch in self._lists:
                watch.open(self._since)

    def _selecting(self, manifest: Manifest) -> StoreWatch | None:
        namespace = manifest["metadata"].get("namespace")
        watches = (*self._by_namespace.get(namespace, ()), *self._by_namespace.get(None, ()))
        return next((watch for watch in watches if watch.target.watched.selects(manifest)), None)


class StoreWatches:
    """Watches every kind of `STORE_WATCHES` from the version of its last list, until cancelled.

    `see(manifest, gone=...)` gets every event; `relist(watched)` must list a kind anew and note its version in the
    store; `listed(kind, keys)` gets the ModelDeployments that the list of a feed, or a malformed object, concerns. What
    is fed is not watched.
    """

    def __init__(
        self,
        api: ClusterReader,
        store: Store,
        *,
        see: See,
        relist: Relist,
        listed: Listed,
        namespaces: tuple[str, ...] = (),
    ) -> None:
        self._api = api
        self._store = store
        self._see = see
        self._listed = listed
        self._watches = [
            StoreWatch(StoreTarget(watched, namespace, store, see=see, relist=relist, listed=listed))
            for watched in STORE_WATCHES
            for namespace in scopes(watched, namespaces)
        ]

    async def run(self) -> None:
        """Run all reflectors. Every kind must have been listed once."""
        async with asyncio.TaskGroup() as group:
            for watch in self._watches:
                group.create_task(watch.run(self._api))

    def feed(self, kind: Kind) -> Feed | None:
        """For a watch of the whole kind in the whole cluster; None for a kind of which the store keeps nothing."""
        watches = tuple(watch for watch in self._watches if watch.target.selection.kind.path() == kind.path())
        return StoreFeed(self._store, watches, see=self._see, listed=self._listed) if watches else None
