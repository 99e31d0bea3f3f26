"""Reflectors of the audit's cache (`ClusterObservations`): all kinds that the checks read."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import NoReturn

from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.collect.kube.cache import LOOKS, ClusterObservations
from hermetic.collect.kube.list_errors import evidence_of, problem_of
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.collect.kube.listing import listed_packed
from hermetic.collect.kube.unserved_kinds import ServedKinds
from hermetic.errors import Forbidden, HermeticError, NotFound, ServerTrouble
from hermetic.kube.reflector import BACKOFF, GONE, UNAVAILABLE_SECONDS, Reflector, Selection
from hermetic.ports import ClusterReader, Manifest

SERVED_SECONDS = 30.0
RELIST_SECONDS = 1800.0
SILENT_SECONDS = 30.0
GRACE_SECONDS = 60.0
"""A list that fails for less than this still counts as current: a restart of the API server must not close the gate."""


class CacheWatches:
    """Fills the observations; `on_change` is called after every change, and must return at once.

    `on_fault` gets every unexpected exception: the checks of that kind become Unknown, and watching goes on.
    """

    def __init__(
        self,
        api: ClusterReader,
        observations: ClusterObservations,
        *,
        on_change: Callable[[], None] = lambda: None,
        on_fault: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self._api = api
        self._observations = observations
        self._on_change = on_change
        self._on_fault = on_fault
        self._announced = observations.revision
        self._served = ServedKinds(api, lasts=SERVED_SECONDS)

    async def run(self) -> None:
        """List and watch everything, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._discover())
            for look in LOOKS:
                target = _CacheTarget(look, self._api, self._observations, self._served, self._announce)
                reflector = Reflector(self._api, target, relist_seconds=RELIST_SECONDS, on_fault=self._on_fault)
                group.create_task(reflector.run())

    async def _discover(self) -> NoReturn:
        """Read discovery once a minute; the lists of all kinds that are not served use this one document."""
        now = asyncio.get_running_loop().time
        began, failures = now(), 0
        while True:
            served = await self._served.answer()
            passes = served.problem is not None and served.problem.trouble is Trouble.UNAVAILABLE
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
        look: ListRequest,
        api: ClusterReader,
        observations: ClusterObservations,
        served: ServedKinds,
        announce: Callable[[], None],
    ) -> None:
        self._look = look
        self._api = api
        self._observations = observations
        self._served = served
        self._announce = announce

    @property
    def selection(self) -> Selection:
        return Selection(self._look.kind, self._look.namespace, field_selector=self._look.field_selector)

    async def list(self) -> str:
        self._look = look = await self._served.as_served(self._look)
        shown = await self._served.shows_absence(look) if look.is_optional else ()
        if shown:
            self._observations.absent(look, shown)
            self._announce()
            return ""
        seen = await listed_packed(self._api, look)
        if isinstance(seen.error, NotFound | Forbidden):
            await self._settle(seen.error)
            return ""
        if seen.error is not None:
            raise seen.error
        self._observations.take(look, seen)
        self._announce()
        return seen.version

    def take(self, event: str, manifest: Manifest) -> None:
        self._observations.well(self._look)
        if event != "BOOKMARK":
            try:
                self._observations.see(manifest, gone=event == "DELETED")
            except (KeyError, TypeError, AttributeError) as error:
                # A malformed object is not in the cache: list again, which records the error.
                raise ServerTrouble(f"not an object: {error!r}", status=GONE) from error
        self._announce()

    def failed(self, error: HermeticError, *, watched_for: float, failing_for: float) -> bool:
        if watched_for >= SILENT_SECONDS:
            return True  # a quiet watch cannot be distinguished from a dead connection: only a list shows it
        if failing_for < GRACE_SECONDS:
            return False
        self._lose(error)
        return True  # a watch does not report what has not changed; a list does

    async def _settle(self, refused: HermeticError) -> None:
        shown = await self._served.shows_absence(self._look, anew=True)
        if shown:
            self._observations.absent(self._look, (evidence_of(self._look, refused), *shown))
            self._announce()
        else:
            self._lose(refused)

    def _lose(self, error: HermeticError) -> None:
        problem = problem_of(self._look, error)
        if problem.trouble is Trouble.UNAVAILABLE:  # the text differs each time with the same meaning
            words = f"{self._look.path}: not seen for more than {GRACE_SECONDS:.0f} seconds"
            problem = Problem(Trouble.UNAVAILABLE, words)
        self._observations.trouble(self._look, problem)
        self._announce()
