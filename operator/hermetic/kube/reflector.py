"""Watches of what follows from people's wishes: children, pods, nodes, warnings. They make thousands of events.

kopf watches the wishes themselves. For these kinds its services (a worker and a memory per object, contexts, causes)
would be most of what the operator costs. Here an event is parsed, put and forgotten.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import structlog

from hermetic.errors import Forbidden, HermeticError, NotFound, ServerTrouble, Throttled
from hermetic.kube.store import Store
from hermetic.kube.watch_specs import FOLLOWED, Watched, scopes
from hermetic.ports import ClusterReader

GONE = 410
PAUSES = (0.2, 1.0, 3.0, 10.0)
LASTING_SECONDS = 30.0
UNSERVED_SECONDS = 60.0
"""A definition may be installed, a role granted."""

log = structlog.get_logger(__name__)


class Following:
    """Keeps every followed kind in sight from where it was last listed, whatever breaks, until cancelled.

    `see(manifest, gone=...)` gets every event; `look(watched)` must list a kind anew and note its version in the store.
    """

    def __init__(
        self,
        api: ClusterReader,
        store: Store,
        *,
        see: Callable[..., None],
        look: Callable[[Watched], Awaitable[None]],
        namespaces: tuple[str, ...] = (),
    ) -> None:
        self._api = api
        self._store = store
        self._see = see
        self._look = look
        self._namespaces = namespaces

    async def run(self) -> None:
        """Follow everything. Everything must have been listed once."""
        async with asyncio.TaskGroup() as group:
            for watched in FOLLOWED:
                for namespace in scopes(watched, self._namespaces):
                    group.create_task(self._follow(watched, namespace))

    async def _follow(self, watched: Watched, namespace: str | None) -> NoReturn:
        since, failures = self._store.listed_at(watched.kind, namespace), 0
        while True:
            began = asyncio.get_running_loop().time()
            try:
                since = since or await self._listed_anew(watched, namespace)
                if not since:  # an optional kind that is not served, or not granted
                    await asyncio.sleep(UNSERVED_SECONDS * random.uniform(0.8, 1.0))  # noqa: S311 - nothing secret
                    continue
                async for what, manifest in self._api.watch(
                    watched.kind,
                    since=since,
                    namespace=namespace,
                    label_selector=watched.label_selector,
                    field_selector=watched.field_selector,
                ):
                    since = manifest["metadata"]["resourceVersion"]
                    self._take(what, manifest)
                    await asyncio.sleep(0)  # a burst of events must not keep the writes waiting
                pause, failures = PAUSES[0], 0
            except HermeticError as error:
                lasted = asyncio.get_running_loop().time() - began >= LASTING_SECONDS
                failures = 0 if lasted else failures + 1
                pause = _pause(error, failures)
                lost = watched.optional and isinstance(error, NotFound | Forbidden)
                if lost or (isinstance(error, ServerTrouble) and error.status == GONE):
                    since = ""
                log.warning("watch broken", kind=watched.kind.plural, because=error.message, again_in=round(pause, 1))
            # At most one look per second and kind: a watch that ends as soon as it opens must not be a storm.
            await asyncio.sleep(max(pause, began + 1 - asyncio.get_running_loop().time()))

    async def _listed_anew(self, watched: Watched, namespace: str | None) -> str:
        await self._look(watched)
        return self._store.listed_at(watched.kind, namespace)

    def _take(self, what: str, manifest: dict[str, Any]) -> None:
        if what == "BOOKMARK":
            return
        try:
            self._see(manifest, gone=what == "DELETED")
        except Exception:
            # The last wall: one object that nobody understands must not blind us for all others.
            log.exception("event not understood", kind=manifest.get("kind"), name=manifest["metadata"].get("name"))


def _pause(error: HermeticError, failures: int) -> float:
    if isinstance(error, Throttled):
        return error.retry_after
    longest = PAUSES[min(max(failures, 1), len(PAUSES)) - 1]
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret about it
