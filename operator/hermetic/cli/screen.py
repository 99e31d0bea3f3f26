"""Reports on a screen: coloured and wrapped where somebody looks at a terminal that is wide enough, else plain."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from hermetic.cli.options import color_is_unwanted
from hermetic.cli.output import printable, say
from hermetic.cli.status_report import Report
from hermetic.cli.status_text import COLUMNS, Line, blocked, cluster_lines, headline, lines, table

if TYPE_CHECKING:
    from rich.console import Console

# Below this, columns are narrower than words: a terminal wraps plain lines better by itself.
NARROW = 60
LABEL_WIDTH, WORD_WIDTH = 18, 7
COMMAND_INDENT = "    "
_STYLES = {"good": "green", "bad": "bold red", "unsure": "yellow", "plain": ""}
_STYLE_OF_TRUTH = {"True": "green", "False": "bold red"}


def show_one(report: Report, now: datetime) -> None:
    """One deployment in full."""
    shown = list(lines(report, now))
    if _is_wide_terminal():
        _show_wide(headline(report), shown)
        return
    say(headline(report))
    for line in shown:
        if line.command:
            say(f"{COMMAND_INDENT}{line.text}")
        else:
            say(f"  {line.label:<{LABEL_WIDTH}}  {line.word:<{WORD_WIDTH}}  {line.text}".rstrip())


def show_many(reports: Sequence[Report], now: datetime) -> None:
    """A table, below it what stands in the way, and last where the proof of the cluster stands."""
    rows = [tuple(cell or "-" for cell in row) for row in table(reports)]
    if _is_wide_terminal():
        _table(rows)
    else:
        widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
        for row in (COLUMNS, *rows):
            say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for line in blocked(reports):
        say(line)
    if reports and (proof := reports[0].proof) is not None:
        for line in cluster_lines(proof, now):
            say(line)


def _is_wide_terminal() -> bool:
    # rich gives up where the terminal cannot show a letter; plain text escapes it.
    shows_everything = (sys.stdout.encoding or "utf-8").lower() in {"utf-8", "utf8"}
    return sys.stdout.isatty() and shows_everything and _console().width >= NARROW


def _show_wide(title: str, shown: Iterable[Line]) -> None:
    """Prose wraps within its column; a command stays one line of the terminal, however long."""
    from rich.table import Table
    from rich.text import Text

    console = _console()
    console.print(Text(printable(title), style="bold"), soft_wrap=True)
    for line in shown:
        if line.command:
            console.print(Text(COMMAND_INDENT + printable(line.text)), soft_wrap=True)
            continue
        row = Table.grid(padding=(0, 2))
        row.add_column(width=LABEL_WIDTH + 2)
        row.add_column(width=WORD_WIDTH)
        row.add_column(overflow="fold")
        row.add_row(Text(f"  {line.label}"), Text(line.word, style=_STYLES[line.tone]), Text(printable(line.text)))
        console.print(row)


def _table(rows: Iterable[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table(*COLUMNS, box=None, pad_edge=False, header_style="bold")
    for column in shown.columns:
        column.overflow = "fold"
    for row in rows:
        styles = (
            _STYLE_OF_TRUTH.get(cell, "yellow") if name == "READY" else ""
            for name, cell in zip(COLUMNS, row, strict=True)
        )
        shown.add_row(*(Text(printable(cell), style=style) for cell, style in zip(row, styles, strict=True)))
    _console().print(shown)


def _console() -> Console:
    """The terminal; with --no-color, NO_COLOR or TERM=dumb without any escape sequence, bold included."""
    from rich.console import Console

    context = click.get_current_context(silent=True)
    plain = color_is_unwanted() or (context is not None and context.color is False)
    return Console(color_system=None if plain else "auto", highlight=False)
