"""The terminal of the command line: its two streams, its width, and its colours.

Data go to standard output, in UTF-8 whatever the terminal is; notes go to standard error. Reports are wrapped and
coloured only where standard output is a terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from hermetic.api.text import printable, wrapped
from hermetic.audit.remedies.steps import is_command

NARROWEST = 20
NARROWEST_COLORED = 60
ENOUGH_BESIDE = 30
UNKNOWN_WIDTH = 80
STRONG = "strong"
_LABEL = re.compile(r"\S+(?: \S+)? {2,}")
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "good": {"fg": "green"},
    "bad": {"fg": "red", "bold": True},
    "unsure": {"fg": "yellow"},
    STRONG: {"bold": True},
}
"""Styles by tone; every other tone is plain."""


def write(text: str) -> None:
    """Data for programs: YAML and JSON are UTF-8 by definition."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def write_json(value: Any) -> None:
    """One JSON document, indented, keys in their order."""
    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """A note for people, not for programs: a comment, in case both streams end in one file."""
    click.echo(f"# {printable(text)}", err=True)


def show_in_place(text: str) -> None:
    """One changing line on the terminal of standard error, in the place of the one before; "" removes it."""
    import shutil  # loads all that compresses files

    line = printable(text)[: shutil.get_terminal_size().columns - 1]
    click.echo(f"\r\x1b[2K{line}", nl=False, err=True)


def echo(text: str) -> None:
    """Text for people, in characters that the terminal can show."""
    click.echo(_encodable(text))


def echo_fitted(line: str) -> None:
    """The same for one line of a report, wrapped between words on a narrow terminal."""
    for row in fitted(printable(line), columns()):
        echo(row)


def echo_toned(*parts: tuple[str, str]) -> None:
    """One line of parts (text, tone), without trailing blanks. Tones become colours where `has_colors`."""
    shown_parts = [(_encodable(text), tone) for text, tone in parts]
    while shown_parts and not shown_parts[-1][0].strip():
        shown_parts.pop()
    if shown_parts:
        text, tone = shown_parts.pop()
        shown_parts.append((text.rstrip(), tone))
    styles = _STYLES if has_colors() else {}
    click.echo("".join(click.style(text, **styles[tone]) if tone in styles else text for text, tone in shown_parts))


def _encodable(text: str) -> str:
    """The text in characters that standard output can show, without control characters."""
    encoding = sys.stdout.encoding or "utf-8"
    return printable(text).encode(encoding, errors="backslashreplace").decode(encoding)


def color_is_unwanted() -> bool:
    """Whether the environment disables colour; an empty NO_COLOR does not."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def has_colors() -> bool:
    """Whether standard output is a terminal with room for a layout, and no option or variable disables colour."""
    context = click.get_current_context(silent=True)
    is_disabled = color_is_unwanted() or (context is not None and context.color is False)
    return columns() >= NARROWEST_COLORED and not is_disabled


def columns() -> int:
    """The width of the terminal; 0 where output goes elsewhere: lines are then not wrapped."""
    if not sys.stdout.isatty():
        return 0
    import shutil  # loads all that compresses files

    return max(NARROWEST, shutil.get_terminal_size((UNKNOWN_WIDTH, 24)).columns)


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
