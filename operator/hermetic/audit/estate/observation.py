"""What a check gets when it looks: one thing, or all things of a kind, each with why it may not be the whole truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.audit.findings import Evidence

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Observation(Protocol):
    """Everything that a verdict can rest on."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The exchanges that brought it."""

    @property
    def problem(self) -> Problem | None:
        """Why it is not the whole truth; None when it is."""


@dataclass(frozen=True, slots=True)
class Seen(Generic[T_co]):
    """One thing that was asked for by its id; `value` is None when it could not be seen."""

    target: str
    value: T_co | None
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T_co]):
    """All things of a kind in a scope; with a problem there may be more than `items`."""

    target: str
    items: tuple[T_co, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def where(self, holds: Callable[[T_co], bool]) -> Listing[T_co]:
        """Those for which it holds, with the same evidence: leaving the others out is no proof of its own."""
        return Listing(self.target, tuple(item for item in self.items if holds(item)), self.evidence, self.problem)


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a verdict needs and that could not be looked for, in one word for the report."""

    problem: Problem
    evidence: tuple[Evidence, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ObservedDocument:
    """Evidence without a doubt of its own: handed in, or an answer that decides nothing by itself."""

    evidence: tuple[Evidence, ...]
    problem: None = None


def is_locked(look: Observation) -> bool:
    """Whether a deny assignment forbade to look."""
    return look.problem is not None and look.problem.trouble is Trouble.LOCKED


def merged(target: str, *listings: Listing[T]) -> Listing[T]:
    """Several listings as one; the first problem stands for all."""
    return Listing(
        target,
        tuple(item for listing in listings for item in listing.items),
        tuple(one for listing in listings for one in listing.evidence),
        next((listing.problem for listing in listings if listing.problem), None),
    )
