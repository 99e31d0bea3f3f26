"""Answers about the cluster from one list of each kind, for `hermetic audit --kube`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from hermetic.audit.estate.kubernetes.served import SERVED
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.collect.concurrency import side_by_side
from hermetic.collect.kube.discovery import ServedKinds
from hermetic.collect.kube.list_errors import PASSING, UNAUTHENTICATED, evidence_of, problem_of
from hermetic.collect.kube.list_requests import ListRequest, digest_of, list_request_of
from hermetic.collect.kube.listing import Kept, Listed, listed
from hermetic.errors import Forbidden, HermeticError, NotFound, Throttled, Unreachable
from hermetic.ports import AuditProgress, ClusterReader

PAUSES = (0.5, 1.5)
LONGEST_PAUSE = 10.0


class KubeAnswerer:
    """Answers every question of source "kube" by lists; writes nothing, and gets no object by name.

    Transient errors (429, 5xx, a broken connection) are retried after each of `pauses`, in seconds.
    """

    def __init__(
        self, api: ClusterReader, *, progress: AuditProgress | None = None, pauses: tuple[float, ...] = PAUSES
    ) -> None:
        self._api = api
        self._progress = progress
        self._served = ServedKinds(api, pauses=pauses)
        self._pauses = pauses
        self._was_reached = False

    async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        """An answer for each question.

        Raises Unreachable when the API server was never reached, and Forbidden when it never authenticated the caller;
        after a first answer both are problems of the answers concerned.
        """
        answers = await side_by_side(self._answer(question) for question in questions)
        return dict(zip(questions, answers, strict=True))

    async def _answer(self, question: Question) -> Answer:
        if question.key == SERVED.key:
            return await self._served.answer()
        request = list_request_of(question)
        if request is None:
            problem = Problem(
                UnreadReason.UNREADABLE, f"{question.verb} {question.kind}: no way to ask the cluster for it"
            )
            return Answer(problem=problem)
        if request.is_optional and (shown := await self._served.shows_absence(request)):
            return Answer(evidence=shown)
        request = await self._served.as_served(request)
        listing = await self._listed(request)
        self._note(listing.error)
        if isinstance(listing.error, NotFound | Forbidden) and not listing.items:
            shown = await self._served.shows_absence(request)
            if shown:
                return Answer(evidence=(evidence_of(request, listing.error), *shown))
        return _answer_of(request, listing)

    async def _listed(self, request: ListRequest) -> Listed[Kept]:
        began = asyncio.get_running_loop().time()
        listing = await self._listed_at_last(request)
        if self._progress is not None:
            self._progress.answered(f"GET {request.path}", asyncio.get_running_loop().time() - began)
            self._progress.saw(len(listing.items))
        return listing

    async def _listed_at_last(self, request: ListRequest) -> Listed[Kept]:
        listing = await listed(self._api, request)
        for pause in self._pauses:
            if not isinstance(listing.error, PASSING):
                break
            requested = listing.error.retry_after if isinstance(listing.error, Throttled) else 0.0
            await asyncio.sleep(min(max(pause, requested), LONGEST_PAUSE))
            listing = await listed(self._api, request)
        return listing

    def _note(self, error: HermeticError | None) -> None:
        """Note whether any list was answered: only a failure from the start ends the audit (exit 4)."""
        unknown = isinstance(error, Forbidden) and error.status == UNAUTHENTICATED
        if error is not None and not self._was_reached and (unknown or isinstance(error, Unreachable)):
            raise error
        self._was_reached = True


def _answer_of(request: ListRequest, listing: Listed[Kept]) -> Answer:
    bodies = [entry.body for _, entry in sorted(listing.items.items())]
    if listing.error is not None and not bodies:
        return Answer((), (evidence_of(request, listing.error),), problem_of(request, listing.error))
    evidence: tuple[Evidence, ...] = (Evidence(f"GET {request.path}", 200, digest_of(bodies)),)
    problem = None
    if listing.error is not None:
        evidence = (*evidence, evidence_of(request, listing.error))
        problem = problem_of(request, listing.error)
    return Answer(tuple(Body(body, evidence) for body in bodies), evidence, problem)
