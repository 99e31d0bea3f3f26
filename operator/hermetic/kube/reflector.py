"""Reflector (the term of client-go): lists one kind, watches it from that version, and recovers from every error.

The only one of Hermetic. kopf watches what people write (PRIMARY_WATCHES in kube/watch_specs.py); the reflector follows
everything else, for the operator's store (kube/store_watches.py) and the audit's cache (collect/kube/cache_watches.py).
What both read is watched once: a watch of the audit feeds the store as well (kube/store_watches.py).
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import NoReturn, Protocol

import structlog

from hermetic.errors import Forbidden, HermeticError, NotFound, ServerError, Throttled
from hermetic.kube.paging import Selection
from hermetic.ports import ClusterReader, Manifest

GONE = 410
BACKOFF = (0.2, 1.0, 3.0, 10.0)
LASTING_SECONDS = 30.0
"""A watch that lasted this long resets the back-off."""
UNAVAILABLE_SECONDS = 60.0
"""Pause before a kind that is not served or not granted is tried again: a CRD or a role may be added."""
SECONDS_PER_ATTEMPT = 1.0
"""At most one attempt per second: a watch may end as soon as it opens."""

log = structlog.get_logger(__name__)


class Feed(Protocol):
    """A second reader of a list and watch, for what it keeps of the objects itself. No method raises."""

    def begin(self, version: str) -> None:
        """As `begin` of `list_each`."""
        ...

    def add(self, manifest: Manifest) -> None:
        """One object of the list."""
        ...

    def complete(self) -> None:
        """The list was read to its end, and the watch goes on from its version."""
        ...

    def take(self, event: str, manifest: Manifest) -> None:
        """One event of the watch, BOOKMARK included."""
        ...

    def lost(self) -> None:
        """No event comes until a list is complete again: read by yourself."""
        ...


class WatchTarget(Protocol):
    """What a reflector fills."""

    @property
    def selection(self) -> Selection:
        """What to watch now. `list` may change it, as a kind may be served in another version than before."""
        ...

    async def list(self) -> str:
        """List anew and keep the result; returns the resourceVersion to watch from, "" where none is available now.

        Raises HermeticError for transient errors: the list is tried again.
        """
        ...

    def take(self, event: str, manifest: Manifest) -> None:
        """One event of the watch, BOOKMARK included. ServerError with status 410 asks for a new list."""
        ...

    def failed(self, error: HermeticError, *, watched_for: float, failing_for: float) -> bool:
        """Note that the list failed, or the watch after `watched_for` seconds (0 for a list); returns whether to list.

        `failing_for`: seconds since the first failure after which nothing was listed and no event came.
        """
        ...


class Reflector:
    """Keeps one target up to date until cancelled.

    `since`: the version of a list that the target already holds, "" for none. `relist_seconds`: the longest time
    between two lists. `on_fault` gets every exception that is no HermeticError; the reflector goes on.
    """

    def __init__(
        self,
        api: ClusterReader,
        target: WatchTarget,
        *,
        since: str = "",
        relist_seconds: float = math.inf,
        on_fault: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self._api = api
        self._target = target
        self._since = since
        self._relist_seconds = relist_seconds
        self._on_fault = on_fault
        self._listed_at = 0.0
        self._failures = 0
        self._failing_since: float | None = None
        self._watching_since: float | None = None

    async def run(self) -> NoReturn:
        """List and watch, until cancelled."""
        now = asyncio.get_running_loop().time
        self._listed_at = now()
        while True:
            began, self._watching_since = now(), None
            try:
                pause = await self._attempt()
                self._failures = 0
            except HermeticError as error:
                pause = self._failed(error, began)
            except Exception as error:
                # A defect in one kind must not end the reflectors of others.
                log.exception("following failed", kind=self._target.selection.kind.plural)
                self._on_fault(error)
                pause = self._failed(ServerError(f"following it failed: {error!r}", status=GONE), began)
            await asyncio.sleep(max(pause, began + SECONDS_PER_ATTEMPT - now()))

    async def _attempt(self) -> float:
        """One list where one is due, and one watch to its end; returns the pause after it, in seconds."""
        now = asyncio.get_running_loop().time
        if not self._since or now() - self._listed_at >= self._relist_seconds:
            self._since = await self._target.list()
            if not self._since:
                return UNAVAILABLE_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311 - nothing secret
            self._listed_at, self._failing_since = now(), None
        await self._watch()
        return 0.0

    async def _watch(self) -> None:
        chosen = self._target.selection
        self._watching_since = asyncio.get_running_loop().time()
        watch = self._api.watch(
            chosen.kind,
            since=self._since,
            namespace=chosen.namespace,
            label_selector=chosen.label_selector,
            field_selector=chosen.field_selector,
        )
        async with aclosing(watch):
            async for event, manifest in watch:
                self._target.take(event, manifest)
                self._since = _version(manifest)
                self._failing_since = None
                await asyncio.sleep(0)  # a burst of events must not block the event loop

    def _failed(self, error: HermeticError, began: float) -> float:
        """Report the error to the target; returns the pause until the next attempt, in seconds."""
        now = asyncio.get_running_loop().time()
        self._failures = 0 if now - began >= LASTING_SECONDS else self._failures + 1
        watched_for = 0.0 if self._watching_since is None else now - self._watching_since
        if self._failing_since is None:  # a watch was current until it broke; a failed list was not
            self._failing_since = began if self._watching_since is None else now
        anew = self._target.failed(error, watched_for=watched_for, failing_for=now - self._failing_since)
        if anew or isinstance(error, NotFound | Forbidden) or _is_gone(error):
            self._since = ""
        pause = _pause(error, self._failures)
        kind = self._target.selection.kind.plural
        log.warning("watch broken", kind=kind, because=error.message, again_in=round(pause, 1))
        return pause


def _version(manifest: Manifest) -> str:
    try:
        return str(manifest["metadata"]["resourceVersion"])
    except (KeyError, TypeError) as error:
        raise ServerError(f"not an object: {error!r}", status=GONE) from error


def _is_gone(error: HermeticError) -> bool:
    return isinstance(error, ServerError) and error.status == GONE


def _pause(error: HermeticError, failures: int) -> float:
    if isinstance(error, Throttled):
        return error.retry_after
    longest = BACKOFF[min(max(failures, 1), len(BACKOFF)) - 1]
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret
