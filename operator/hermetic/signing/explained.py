"""Words for programs, with their explanation for people."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class ExplainedWord(StrEnum):
    """A CamelCase word with its meaning and what to do about it: a page of `hermetic explain`."""

    meaning: str
    remedy: str

    def __new__(cls, value: str, *_: object) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        return member

    def __init__(self, _: str, meaning: str, remedy: str) -> None:
        self.meaning = meaning
        self.remedy = remedy


class ExplainedReason(ExplainedWord):
    """The reason of a condition. `needs_human`: only a person can fix it."""

    needs_human: bool

    def __init__(self, value: str, meaning: str, remedy: str, needs_human: bool = False) -> None:
        super().__init__(value, meaning, remedy)
        self.needs_human = needs_human
