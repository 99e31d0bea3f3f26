"""Lists and watches behind `ClusterObservations`: everything that the checks read is kept in sight until cancelled."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NoReturn

import structlog

from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.collect.kube.cache import LOOKS, ClusterObservations
from hermetic.collect.kube.list_errors import evidence_of, problem_of
from hermetic.collect.kube.list_requests import Look
from hermetic.collect.kube.listing import listed_packed
from hermetic.collect.kube.unserved_kinds import Served
from hermetic.errors import Forbidden, HermeticError, NotFound, ServerTrouble, Throttled
from hermetic.ports import ClusterReader, Manifest

GONE = 410
PAUSES = (0.2, 1.0, 3.0, 10.0)
LOOKS_AGAIN_SECONDS = 60.0
"""For a kind that is not served or not allowed: a definition may be installed, a role granted."""
SERVED_SECONDS = 30.0
LISTED_ANEW_SECONDS = 1800.0
SILENT_SECONDS = 30.0
GRACE_SECONDS = 60.0
"""What is not older than this is still the truth: an API server that restarts must not close the gate."""

log = structlog.get_logger(__name__)


class Observing:
    """Feeds the observations; `on_change` is called after whatever changed them, and must return at once."""

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
        self._served = Served(api, lasts=SERVED_SECONDS)

    async def run(self) -> None:
        """List and watch everything, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._discover())
            for look in LOOKS:
                group.create_task(self._follow(look))

    async def _discover(self) -> NoReturn:
        """Which kinds are served, once a minute; all looks at kinds that are not go by the same document."""
        now = asyncio.get_running_loop().time
        began, failures = now(), 0
        while True:
            served = await self._served.answer()
            passes = served.problem is not None and served.problem.trouble is Trouble.UNAVAILABLE
            if not passes or now() - began >= GRACE_SECONDS:
                self._observations.serves(served)
                self._announce()
            pause = PAUSES[min(failures, len(PAUSES) - 1)] if passes else LOOKS_AGAIN_SECONDS
            began, failures = (began, failures + 1) if passes else (now() + pause, 0)
            await asyncio.sleep(pause * random.uniform(0.8, 1.0))  # noqa: S311 - nothing secret

    async def _follow(self, look: Look) -> NoReturn:
        loop, short = asyncio.get_running_loop(), 0
        while True:
            began, since = loop.time(), ""
            try:
                look = await self._served.as_served(look)
                since = await self._listed_where_served(look)
                if since:
                    await self._watched(look, since)
            except Exception as error:
                # A defect in following one kind makes the checks of that kind Unknown, and ends nothing else.
                log.exception("following failed", kind=look.resource)
                self._on_fault(error)
                self._lose(look, ServerTrouble(f"{look.path}: following it failed: {error!r}", status=0))
                since = since or "failed"
            if not since:
                await asyncio.sleep(LOOKS_AGAIN_SECONDS * random.uniform(0.8, 1.0))  # noqa: S311 - nothing secret
                continue
            # A watch that is over as soon as it begins (410, an object that is not understood) must not become a storm
            # of lists.
            short = 0 if loop.time() - began >= GRACE_SECONDS else short + 1
            if short:
                await asyncio.sleep(PAUSES[min(short, len(PAUSES)) - 1] * random.uniform(0.8, 1.0))  # noqa: S311

    async def _listed_where_served(self, look: Look) -> str:
        shown = await self._served.shows_absence(look) if look.is_optional else ()
        if not shown:
            return await self._listed(look)
        self._observations.absent(look, shown)
        self._announce()
        return ""

    async def _listed(self, look: Look) -> str:
        """The list's resourceVersion; "" where there is none to be had: not served, or not allowed."""
        failures, loop = 0, asyncio.get_running_loop()
        began = loop.time()
        while True:
            seen = await listed_packed(self._api, look)
            if seen.error is None:
                self._observations.take(look, seen)
                self._announce()
                return seen.version
            if isinstance(seen.error, NotFound | Forbidden):
                await self._settle(look, seen.error)
                return ""
            if loop.time() - began >= GRACE_SECONDS:
                self._lose(look, seen.error)
            await self._wait(look, seen.error, failures)
            failures += 1

    async def _settle(self, look: Look, refused: HermeticError) -> None:
        shown = await self._served.shows_absence(look, anew=True)
        if shown:
            self._observations.absent(look, (evidence_of(look, refused), *shown))
            self._announce()
        else:
            self._lose(look, refused)

    async def _watched(self, look: Look, since: str) -> None:
        """Watch until the list is to be had anew."""
        loop = asyncio.get_running_loop()
        listed_at, failures, broken_at = loop.time(), 0, 0.0
        while loop.time() - listed_at < LISTED_ANEW_SECONDS:
            began = loop.time()
            try:
                async with aclosing(self._events(look, since)) as events:
                    async for reached in events:
                        since, failures, broken_at = reached, 0, 0.0
            except (NotFound, Forbidden):
                return
            except HermeticError as error:
                if isinstance(error, ServerTrouble) and error.status == GONE:
                    return
                if loop.time() - began >= SILENT_SECONDS:
                    return  # of a kind that never changes nothing is said, and of a dead connection: a list tells
                broken_at = broken_at or loop.time()
                if loop.time() - broken_at >= GRACE_SECONDS:
                    self._lose(look, error)
                    return  # a watch would be silent about what has not changed; a list says it
                await self._wait(look, error, failures)
                failures += 1
            # A watch that ends as soon as it opens must not be a storm.
            await asyncio.sleep(max(0.0, began + 1 - loop.time()))

    async def _events(self, look: Look, since: str) -> AsyncGenerator[str, None]:
        """Take in one watch, event by event; yields the resourceVersion that was reached."""
        watch = self._api.watch(look.kind, since=since, namespace=look.namespace, field_selector=look.field_selector)
        async with aclosing(watch):
            async for what, manifest in watch:
                self._take(look, what, manifest)
                yield manifest["metadata"]["resourceVersion"]
                await asyncio.sleep(0)  # a burst of events must not keep anything else waiting

    def _take(self, look: Look, what: str, manifest: Manifest) -> None:
        self._observations.well(look)
        if what != "BOOKMARK":
            try:
                self._observations.see(manifest, gone=what == "DELETED")
            except (KeyError, TypeError, AttributeError) as error:
                # What was not understood was not seen, and the list will say so again.
                raise ServerTrouble(f"not an object: {error!r}", status=GONE) from error
        self._announce()

    def _lose(self, look: Look, error: HermeticError) -> None:
        problem = problem_of(look, error)
        if problem.trouble is Trouble.UNAVAILABLE:  # the words differ each time, and mean the same
            problem = Problem(Trouble.UNAVAILABLE, f"{look.path}: not seen for more than {GRACE_SECONDS:.0f} seconds")
        self._observations.trouble(look, problem)
        self._announce()

    def _announce(self) -> None:
        if self._observations.changed_since(self._announced):
            self._announced = self._observations.revision
            self._on_change()

    @staticmethod
    async def _wait(look: Look, error: HermeticError, failures: int) -> None:
        longest = PAUSES[min(failures, len(PAUSES) - 1)]
        pause = error.retry_after if isinstance(error, Throttled) else longest * random.uniform(0.5, 1.0)  # noqa: S311
        log.warning("cluster not seen", kind=look.resource, because=error.message, again_in=round(pause, 1))
        await asyncio.sleep(pause)
