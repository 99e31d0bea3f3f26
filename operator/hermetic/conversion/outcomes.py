"""What becomes of each part of a command: a field, an argument or a variable of the engine, and notes for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

NoteKind = Literal["left out", "replaced", "stage", "set"]
"""Left out of the manifest; replaced by something else; to be put beside the weights; to be set by the reader."""


@dataclass(frozen=True, slots=True)
class Note:
    """One line for people: `subject` is the flag, variable, option, file or field that it is about."""

    kind: NoteKind
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.message}"


@dataclass(frozen=True, slots=True)
class Field:
    """A value of a field; `path` is below `spec`, with dots, in the spelling of manifests."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag of `extraArgs` with its values, each an item of the list."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of `extraEnv`."""

    name: str
    value: str


Outcome = Field | Argument | Variable | Note


def left_out(subject: str, message: str) -> Note:
    """A note about something that the manifest does not have."""
    return Note("left out", subject, message)
