"""Reflectors of the operator's store: children, pods, nodes, Events, and objects that lead to a model's pods.

kopf watches ModelDeployments and EgressAudits. For these kinds its worker and memory per object would be most of the
operator's cost; a reflector parses an event, stores the projection and keeps nothing else.
"""

from __future__ import annotations

import asyncio

from hermetic.kinds import Kind
from hermetic.kube.reflector import Feed
from hermetic.kube.store import Store
from hermetic.kube.store_feed import Listed, StoreFeed
from hermetic.kube.store_watch import Relist, See, StoreTarget, StoreWatch
from hermetic.kube.watch_specs import STORE_WATCHES, scopes
from hermetic.ports import ClusterReader


class StoreWatches:
    """Watches every kind of `STORE_WATCHES` from the version of its last list, until cancelled.

    `see(manifest, gone=...)` gets every event; `relist(watched)` must list a kind anew and note its version in the
    store; `listed(kind, keys)` gets the ModelDeployments that the list of a feed concerns. What is fed is not watched.
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
            StoreWatch(StoreTarget(watched, namespace, store, see, relist))
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
