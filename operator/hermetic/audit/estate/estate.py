"""The estate: an immutable set of answers about one cluster, with a typed query interface.

A query without an answer gets the problem NOT_ASKED and is recorded in `wanted`. Collecting is: evaluate, fetch what is
wanted, evaluate again, until nothing is wanted. Collectors do not know what checks need, and cannot omit a check.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from hermetic.audit.estate.interning import Sharing
from hermetic.audit.estate.observation import Listing, Lookup
from hermetic.audit.estate.projection import fields_kept
from hermetic.audit.estate.questions import Answer, Problem, Question, Source, UnreadReason, fixed_json
from hermetic.audit.estate.resource import Resource

R = TypeVar("R", bound=Resource)
T = TypeVar("T")
P = ParamSpec("P")

UNASKED = Answer(problem=Problem(UnreadReason.NOT_ASKED, "it was not queried"))


class Estate:
    """All answers about one cluster.

    `cluster` is its ARM id, `sources` the sources that are queried. Queries never change the result of others; `wanted`
    collects the questions without an answer.
    """

    def __init__(self, cluster: str, sources: Iterable[Source], answers: Mapping[Question, Answer]) -> None:
        self.cluster = cluster
        self.sources = frozenset(sources)
        self.wanted: dict[tuple[str, ...], Question] = {}
        self._answers = {question.key: (question.api_version, answer) for question, answer in answers.items()}
        self._read: dict[tuple[object, ...], object] = {}
        self._derived: dict[Hashable, tuple[object, Mapping[tuple[str, ...], Question]]] = {}
        self._noted = self.wanted

    def with_answers(self, more: Mapping[Question, Answer]) -> Estate:
        """The estate with more answers; facts parsed from answers that stay are reused.

        Where no answer is replaced, derived values that want nothing more are reused too.
        """
        larger = Estate(self.cluster, self.sources, more)
        fresh = larger._answers.keys()
        reused_keys = self._answers.keys() - fresh
        larger._answers = {**self._answers, **larger._answers}
        larger._read = {memo: read for memo, read in self._read.items() if memo[1] in reused_keys}
        if len(reused_keys) == len(self._answers):
            larger._derived = {key: entry for key, entry in self._derived.items() if not entry[1]}
        return larger

    def one(self, kind: type[R], target: str) -> Lookup[R]:
        """The resource with this id."""
        return self._one(kind, Question(kind.SOURCE, "get", kind.TYPE, target, kind.API_VERSION))

    def asked(self, kind: type[R], target: str, body: Mapping[str, Any] | None = None) -> Lookup[R]:
        """The result of the kind's POST action on the resource of this id."""
        text = "" if body is None else fixed_json(body)
        return self._one(kind, Question(kind.SOURCE, "post", kind.TYPE, target, kind.API_VERSION, kind.ACTION, text))

    def every(self, kind: type[R], scope: str) -> Listing[R]:
        """All resources of a kind: in a subscription, in a resource group, or below a parent resource."""
        question = Question(kind.SOURCE, "list", kind.TYPE, scope, kind.API_VERSION)
        memo = (kind, question.key)
        if memo not in self._read:
            answer = self._answer(question)
            sharing = Sharing()
            read = (sharing.shared(kind.read(body)) for body in answer.bodies)
            # By id: neither Azure nor Kubernetes guarantees an order, and a verdict must not depend on one.
            items = tuple(sorted(read, key=_id_of))
            self._read[memo] = Listing(scope, items, answer.evidence, answer.problem)
        else:
            self._note_again(question, memo[1])
        listing = cast("Listing[R]", self._read[memo])
        return listing if listing.target == scope else replace(listing, target=scope)

    def once(self, key: Hashable, derive: Callable[[], T]) -> T:
        """A cached value derived from the estate alone, since many checks use the same lists.

        Questions that `derive` asks are recorded in `wanted` at each call; an exception is not cached.
        """
        if key not in self._derived:
            self._derived[key] = self._apart(derive)
        else:
            self._noted.update(self._derived[key][1])
        return cast("T", self._derived[key][0])

    def _apart(self, derive: Callable[[], T]) -> tuple[T, Mapping[tuple[str, ...], Question]]:
        """The value, and all questions that it asked without an answer, those already in `wanted` included."""
        around, inside = self._noted, dict[tuple[str, ...], Question]()
        self._noted = inside
        try:
            return derive(), inside
        finally:
            self._noted = around
            around.update(inside)

    def _note(self, question: Question) -> None:
        self.wanted[question.key] = self._noted[question.key] = question

    def _note_again(self, question: Question, key: tuple[str, ...]) -> None:
        """Record a memoised question again if it had no answer."""
        if key in self.wanted:
            self._noted[key] = question

    def _one(self, kind: type[R], question: Question) -> Lookup[R]:
        memo = (kind, question.key)
        if memo not in self._read:
            answer = self._answer(question)
            value = kind.read(answer.bodies[0]) if answer.bodies else None
            evidence = value.evidence if value is not None else answer.evidence
            self._read[memo] = Lookup(question.target, value, evidence, answer.problem)
        else:
            self._note_again(question, memo[1])
        observation = cast("Lookup[R]", self._read[memo])
        return observation if observation.target == question.target else replace(observation, target=question.target)

    def _answer(self, question: Question) -> Answer:
        if question.source not in self.sources:
            return Answer(problem=Problem(UnreadReason.NOT_ASKED, f"{question.source} was not asked"))
        entry = self._answers.get(question.key)
        if entry is None:
            self._note(question)
            return UNASKED
        version, answer = entry
        if version != question.api_version:
            self._note(question)
            return Answer(problem=_of_another_version(version, question))
        if answer.projection and answer.projection != fields_kept(question.kind):
            self._note(question)
            return Answer(problem=_of_other_fields(question))
        return answer


def _id_of(resource: Resource) -> tuple[str, str]:
    """Its id and name as far as they can be read: a damaged id must not stop the evaluation of others."""
    fields = vars(resource)
    return str(fields.get("id", "")).lower(), str(fields.get("name", "")).lower()


def derived(function: Callable[Concatenate[Estate, P], T]) -> Callable[Concatenate[Estate, P], T]:
    """The function, computed once for an estate and the same arguments, as `Estate.once` does."""

    @wraps(function)
    def cached(estate: Estate, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (function, args, tuple(kwargs.items()))
        return estate.once(key, lambda: function(estate, *args, **kwargs))

    return cached


def _of_another_version(version: str, question: Question) -> Problem:
    """The problem of another api-version: a field that it does not have would look like one that is not set."""
    explanation = f"collected with api-version {version}, and this release asks {question.api_version}: collect again"
    return Problem(UnreadReason.NOT_ASKED, f"{question.verb} {question.kind} at {question.target}: {explanation}")


def _of_other_fields(question: Question) -> Problem:
    """The problem of a projection to other fields: a dropped field would look like one that is not set."""
    explanation = "collected by a release that kept other fields than this one reads: collect again"
    return Problem(UnreadReason.NOT_ASKED, f"{question.verb} {question.kind} at {question.target}: {explanation}")
