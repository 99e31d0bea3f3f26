"""Wrapping for terminals: lines break between words, continuation lines are indented, and no word is cut."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from hermetic.audit.remedies.steps import is_command

NARROWEST = 20
ENOUGH_BESIDE = 30
UNKNOWN_WIDTH = 80
_LABEL = re.compile(r"\S+(?: \S+)? {2,}")


def columns() -> int:
    """The width of the terminal; 0 where output goes elsewhere: lines are then not wrapped."""
    if not sys.stdout.isatty():
        return 0
    import shutil  # loads all that compresses files

    return max(NARROWEST, shutil.get_terminal_size((UNKNOWN_WIDTH, 24)).columns)


def wrapped(text: str, width: int, indent: str = "", hanging: str | None = None) -> Iterator[str]:
    """The text in lines of this width, the first with `indent`, the others with `hanging`; 0: in one line.

    A word that is longer than a line, an ARM id, keeps a line of its own, whole.
    """
    if not width or len(indent) + len(text) <= width:
        yield f"{indent}{text}".rstrip()
        return
    import textwrap  # few lines are longer than a terminal is wide

    below = indent if hanging is None else hanging
    shape = textwrap.TextWrapper(
        width, initial_indent=indent, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )
    yield from shape.wrap(text)


def fitted(line: str, width: int) -> Iterator[str]:
    """A line of a report, wrapped. Continuation is indented deeper, or in the column after the label."""
    text = line.lstrip()
    if is_command(text):
        yield line
        return
    label = _LABEL.match(text)
    indent = len(line) - len(text)
    hanging = indent + len(label[0]) if label is not None else indent + 2
    if width and width - hanging < ENOUGH_BESIDE:
        hanging = min(hanging, indent + 4)
    yield from wrapped(line, width, "", " " * hanging)


def in_rows(pieces: list[str], width: int, indent: str) -> Iterator[str]:
    """Short pieces side by side, as many as fit into a row; one that is longer than a row continues below."""
    row = ""
    for piece in pieces:
        if row and len(indent) + len(row) + 2 + len(piece) > width:
            yield from wrapped(row, width, indent, f"{indent}  ")
            row = ""
        row = f"{row}  {piece}" if row else piece
    if row:
        yield from wrapped(row, width, indent, f"{indent}  ")


def beside(name: str, widest: int, text: str, width: int) -> Iterator[str]:
    """A row of a list of names: its text beside it, or below it where too little of the line is left."""
    start = f"  {name.ljust(widest)}  "
    if not width or width - len(start) >= ENOUGH_BESIDE:
        rows = list(wrapped(text, width, " " * len(start))) or [start]
        yield f"{start}{rows[0][len(start) :]}".rstrip()
        yield from rows[1:]
        return
    yield f"  {name}"
    yield from wrapped(text, width, " " * 6)
