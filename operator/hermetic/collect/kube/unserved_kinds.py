"""Decides by API discovery whether a kind is not served at all; it is never assumed.

A refused list proves nothing about the kind: with 404 it may be served in another version, and with 403 the API server
refuses before it resolves the kind. Every authenticated caller may read discovery.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

from hermetic.audit.estate.questions import Answer, Body, Problem, Trouble
from hermetic.audit.findings import Evidence
from hermetic.collect.kube.discovery import ALL_GROUPS, Catalogue, catalogue
from hermetic.collect.kube.list_errors import PASSING
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.errors import ApiRefused, Forbidden, HermeticError
from hermetic.ports import ClusterReader


class ServedKinds:
    """What the API server serves: read at first use, and again when older than `lasts` seconds.

    Transient errors (429, 5xx, a broken connection) are retried after each of `pauses`, in seconds.
    """

    def __init__(self, api: ClusterReader, *, lasts: float = math.inf, pauses: tuple[float, ...] = ()) -> None:
        self._api = api
        self._lasts = lasts
        self._pauses = pauses
        self._known: Catalogue | HermeticError | None = None
        self._read_at = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def shows_absence(self, look: ListRequest, *, anew: bool = False) -> tuple[Evidence, ...]:
        """The documents which together show that no version of the kind is served; none when they do not show it."""
        if not look.kind.group:  # the core group is served everywhere
            return ()
        known = await self._read(anew=anew)
        return known.shows_absence(look.kind.group, look.kind.plural) if isinstance(known, Catalogue) else ()

    async def as_served(self, look: ListRequest) -> ListRequest:
        """The list request in a version that is served, where the model has more than one."""
        others = look.model.ALSO_SERVED_AS
        if not others:
            return look
        known = await self._read(anew=False)
        if not isinstance(known, Catalogue):
            return look
        own = replace(look, served_as="").kind
        return replace(look, served_as=known.version_of(own.group, own.plural, (own.version, *others)))

    async def answer(self) -> Answer:
        """The served kinds, by group."""
        return answer_of(await self._read(anew=False))

    async def _read(self, *, anew: bool) -> Catalogue | HermeticError:
        now = asyncio.get_running_loop().time
        asked_at = now()
        async with self._one_at_a_time:
            is_known = isinstance(self._known, Catalogue)
            oldest = asked_at if anew or not is_known else asked_at - self._lasts
            if self._known is None or self._read_at < oldest:
                self._known, self._read_at = await self._read_at_last(), now()
            return self._known

    async def _read_at_last(self) -> Catalogue | HermeticError:
        known = await self._read_once()
        for pause in self._pauses:
            if not isinstance(known, PASSING):
                break
            await asyncio.sleep(pause)
            known = await self._read_once()
        return known

    async def _read_once(self) -> Catalogue | HermeticError:
        try:
            return await catalogue(self._api)
        except HermeticError as error:
            return error


def answer_of(known: Catalogue | HermeticError) -> Answer:
    """The answer to the question which kinds are served."""
    if isinstance(known, Catalogue):
        bodies = tuple(Body(body, known.documents) for body in known.bodies)
        return Answer(bodies, known.documents)
    evidence = Evidence(f"GET {ALL_GROUPS}", known.status if isinstance(known, ApiRefused) else None)
    words = f"GET {ALL_GROUPS}: {known.message}"
    problem = Problem(Trouble.UNAVAILABLE, words) if isinstance(known, PASSING) else _refused(known, words)
    return Answer((), (evidence,), problem)


def _refused(error: HermeticError, words: str) -> Problem:
    if isinstance(error, Forbidden):
        return Problem(Trouble.FORBIDDEN, words, permission="get /apis")
    return Problem(Trouble.UNREADABLE, words)
