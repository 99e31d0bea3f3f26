"""Collects for an audit: evaluates, fetches what the checks asked, and repeats until nothing is missing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Question, Source
from hermetic.collect.concurrency import side_by_side
from hermetic.errors import NeverSettled
from hermetic.ports import AuditProgress

T = TypeVar("T")

MOST_ROUNDS = 80
"""Limit of rounds. Each answer may lead to new questions; no chain of checks needs nearly as many."""
AT_ONCE = 500
PARTS = 3
"""Of more questions than AT_ONCE a round asks the first third; the next round asks for the rest again.

Quotas refill evenly, so evaluating between the parts costs no time, and questions that depend on the first answers are
asked together with the rest, not after it.
"""


class Answerer(Protocol):
    """One source: Azure, the cluster, or the probe."""

    async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        """An answer or a problem for each question; and corrections of earlier answers."""


async def collected(
    cluster: str, answerers: Mapping[Source, Answerer], evaluate: Callable[[Estate], T], progress: AuditProgress
) -> tuple[dict[Question, Answer], T]:
    """An answer to every question that `evaluate` asks, and its result for the estate with all of them.

    Raises what the answerers raise, and NeverSettled for checks that never stop asking.
    """
    answers: dict[tuple[str, ...], tuple[Question, Answer]] = {}
    estate = Estate(cluster, answerers, {})
    for _ in range(MOST_ROUNDS):
        with _no_cycles_sought():
            result = evaluate(estate)
        if not estate.wanted:
            return dict(answers.values()), result
        del result  # before the next round's, which takes as much memory
        questions = _first(list(estate.wanted.values()))
        progress.asks(len(questions))
        pairs = await _asked(answerers, questions)
        answers.update((question.key, (question, answer)) for question, answer in pairs)
        if missing := [question for question in questions if question.key not in answers]:
            raise NeverSettled(f"{missing[0].source} left {len(missing)} questions open, first {missing[0]}")
        estate = estate.with_answers(dict(pairs))
    raise NeverSettled(f"after {MOST_ROUNDS} rounds the checks still need {len(questions)} answers")


@contextmanager
def _no_cycles_sought() -> Iterator[None]:
    """Disable cyclic garbage collection, which would take a third of the time: evaluation makes no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _first(questions: list[Question]) -> list[Question]:
    return questions[: max(AT_ONCE, len(questions) // PARTS)]


async def _asked(answerers: Mapping[Source, Answerer], questions: Sequence[Question]) -> list[tuple[Question, Answer]]:
    """Ask all sources concurrently, each with its own questions."""
    by_source = {source: [question for question in questions if question.source == source] for source in answerers}
    results = await side_by_side(
        answerers[source].answers(source_questions)
        for source, source_questions in by_source.items()
        if source_questions
    )
    return [pair for answers in results for pair in answers.items()]
