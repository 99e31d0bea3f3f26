"""The most common check: one property of a resource must have one value."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model.hops import Path

Fact = str | bool | None
Outcome = tuple[str, str]
"""A reason and a message; with "" as message, the property and its value are shown."""


@dataclass(frozen=True, slots=True)
class PropertyIs:
    """The rule that property `name` (of ARM) has the value `required`.

    `absent_means` is what ARM assumes for an absent value. Any other string than these two is `unclear`: ARM's
    enumerations are open, and compared ignoring case.
    """

    name: str
    required: str | bool
    absent_means: str | bool
    fine: Outcome
    wrong: Outcome
    unclear: Outcome = ("ValueUnknown", "")
    paths: tuple[Path, ...] = ()

    def result(self, resource: str, observation: Observation, fact: Fact) -> CheckResult:
        """Pass for the required value, Fail for the value of `absent_means`, Unknown for any other string."""
        is_absent = fact is None or fact == ""
        value = _spelt(self.absent_means if fact is None or fact == "" else fact)
        if value.lower() == _spelt(self.required).lower():
            return passes(resource, self.fine[0], self.fine[1] or f"{self.name} is {value}", observation)
        if isinstance(fact, str) and value.lower() != _spelt(self.absent_means).lower():
            return unknown(
                resource, self.unclear[0], self.unclear[1] or f"{self.name} {value!r} is not known", observation
            )
        message = f"{self.name} is {'absent, which means ' if is_absent else ''}{value}"
        return fails(resource, self.wrong[0], self.wrong[1] or message, observation, paths=self.paths)


def _spelt(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value
