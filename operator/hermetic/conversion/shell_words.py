"""Words of shell text: quotes, escapes, and variables that have a value; nothing is executed.

Source of the grammar: POSIX.1-2024, "Shell Command Language", 2.2 Quoting and 2.6 Word Expansions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hermetic.errors import InputError

BLANK = " \t\r\xa0"
"""Characters between words; the last is the space that web pages put into code."""
LONGEST = 128 * 1024
"""Characters of a command: what Linux takes for one argument of a program (MAX_ARG_STRLEN)."""
OPERATORS = ";&|()\n"
REDIRECTIONS = "<>"

_PARAMETER = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^{}$`]*))?\})")
_PLAIN = re.compile(r"[^\s\xa0;&|()<>'\"`\\$]+")
_PLAIN_IN_QUOTES = re.compile(r"[^\"`\\$]+")
_ANSI_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a word; an unquoted variable is split at its blanks."""

    text: str
    is_split: bool = False


class TextReader:
    """A position in shell text; every method consumes what it returns, and is linear in its length."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._expanded = 0

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.text)

    @property
    def character(self) -> str:
        """The next character; "" at the end."""
        return self.text[self.position : self.position + 1]

    def take(self, length: int) -> str:
        """So many characters."""
        start = self.position
        self.position += length
        return self.text[start : self.position]

    def count_expanded(self, length: int) -> None:
        """Raises InputError where variables stand for more text than a command line may have."""
        self._expanded += length
        if self._expanded > LONGEST:
            raise InputError(
                f"the variables of the command stand for more than {LONGEST} characters",
                fix="write the values into the command",
            )

    def take_matching(self, pattern: re.Pattern[str]) -> str:
        """The text here that the pattern matches; "" where it does not."""
        match = pattern.match(self.text, self.position)
        return self.take(len(match[0])) if match is not None else ""

    def take_until(self, end: str, *, name: str) -> str:
        """The text before `end`, which is consumed as well. Raises InputError where it does not follow."""
        stop = self.text.find(end, self.position)
        if stop < 0:
            raise unbalanced(name, self.text, self.position)
        content = self.take(stop - self.position)
        self.take(len(end))
        return content

    def take_line(self) -> str:
        """The text up to the end of the line, without it."""
        stop = self.text.find("\n", self.position)
        return self.take((stop if stop >= 0 else len(self.text)) - self.position)


def unbalanced(name: str, text: str, position: int) -> InputError:
    """The error for something that is opened and not closed."""
    near = " ".join(text[max(0, position - 1) : position + 31].split())
    return InputError(
        f"the command has a {name} that is not closed: {near}", fix="copy the command again, up to its end"
    )


def take_word(reader: TextReader, variables: Mapping[str, str]) -> list[str]:
    """The word at the position, as the words that it stands for: an unquoted variable may be several, or none."""
    segments: list[Segment] = []
    while not reader.is_at_end and reader.character not in BLANK + OPERATORS + REDIRECTIONS:
        segments.append(_segment(reader, variables))
    return _split(segments)


def _segment(reader: TextReader, variables: Mapping[str, str]) -> Segment:
    if plain := reader.take_matching(_PLAIN):
        return Segment(plain)
    opening = reader.take(1)
    if opening == "'":
        return Segment(reader.take_until("'", name="single quote"))
    if opening == '"':
        return Segment(_double_quoted(reader, variables))
    if opening == "\\":
        following = reader.take(1)
        return Segment("" if following == "\n" else following)
    if opening == "$" and reader.character == "'":
        return Segment(_ansi_quoted(reader))
    reader.position -= 1
    text, has_value = _expansion(reader, variables)
    return Segment(text, is_split=has_value)


def _split(segments: list[Segment]) -> list[str]:
    fields: list[str] = []
    parts: list[str] = []
    for segment in segments:
        if not segment.is_split:
            parts.append(segment.text)
            continue
        for index, part in enumerate(segment.text.split()):
            if parts and (index > 0 or segment.text[0].isspace()):
                fields.append("".join(parts))
                parts = []
            parts.append(part)
        if parts and segment.text[-1:].isspace():
            fields.append("".join(parts))
            parts = []
    return [*fields, "".join(parts)] if parts else fields


def _double_quoted(reader: TextReader, variables: Mapping[str, str]) -> str:
    start = reader.position
    parts: list[str] = []
    while True:
        if reader.is_at_end:
            raise unbalanced("double quote", reader.text, start)
        if plain := reader.take_matching(_PLAIN_IN_QUOTES):
            parts.append(plain)
        elif reader.character == '"':
            reader.take(1)
            return "".join(parts)
        elif reader.character == "\\":
            reader.take(1)
            following = reader.take(1)
            parts.append({"\n": ""}.get(following, following if following in '$`"\\' else "\\" + following))
        else:
            parts.append(_expansion(reader, variables)[0])


def _ansi_quoted(reader: TextReader) -> str:
    """The text of `$'...'`, whose escapes are those of C."""
    start = reader.position
    reader.take(1)
    parts: list[str] = []
    while reader.character != "'":
        if reader.is_at_end:
            raise unbalanced("single quote", reader.text, start)
        character = reader.take(1)
        if character == "\\":
            following = reader.take(1)
            character = _ANSI_ESCAPES.get(following, "\\" + following)
        parts.append(character)
    reader.take(1)
    return "".join(parts)


def _expansion(reader: TextReader, variables: Mapping[str, str]) -> tuple[str, bool]:
    """What stands at a `$` or a backquote, and whether it is the value of a variable; else it is left as written."""
    if reader.character == "`":
        reader.take(1)
        return f"`{reader.take_until('`', name='backquote')}`", False
    parameter = _PARAMETER.match(reader.text, reader.position)
    if parameter is not None:
        reader.take(len(parameter[0]))
        name = parameter[1] or parameter[2]
        value = variables.get(name) or (parameter[3] if parameter[3] is not None else variables.get(name))
        if value is None:
            return parameter[0], False
        reader.count_expanded(len(value))
        return value, True
    for opening, closing in (("$(", ")"), ("${", "}")):
        if reader.text.startswith(opening, reader.position):
            return _bracketed(reader, opening, closing), False
    return reader.take(1), False


def _bracketed(reader: TextReader, opening: str, closing: str) -> str:
    """The text of `$(...)` or `${...}` with everything nested in it, as it is written."""
    start = reader.position
    reader.take(len(opening))
    depth = 1
    while depth:
        if reader.is_at_end:
            raise unbalanced(f"'{opening}'", reader.text, start)
        character = reader.take(1)
        if character == "\\":
            reader.take(1)
        elif character == "'" and closing == ")":
            reader.take_until("'", name="single quote")
        depth += (character == opening[-1]) - (character == closing)
    return reader.text[start : reader.position]
