"""Settings with an order of strictness, and a minimum that the operator's configuration sets for each namespace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V", bound=str)


@dataclass(frozen=True, slots=True)
class Strictness(Generic[V]):
    """The values of a setting, the strictest first."""

    values: tuple[V, ...]

    def strictest(self, *values: V) -> V:
        """The strictest of these values."""
        return min(values, key=self.values.index)

    def minimum(self, overrides: Iterable[tuple[list[str], V]], namespace: str, default: V) -> V:
        """The strictest value of the overrides whose namespaces contain this one, or the default without any."""
        return self.strictest(*[value for names, value in overrides if covers(names, namespace)] or [default])


def covers(namespaces: list[str], namespace: str) -> bool:
    """Whether a list of namespaces contains this one, or '*' for every one."""
    return "*" in namespaces or namespace in namespaces
