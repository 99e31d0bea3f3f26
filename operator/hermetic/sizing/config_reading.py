"""Reading `config.json` as a stranger wrote it: every value of any type and size, and never an exception.

A reader returns the value where it is usable and None where the key is absent; what is there and not usable is noted in
`problems`, so that the caller can say Unknown with the name of the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_LAYERS = 10_000
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


@dataclass(frozen=True, slots=True)
class Config:
    """One object of config.json, and what in it could not be used."""

    values: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)

    def whole(self, *keys: str, least: int = 1, most: int) -> int | None:
        """The first of the keys that is there, as an integer in the range."""
        for key in keys:
            if self.values.get(key) is None:
                continue
            value = self.values[key]
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
                return value
            self.problems.append(f"config.json: {key} is no whole number from {least} to {most}")
            return None
        return None

    def word(self, *keys: str) -> str | None:
        """The first of the keys that is a text of at most 64 characters."""
        for key in keys:
            value = self.values.get(key)
            if isinstance(value, str) and 0 < len(value) <= 64:
                return value
        return None

    def words(self, key: str) -> list[str] | None:
        """A list of texts; None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, list) and len(value) <= MOST_LAYERS and all(isinstance(one, str) for one in value):
            return value
        self.problems.append(f"config.json: {key} is no list of at most {MOST_LAYERS} words")
        return None

    def inner(self, key: str) -> Config | None:
        """An object inside of this one; its problems are noted here."""
        value = self.values.get(key)
        return Config(value, self.problems) if isinstance(value, dict) else None


def text_part(top: Config) -> Config:
    """The object that describes the language model: one inside of a multimodal config.json, else all of it."""
    for name in NESTED:
        inner = top.inner(name)
        if inner is not None:
            return inner.inner("text_config") or inner
    return top
