"""The results of queries: one object, or all objects of a kind, each with why it may be incomplete."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.errors import FactDamaged

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Observation(Protocol):
    """Anything that a verdict can rest on."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The exchanges that it comes from."""

    @property
    def problem(self) -> Problem | None:
        """Why it may be incomplete; None when it is complete."""


@dataclass(frozen=True, slots=True)
class Lookup(Generic[T_co]):
    """One object that was queried by its id; `value` is None when it could not be read."""

    target: str
    value: T_co | None
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T_co]):
    """All objects of a kind in a scope; with a problem there may be more than `items`."""

    target: str
    items: tuple[T_co, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def where(self, holds: Callable[[T_co], bool]) -> Listing[T_co]:
        """Those for which `holds` is true, with the same evidence and problem."""
        return Listing(self.target, tuple(item for item in self.items if holds(item)), self.evidence, self.problem)


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a verdict needs and that could not be queried; the problem says why."""

    problem: Problem
    evidence: tuple[Evidence, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ObservedDocument:
    """Evidence without a problem: a given document, or an answer that decides nothing by itself."""

    evidence: tuple[Evidence, ...]
    problem: None = None


def is_not_found(observation: Observation) -> bool:
    """Whether Azure answered that there is no such resource."""
    return observation.problem is not None and observation.problem.reason is UnreadReason.NOT_FOUND


def is_locked(observation: Observation) -> bool:
    """Whether a deny assignment forbade the read."""
    return observation.problem is not None and observation.problem.reason is UnreadReason.LOCKED


def merged(target: str, *listings: Listing[T]) -> Listing[T]:
    """Several listings as one, with the first problem of them."""
    return Listing(
        target,
        tuple(item for listing in listings for item in listing.items),
        tuple(exchange for listing in listings for exchange in listing.evidence),
        next((listing.problem for listing in listings if listing.problem), None),
    )


def missing(detail: str) -> Missing:
    """An observation for something that cannot be read at all; `detail` becomes that of its problem."""
    return Missing(Problem(UnreadReason.UNREADABLE, detail))


def not_answered(target: str, field: str) -> Missing:
    """A field that decides and that Azure answers even where it is empty: without it the answer was cut off."""
    return missing(f"{target}: the answer has no {field}")


def unreadable(damage: FactDamaged) -> Missing:
    """Damage as an observation that has no value."""
    return Missing(Problem(UnreadReason.UNREADABLE, damage.message), damage.evidence)
