"""A remedy in parts: prose and commands apart, in the order in which they are to be followed.

The text form is in checks.toml, in findings and in the JSON report. A line that begins with a program's name is a
command; a line that begins with "Warning:" states what the commands after it may cut off; every other line is prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

PROGRAMS = ("az", "kubectl", "hermetic")
WARNING = "Warning:"

_COMMAND = tuple(f"{program} " for program in PROGRAMS)
_CONTINUED = re.compile(r"[ \t]*\\\n[ \t]*")


@dataclass(frozen=True, slots=True)
class RemedyStep:
    """One step: read `explanation` and `warning`, then run `commands` in their order.

    Each command is one line for a POSIX shell. `warning` states what the commands may cut off ("" where nothing), and a
    step without commands is a manual one.
    """

    explanation: str = ""
    warning: str = ""
    commands: tuple[str, ...] = ()


def is_command(line: str) -> bool:
    """Whether a line of the text form is a command."""
    return line.startswith(_COMMAND)


@lru_cache(maxsize=4096)
def steps_of(text: str) -> tuple[RemedyStep, ...]:
    """The steps of a text. Prose before a command belongs to it; prose after one begins the next step."""
    steps: list[RemedyStep] = []
    prose: list[str] = []
    warning: list[str] = []
    commands: list[str] = []

    def close() -> None:
        if prose or warning or commands:
            steps.append(RemedyStep(" ".join(prose), " ".join(warning), tuple(commands)))
        for part in (prose, warning, commands):
            part.clear()

    for line in _lines(text):
        if is_command(line):
            commands.append(line)
            continue
        if commands:
            close()
        if line.startswith(WARNING):
            warning.append(line.removeprefix(WARNING).strip())
        else:
            (warning if warning else prose).append(line)
    close()
    return tuple(steps)


def text_of(steps: Iterable[RemedyStep]) -> str:
    """The text form: each explanation, each warning and each command on a line of its own."""
    return "\n".join(line for step in steps for line in _lines_of(step))


def _lines(text: str) -> Iterable[str]:
    """Lines stripped of blanks; a command continued with a backslash becomes one line."""
    return [line.strip() for line in _CONTINUED.sub(" ", text).split("\n") if line.strip()]


def _lines_of(step: RemedyStep) -> Iterable[str]:
    if step.explanation:
        yield step.explanation
    if step.warning:
        yield f"{WARNING} {step.warning}"
    yield from step.commands
