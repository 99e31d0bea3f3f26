"""Reflectors of the audit's cache (`ClusterObservations`): all kinds that the checks read."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import NoReturn

from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.collect.kube.cache import LIST_REQUESTS, ClusterObservations
from hermetic.collect.kube.discovery import ServedKinds
from hermetic.collect.kube.list_errors import evidence_of, problem_of
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.collect.kube.listing import listed_packed
from hermetic.errors import Forbidden, HermeticError, NotFound, ServerError
from hermetic.kinds import Kind
from hermetic.kube.paging import Selection
from hermetic.kube.reflector import BACKOFF, GONE, UNAVAILABLE_SECONDS, Feed, Reflector
from hermetic.ports import ClusterReader, Manifest

SERVED_SECONDS = 30.0
RELIST_SECONDS = 1800.0
SILENT_SECONDS = 30.0
MALFORMED = (KeyError, TypeError, AttributeError, ValueError)
"""What reading a malformed object raises."""
GRACE_SECONDS = 60.0
"""A list that fails for less than this still counts as current: a restart of the API server must not close the gate."""


class CacheWatches:
    """Fills the observations; `on_change` is called after every change, and must return at once.

    `on_fault` gets every unexpected exception: the checks of that kind become Unknown, and watching goes on. `feeds`:
    who else reads what is listed and watched of a kind in the whole cluster.
    """

    def __init__(
        self,
        api: ClusterReader,
        observations: ClusterObservations,
        *,
        on_change: Callable[[], None] = lambda: None,
        on_fault: Callable[[Exception], None] = lambda _error: None,
        feeds: Callable[[Kind], Feed | None] = lambda _kind: None,
    ) -> None:
        self._api = api
        self._feeds = feeds
        self._observations = observations
        self._on_change = on_change
        self._on_fault = on_fault
        self._announced = observations.revision
        self._served = ServedKinds(api, lasts=SERVED_SECONDS)

    async def run(self) -> None:
        """List and watch everything, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._discover())
            for request in LIST_REQUESTS:
                group.create_task(self._follow(request))

    async def _follow(self, request: ListRequest) -> NoReturn:
        target = _CacheTarget(request, self._api, self._observations, self._served, self._announce, self._feeds)
        try:
            await Reflector(self._api, target, relist_seconds=RELIST_SECONDS, on_fault=self._on_fault).run()
        finally:
            target.lost()

    async def _discover(self) -> NoReturn:
        """Read discovery once a minute; the lists of all kinds that are not served use this one document."""
        now = asyncio.get_running_loop().time
        began, failures = now(), 0
        while True:
            served = await self._served.answer()
            passes = served.problem is not None and served.problem.reason is UnreadReason.UNAVAILABLE
            if not passes or now() - began >= GRACE_SECONDS:
                self._observations.serves(served)
                self._announce()
            pause = BACKOFF[min(failures, len(BACKOFF) - 1)] if passes else UNAVAILABLE_SECONDS
            began, failures = (began, failures + 1) if passes else (now() + pause, 0)
            await asyncio.sleep(pause * random.uniform(0.8, 1.0))  # noqa: S311 - nothing secret

    def _announce(self) -> None:
        if self._observations.changed_since(self._announced):
            self._announced = self._observations.revision
            self._on_change()


class _CacheTarget:
    """One list of the cache."""

    def __init__(
        self,
        request: ListRequest,
        api: ClusterReader,
        observations: ClusterObservations,
        served: ServedKinds,
        announce: Callable[[], None],
        feeds: Callable[[Kind], Feed | None],
    ) -> None:
        self._request = request
        self._feeds = feeds
        self._feed: Feed | None = None
        self._api = api
        self._observations = observations
        self._served = served
        self._announce = announce

    @property
    def selection(self) -> Selection:
        return self._request.selection

    def lost(self) -> None:
        """Until a list is complete again, what is fed must read by itself."""
        if self._feed is not None:
            self._feed.lost()

    async def list(self) -> str:
        self.lost()
        self._request = request = await self._served.as_served(self._request)
        self._feed = self._feeds(request.kind) if request.scope == EVERYWHERE else None
        shown = await self._served.shows_absence(request) if request.is_optional else ()
        if shown:
            self._observations.absent(request, shown)
            self._announce()
            return ""
        listing = await listed_packed(self._api, request, self._feed)
        if isinstance(listing.error, NotFound | Forbidden):
            await self._settle(listing.error)
            return ""
        if listing.error is not None:
            raise listing.error
        self._observations.take(request, listing)
        self._announce()
        if self._feed is not None:
            self._feed.complete()
        return listing.version

    def take(self, event: str, manifest: Manifest) -> None:
        if self._feed is not None:
            self._feed.take(event, manifest)
        self._observations.recovered(self._request)
        if event != "BOOKMARK":
            self._see(event, manifest)
        self._announce()

    def _see(self, event: str, manifest: Manifest) -> None:
        """Until a list is complete again, an object that is not in the cache leaves its kind unseen."""
        try:
            self._observations.see(manifest, gone=event == "DELETED")
        except Exception as error:
            message = f"{self._request.path}: an object of the watch was not understood: {error!r}"
            self._observations.failed(self._request, Problem(UnreadReason.UNREADABLE, message))
            self._announce()
            if isinstance(error, MALFORMED):
                raise ServerError(f"not an object: {error!r}", status=GONE) from error
            raise

    def failed(self, error: HermeticError, *, watched_for: float, failing_for: float) -> bool:
        if watched_for >= SILENT_SECONDS:
            return True  # a quiet watch cannot be distinguished from a dead connection: only a list shows it
        if failing_for < GRACE_SECONDS:
            return False
        self._lose(error)
        return True  # a watch does not report what has not changed; a list does

    async def _settle(self, refused: HermeticError) -> None:
        shown = await self._served.shows_absence(self._request, anew=True)
        if shown:
            self._observations.absent(self._request, (evidence_of(self._request, refused), *shown))
            self._announce()
        else:
            self._lose(refused)

    def _lose(self, error: HermeticError) -> None:
        problem = problem_of(self._request, error)
        if problem.reason is UnreadReason.UNAVAILABLE:  # the text differs each time with the same meaning
            message = f"{self._request.path}: not seen for more than {GRACE_SECONDS:.0f} seconds"
            problem = Problem(UnreadReason.UNAVAILABLE, message)
        self._observations.failed(self._request, problem)
        self._announce()
