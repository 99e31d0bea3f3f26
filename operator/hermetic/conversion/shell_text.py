"""Pasted shell text as simple commands: prompts, comments, continuations, redirections and variables of the text.

Nothing is executed and nothing of the environment is read. Substitutions that only a shell resolves (`$(...)`,
backquotes, a variable that the text does not set) stay in the words as written, and `has_substitution` finds them.

Source of the grammar: POSIX.1-2024, "Shell Command Language", 2.7 Redirection and 2.9 Shell Commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hermetic.conversion.shell_words import BLANK, LONGEST, OPERATORS, REDIRECTIONS, TextReader, take_word
from hermetic.errors import InputError

_PROMPT = re.compile(
    r"[ \t]*(?:\([\w.-]{1,64}\)[ \t]*)?(?:[\w.-]{1,64}@[\w.-]{1,64}(?::[^\s$#%]{0,256})?)?[$%][ \t]+(?=\S)"
)
_CONTINUED_PROMPT = re.compile(r"[ \t]*>[ \t]+")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_SUBSTITUTION = re.compile(r"\$[A-Za-z_({0-9@*#?!]|`")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_DESCRIPTOR = re.compile(r"[0-9]+(?=[<>])")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """The words of one command, and the variables that the text has set for it, in their order."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


def has_substitution(text: str) -> bool:
    """Whether the text holds something that only a shell replaces."""
    return _SUBSTITUTION.search(text) is not None


def read_commands(text: str) -> tuple[SimpleCommand, ...]:
    """The commands of the text in their order. Raises InputError for text that no shell would read to its end."""
    refuse_unreadable(text)
    return tuple(_Script(_without_decoration(text)).commands())


def split_commands(argv: tuple[str, ...]) -> tuple[SimpleCommand, ...]:
    """The commands of words that a shell has split already; a word that is an operator separates two."""
    refuse_unreadable(" ".join(argv))
    script = _Script("")
    commands: list[SimpleCommand | None] = []
    command: list[str] = []
    for word in (*argv, ";"):
        if word in (";", "&&", "||", "|", "&"):
            commands.append(script.without_assignments(tuple(command)))
            command = []
        elif command or word not in ("$", "%", "#"):
            command.append(word)
    return tuple(simple_command for simple_command in commands if simple_command is not None)


def refuse_unreadable(text: str) -> None:
    """Raises InputError for text that is too long, or that holds characters that a command line cannot hold."""
    if len(text) > LONGEST:
        raise InputError(
            f"the command has {len(text)} characters, and at most {LONGEST} are read",
            fix="give the command alone, without other text",
        )
    if character := _CONTROL.search(text):
        raise InputError(
            f"the command holds the control character {character[0]!r} at position {character.start()}",
            fix="copy the command again, as plain text",
        )


def _without_decoration(text: str) -> str:
    """The text without the fences of a code block, the prompts of its lines and the prompts of continued lines."""
    lines: list[str] = []
    has_prompt = is_continued = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if is_continued:
            plain = _CONTINUED_PROMPT.sub("", line, count=1) if has_prompt else line
        elif _FENCE.match(line):
            continue
        else:
            plain = _PROMPT.sub("", line, count=1)
            has_prompt = plain != line
        # A space behind the backslash ends the command in a shell; who pasted it meant the next line.
        stripped = plain.rstrip(BLANK)
        is_continued = stripped.endswith("\\") and not stripped.endswith("\\\\")
        lines.append(stripped if is_continued else plain)
    return "\n".join(lines)


class _Script:
    """Reads a text once, from its beginning to its end; variables count from the command behind their assignment."""

    def __init__(self, text: str) -> None:
        self._reader = TextReader(text)
        self._variables: dict[str, str] = {}
        self._exported: dict[str, str] = {}
        self._here_documents: list[str] = []

    def commands(self) -> Iterator[SimpleCommand]:
        """Every command that is more than assignments."""
        while not self._reader.is_at_end:
            command = self.without_assignments(tuple(self._argv()))
            if command is not None:
                yield command

    def without_assignments(self, argv: tuple[str, ...]) -> SimpleCommand | None:
        """The command with the variables set before it; None where the words set variables and do nothing else."""
        assigned: dict[str, str] = {}
        arguments = list(argv)
        while arguments and (assignment := _ASSIGNMENT.match(arguments[0])):
            assigned[assignment[1]] = arguments.pop(0)[assignment.end() :]
        if not arguments:
            self._variables.update(assigned)
            self._exported.update({name: value for name, value in assigned.items() if name in self._exported})
            return None
        if arguments[0] in ("export", "declare", "typeset"):
            self._export(arguments[1:])
            return None
        return SimpleCommand(tuple(arguments), {**self._exported, **assigned})

    def _export(self, operands: list[str]) -> None:
        for operand in operands:
            name, equals, value = operand.partition("=")
            if equals and _ASSIGNMENT.match(operand):
                self._variables[name] = self._exported[name] = value
            elif name in self._variables:
                self._exported[name] = self._variables[name]

    def _argv(self) -> Iterator[str]:
        """The words up to the next operator, which is consumed."""
        reader, is_target = self._reader, False
        while not reader.is_at_end:
            if reader.character in BLANK:
                reader.take(1)
            elif reader.text.startswith("\\\n", reader.position):
                reader.take(2)
            elif reader.character == "#":
                reader.take_line()
            elif reader.character in OPERATORS:
                if reader.take(1) == "\n":
                    self._skip_here_documents()
                return
            elif reader.take_matching(_DESCRIPTOR) or reader.character in REDIRECTIONS:
                is_target = self._redirection()
            else:
                fields = take_word(reader, self._variables)
                if not is_target:
                    yield from fields
                is_target = False

    def _redirection(self) -> bool:
        """Consumes `<`, `>>`, `2>&`, `<<-`, ...; whether the next word is its target, and no argument."""
        operator = ""
        while self._reader.character and self._reader.character in "<>&|-":
            operator += self._reader.take(1)
        if not operator.startswith("<<") or operator.startswith("<<<"):
            return not operator.endswith("-")
        while self._reader.character and self._reader.character in BLANK:
            self._reader.take(1)
        self._here_documents.append("".join(take_word(self._reader, {})))
        return False

    def _skip_here_documents(self) -> None:
        for delimiter in self._here_documents:
            while not self._reader.is_at_end:
                line = self._reader.take_line().strip()
                self._reader.take(1)
                if line == delimiter:
                    break
        self._here_documents.clear()
